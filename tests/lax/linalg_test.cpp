// Linear algebra: factors multiply back to their matrices, solvers solve, rules agree with each other.
#include "linalg_checks.h"

#include <algorithm>

namespace capibara {
namespace {

using namespace linalg_checks;

class Linalg : public WithX64 {};

// ---- factors ----------------------------------------------------------------------------------------------------

TEST_F(Linalg, CholeskyFactorsMultiplyBack) {
  for (DType dtype :
       {DType::float16, DType::bfloat16, DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    SCOPED_TRACE(to_string(dtype));
    Array a = positive_definite(dtype, {2, 4, 4});
    Array l = la::cholesky(a);
    EXPECT_EQ(l.dtype(), dtype);
    expect_close(times(l, linalg::adjoint(l)), a);
    expect_close(linalg::tril(l), l);
  }
  Array large = positive_definite(DType::complex128, {150, 150});
  Array l = la::cholesky(large);
  expect_close(times(l, linalg::adjoint(l)), large);
  expect_close(linalg::tril(l), l);
}

TEST_F(Linalg, CholeskyOfAnIndefiniteMatrixIsNaN) {
  Array l = la::cholesky(array<double>({{1, 2}, {2, 1}}));
  std::vector<double> values = l.to_vector<double>();
  EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[2]) && std::isnan(values[3]));
  EXPECT_EQ(values[1], 0);
  Array fine = la::cholesky(array<double>({{4, 2}, {2, 5}}));
  EXPECT_EQ(fine.to_vector<double>(), (std::vector<double>{2, 0, 1, 2}));
}

TEST_F(Linalg, CholeskyUpdateAddsARankOneMatrix) {
  Array a = positive_definite(DType::float64, {4, 4}), w = random_matrix(DType::float64, {4}, 3);
  Array r = linalg::transposed(la::cholesky(a));
  Array updated = la::cholesky_update(r, w);
  Array outer = lax::mul(lax::expand_dims(w, {1}), lax::expand_dims(w, {0}));
  expect_close(times(linalg::transposed(updated), updated), lax::add(a, outer));
}

TEST_F(Linalg, LuMultipliesBackToThePermutedMatrix) {
  for (DType dtype : lapack_types) {
    for (Shape shape : {Shape{4, 4}, Shape{5, 3}, Shape{3, 5}, Shape{2, 4, 4}, Shape{130, 120}}) {
      SCOPED_TRACE(to_string(dtype));
      Array a = random_matrix(dtype, shape);
      auto [lu, pivots, permutation] = la::lu(a);
      int64_t m = a.shape(-2), n = a.shape(-1), k = std::min(m, n);
      Array l =
          lax::add(linalg::tril(linalg::cols(lu, 0, k), -1), linalg::with_rank(linalg::eye(dtype, m, k), a.ndim()));
      Array moved = linalg::map_batch([](std::span<const Array> in) { return in[0](in[1]); }, Arrays{a, permutation},
                                      a.ndim() - 2);
      expect_close(times(l, linalg::triu(linalg::rows(lu, 0, k))), moved,
                   m > 100 ? 50 * tolerance(dtype) : tolerance(dtype));
      EXPECT_TRUE(rule_checks::same_bytes(la::lu_pivots_to_permutation(pivots, m), permutation));
    }
  }
}

TEST_F(Linalg, LuOfASingularMatrixKeepsItsZeroPivot) {
  auto [lu, pivots, permutation] = la::lu(array<double>({{0, 1}, {0, 2}}));
  EXPECT_EQ(lu.to_vector<double>(), (std::vector<double>{0, 1, 0, 2}));
}

TEST_F(Linalg, QrMultipliesBack) {
  for (DType dtype : lapack_types) {
    for (Shape shape : {Shape{4, 4}, Shape{5, 3}, Shape{3, 5}, Shape{2, 4, 2}}) {
      for (bool full : {false, true}) {
        SCOPED_TRACE(to_string(dtype));
        Array a = random_matrix(dtype, shape);
        auto [q, r] = la::qr(a, full);
        expect_close(times(q, r), a);
        expect_orthonormal_columns(q);
        expect_close(linalg::triu(r), r);
        auto [pq, pr, p] = la::qr_with_pivoting(a, full);
        Array moved = linalg::map_batch([](std::span<const Array> in) { return in[0](ellipsis, in[1]); }, Arrays{a, p},
                                        a.ndim() - 2);
        expect_close(times(pq, pr), moved);
      }
    }
  }
  auto [q, r] = la::qr(lax::zeros(random_matrix(DType::float64, {3, 0}).type()));
  EXPECT_EQ(q.shape(), (Shape{3, 3}));
  EXPECT_EQ(r.shape(), (Shape{3, 0}));
}

TEST_F(Linalg, ReflectorsApplyLikeTheirProduct) {
  for (DType dtype : lapack_types) {
    Array a = random_matrix(dtype, {5, 3}), c = random_matrix(dtype, {5, 5}, 2);
    Arrays factored = capibara::bind(primitive("geqrf"), Arrays{a});
    Array zero = scalar_of(dtype, 0);
    Array q = la::householder_product(lax::pad(factored[0], zero, {{}, {0, 2, 0}}), factored[1]);
    expect_orthonormal_columns(q);
    expect_close(la::ormqr(factored[0], factored[1], c), times(q, c));
    expect_close(la::ormqr(factored[0], factored[1], c, {.transpose = true}), times(linalg::adjoint(q), c));
    expect_close(la::ormqr(factored[0], factored[1], c, {.left = false}), times(c, q));
  }
}

TEST_F(Linalg, EighDiagonalizes) {
  for (DType dtype : lapack_types) {
    SCOPED_TRACE(to_string(dtype));
    Array a = linalg::symmetrized(random_matrix(dtype, {2, 4, 4}));
    auto [v, w] = la::eigh(a);
    EXPECT_EQ(w.dtype(), real_dtype(dtype));
    expect_close(times(columns_scaled(v, w), linalg::adjoint(v)), a);
    expect_orthonormal_columns(v);
    std::vector<double> values = w.to_vector<double>();
    EXPECT_TRUE(std::is_sorted(values.begin(), values.begin() + 4));
  }
}

TEST_F(Linalg, EighOfNaNIsNaN) {
  auto [v, w] = la::eigh(array<double>({{1, NAN}, {NAN, 1}}));
  EXPECT_TRUE(std::isnan(w.to_vector<double>()[0]) && std::isnan(v.to_vector<double>()[3]));
}

TEST_F(Linalg, SvdMultipliesBack) {
  for (DType dtype : lapack_types) {
    for (Shape shape : {Shape{4, 4}, Shape{5, 3}, Shape{3, 5}, Shape{2, 4, 2}}) {
      SCOPED_TRACE(to_string(dtype));
      Array a = random_matrix(dtype, shape);
      for (auto algorithm : {std::optional<la::SvdAlgorithm>(), std::optional(la::SvdAlgorithm::qr)}) {
        auto [u, s, vh] = la::svd(a, {.full_matrices = false, .algorithm = algorithm});
        expect_close(times(columns_scaled(u, s), vh), a);
        expect_orthonormal_columns(u);
        expect_close(la::singular_values(a), s);
      }
      auto [u, s, vh] = la::svd(a);
      expect_orthonormal_columns(u);
      EXPECT_EQ(u.shape(-1), a.shape(-2));
      EXPECT_EQ(vh.shape(-2), a.shape(-1));
    }
  }
}

TEST_F(Linalg, EigSatisfiesItsEquations) {
  for (DType dtype : lapack_types) {
    SCOPED_TRACE(to_string(dtype));
    Array a = random_matrix(dtype, {2, 4, 4});
    Arrays out = la::eig(a);
    Array wide = lax::convert_element_type(a, complex_dtype(dtype));
    expect_close(times(wide, out[2]), columns_scaled(out[2], out[0]));
    expect_close(times(linalg::adjoint(wide), out[1]), columns_scaled(out[1], lax::conj(out[0])));
  }
}

TEST_F(Linalg, SchurHessenbergAndTridiagonalAreSimilarToTheirMatrix) {
  for (DType dtype : lapack_types) {
    SCOPED_TRACE(to_string(dtype));
    Array a = random_matrix(dtype, {4, 4});
    Arrays schur = la::schur(a);
    expect_close(times(times(schur[1], schur[0]), linalg::adjoint(schur[1])), a);
    expect_orthonormal_columns(schur[1]);

    // Checks the reduced forms by their eigenvalues: traces of powers agree.
    auto trace = [](const Array& x) { return lax::reduce_sum(linalg::diagonal(x), {.axes = {0}}); };
    auto [h, taus] = la::hessenberg(a);
    Array form = linalg::triu(h, -1);
    expect_close(trace(times(form, form)), trace(times(a, a)), 10 * tolerance(dtype));

    Array s = linalg::symmetrized(a);
    auto [reflectors, d, e, factors] = la::tridiagonal(s);
    Array wide_d = linalg::as_dtype(d, dtype), wide_e = linalg::as_dtype(e, dtype);
    Array squares = lax::add(lax::reduce_sum(lax::mul(wide_d, wide_d), {.axes = {0}}),
                             lax::mul(scalar_of(dtype, 2), lax::reduce_sum(lax::mul(wide_e, wide_e), {.axes = {0}})));
    expect_close(squares, trace(times(s, s)), 10 * tolerance(dtype));
  }
}

TEST_F(Linalg, QdwhGivesAPolarDecomposition) {
  for (Shape shape : {Shape{4, 4}, Shape{6, 3}}) {
    Array a = random_matrix(DType::float64, shape);
    auto [u, h, count, converged] = la::qdwh(a);
    EXPECT_TRUE(static_cast<bool>(converged));
    expect_close(times(u, h), a, 1e-10);
    expect_orthonormal_columns(u);
  }
}

// ---- solves -----------------------------------------------------------------------------------------------------

TEST_F(Linalg, TriangularSolveInvertsEveryForm) {
  for (DType dtype :
       {DType::bfloat16, DType::float16, DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    for (int64_t n : {4, 100}) {
      for (int bits = 0; bits < 32; ++bits) {
        la::TriangularSolveOptions form = {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0,
                                           (bits & 16) != 0};
        if (n == 100 && real_dtype(dtype) != DType::float64) continue;
        SCOPED_TRACE(concat(to_string(dtype), " ", bits, " ", n));
        Array random = random_matrix(dtype, {n, n});
        Array identity = linalg::eye(dtype, n, n);
        Array scaled = lax::mul(random, scalar_of(dtype, 1.0 / static_cast<double>(n)));
        Array a = lax::add(scaled, lax::mul(identity, scalar_of(dtype, 2)));
        Array triangle = form.lower ? linalg::tril(a) : linalg::triu(a);
        if (form.unit_diagonal) {
          triangle = lax::add(form.lower ? linalg::tril(a, -1) : linalg::triu(a, 1), identity);
        }
        if (form.transpose_a) triangle = linalg::transposed(triangle);
        if (form.conjugate_a && is_complex(dtype)) triangle = lax::conj(triangle);
        Array b = random_matrix(dtype, form.left_side ? Shape{n, 97} : Shape{97, n}, 2);
        Array x = la::triangular_solve(a, b, form);
        expect_close(form.left_side ? times(triangle, x) : times(x, triangle), b);
      }
    }
  }
}

TEST_F(Linalg, TriangularSolveTakesVectors) {
  Array a = array<double>({{2, 0}, {1, 4}}), b = array<double>({2, 9});
  EXPECT_EQ(la::triangular_solve(a, b, {.left_side = true, .lower = true}).to_vector<double>(),
            (std::vector<double>{1, 2}));
}

TEST_F(Linalg, TridiagonalSolveSolves) {
  for (DType dtype : lapack_types) {
    int64_t n = 6;
    Array dl = random_matrix(dtype, {n}, 1), d = random_matrix(dtype, {n}, 2), du = random_matrix(dtype, {n}, 3);
    Array b = random_matrix(dtype, {n, 2}, 4);
    Array x = la::tridiagonal_solve(dl, d, du, b);
    Array below = linalg::diagonal_matrix(lax::slice(dl, {1}, {n})),
          above = linalg::diagonal_matrix(lax::slice(du, {0}, {n - 1}));
    Array zero = scalar_of(dtype, 0);
    Array a = lax::add(linalg::diagonal_matrix(d), lax::add(lax::pad(below, zero, {{1, 0, 0}, {0, 1, 0}}),
                                                            lax::pad(above, zero, {{0, 1, 0}, {1, 0, 0}})));
    expect_close(times(a, x), b);
    expect_close(linalg::solve(a, b), x, 10 * tolerance(dtype));
  }
  Array zero = array<double>({0, 0}), b = array<double>({{1}, {1}});
  EXPECT_TRUE(std::isnan(la::tridiagonal_solve(zero, zero, zero, b).to_vector<double>()[0]));
  EXPECT_TRUE(std::isfinite(la::tridiagonal_solve(zero, zero, zero, b, true).to_vector<double>()[0]));
}

TEST_F(Linalg, SymmetricProductFillsBothTriangles) {
  Array a = random_matrix(DType::float64, {3, 2}), c = linalg::symmetrized(random_matrix(DType::float64, {3, 3}, 2));
  Array got = la::symmetric_product(a, c, {.alpha = 2, .beta = 0.5, .symmetrize_output = true});
  Array want = lax::add(lax::mul(times(a, linalg::transposed(a)), scalar_of(DType::float64, 2)),
                        lax::mul(c, scalar_of(DType::float64, 0.5)));
  expect_close(got, want);
}

// ---- rules ------------------------------------------------------------------------------------------------------

TEST_F(Linalg, BatchedEqualsLooped) {
  Family family = linalg_family();
  std::erase_if(family, [](const PrimitiveRecord& record) { return !record.batch; });
  EXPECT_EQ(family.size() + 1, linalg_family().size());  // cholesky_update has none in jax either
  rule_checks::check_batching(family);
}

TEST_F(Linalg, LoweredProgramsComputeTheSame) {
  for (DType dtype : {DType::float32, DType::complex128, DType::int32})
    rule_checks::check_lowering(linalg_family(), dtype);
}

TEST_F(Linalg, WrittenAsStableHloTheyComputeTheSame) {
  for (DType dtype : {DType::float64, DType::complex64}) {
    rule_checks::for_each_sample(
        linalg_family(), dtype, [](const Primitive& p, const Sample& sample, const Arrays& inputs) {
          Program program =
              stage([&](std::span<const Array> in) { return capibara::bind(p, in, sample.attrs); }, sample.inputs, "f")
                  .program;
          Arrays want = evaluate_program(program, inputs),
                 got = evaluate_program(from_stablehlo(to_stablehlo(program)), inputs);
          ASSERT_EQ(got.size(), want.size());
          for (std::size_t i = 0; i < want.size(); ++i)
            EXPECT_TRUE(rule_checks::same_bytes(got[i], want[i])) << got[i].repr() << want[i].repr();
        });
  }
}

TEST_F(Linalg, EveryRecordHasADocumentTypeAndSamples) {
  for (const PrimitiveRecord& record : linalg_family()) {
    EXPECT_FALSE(record.doc.empty()) << record.name;
    EXPECT_TRUE(record.type && record.samples) << record.name;
    EXPECT_TRUE(record.lower || !record.stablehlo.empty()) << record.name;
    EXPECT_FALSE(record.samples(record.dtypes[0]).empty()) << record.name;
  }
}

TEST_F(Linalg, WrongOperandsAreNamed) {
  Array a = random_matrix(DType::float64, {3, 2}), integers = array<int32_t>({1, 2, 3, 4}, Shape{2, 2});
  EXPECT_THROW(la::cholesky(a, false), ValueError);
  EXPECT_THROW(la::cholesky(array<double>({1, 2})), TypeError);
  EXPECT_THROW(la::lu(integers), TypeError);
  EXPECT_THROW(la::triangular_solve(a, a), ValueError);
  EXPECT_THROW(la::triangular_solve(random_matrix(DType::float64, {3, 3}), a), ValueError);
  EXPECT_THROW(la::triangular_solve(random_matrix(DType::float32, {2, 2}), a), TypeError);
  EXPECT_THROW(la::eigh(random_matrix(DType::float64, {3, 3}), {.subset_by_index = la::IndexRange(0, 2)}),
               NotImplementedError);
  EXPECT_THROW(la::qr(random_matrix(DType::float16, {3, 3})), NotImplementedError);
  EXPECT_THROW(la::householder_product(random_matrix(DType::float64, {2, 3}), array<double>({1})), ValueError);
  EXPECT_THROW(la::lu_pivots_to_permutation(array<int32_t>({1, 2, 2}), 2), ValueError);
}

}  // namespace
}  // namespace capibara
