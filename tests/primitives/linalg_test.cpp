// Linear algebra: factors multiply back to their matrices, derivatives match finite differences, solvers solve.
#include "rule_checks.h"

#include <capibara/config.h>
#include <capibara/linalg.h>
#include <capibara/solve.h>

#include "primitives/linalg.h"

#include <complex>
#include <functional>
#include <random>

namespace capibara {
namespace {

namespace lax = jax::lax;
namespace la = jax::lax::linalg;
using C = std::complex<double>;
using Matrix = std::vector<C>;

// A double-precision array of any inexact dtype with normally distributed entries.
Array random_matrix(DType dtype, const Shape& shape, unsigned seed = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<C> values(static_cast<std::size_t>(element_count(shape)));
  for (C& value : values) value = {normal(generator), is_complex(dtype) ? normal(generator) : 0.0};
  return lax::convert_element_type(array<C>(values, shape), dtype);
}

Array positive_definite(DType dtype, const Shape& shape, unsigned seed = 1) {
  Array x = random_matrix(dtype, shape, seed);
  Array identity = linalg::with_rank(linalg::eye(dtype, shape.back(), shape.back()), x.ndim());
  return lax::add(linalg::product(x, linalg::adjoint(x)), identity);
}

double tolerance(DType dtype) {
  switch (real_dtype(dtype)) {
    case DType::float64: return 1e-11;
    case DType::float32: return 2e-4;
    default: return 5e-2;
  }
}

void expect_close(const Array& got, const Array& want, double relative) {
  ASSERT_EQ(got.shape(), want.shape());
  std::vector<C> a = got.to_vector<C>(), b = want.to_vector<C>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_LT(std::abs(a[i] - b[i]), relative * (1 + std::abs(b[i]))) << "at " << i << ": " << a[i] << " and " << b[i];
  }
}
void expect_close(const Array& got, const Array& want) { expect_close(got, want, tolerance(got.dtype())); }

Array times(const Array& a, const Array& b) { return linalg::product(a, b); }
Array columns_scaled(const Array& a, const Array& s) {
  return lax::mul(a, linalg::as_dtype(lax::expand_dims(s, {s.ndim() - 1}), a.dtype()));
}
void expect_orthonormal_columns(const Array& q) {
  int64_t n = q.shape(-1);
  Array identity = linalg::with_rank(linalg::eye(q.dtype(), n, n), q.ndim());
  expect_close(times(linalg::adjoint(q), q), lax::add(identity, lax::zeros(times(linalg::adjoint(q), q).type())));
}

class Linalg : public ::testing::Test {
 protected:
  ConfigScope x64_ = jax::enable_x64();
};

constexpr DType lapack_types[] = {DType::float32, DType::float64, DType::complex64, DType::complex128};

// ---- factors ----------------------------------------------------------------------------------------------------

TEST_F(Linalg, CholeskyFactorsMultiplyBack) {
  for (DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64, DType::complex64, DType::complex128}) {
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
      Array l = lax::add(linalg::tril(linalg::cols(lu, 0, k), -1), linalg::with_rank(linalg::eye(dtype, m, k), a.ndim()));
      Array moved = linalg::map_batch([](std::span<const Array> in) { return in[0](in[1]); }, Arrays{a, permutation}, a.ndim() - 2);
      expect_close(times(l, linalg::triu(linalg::rows(lu, 0, k))), moved, m > 100 ? 50 * tolerance(dtype) : tolerance(dtype));
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
        Array moved = linalg::map_batch([](std::span<const Array> in) { return in[0](ellipsis, in[1]); }, Arrays{a, p}, a.ndim() - 2);
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

    // Eigenvalues tell the reduced forms from nonsense: traces of powers agree.
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
  for (DType dtype : {DType::bfloat16, DType::float16, DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    for (int64_t n : {4, 100}) {
      for (int bits = 0; bits < 32; ++bits) {
        la::TriangularSolveOptions form = {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0, (bits & 16) != 0};
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
  EXPECT_EQ(la::triangular_solve(a, b, {.left_side = true, .lower = true}).to_vector<double>(), (std::vector<double>{1, 2}));
}

TEST_F(Linalg, TridiagonalSolveSolves) {
  for (DType dtype : lapack_types) {
    int64_t n = 6;
    Array dl = random_matrix(dtype, {n}, 1), d = random_matrix(dtype, {n}, 2), du = random_matrix(dtype, {n}, 3);
    Array b = random_matrix(dtype, {n, 2}, 4);
    Array x = la::tridiagonal_solve(dl, d, du, b);
    Array below = linalg::diagonal_matrix(lax::slice(dl, {1}, {n})), above = linalg::diagonal_matrix(lax::slice(du, {0}, {n - 1}));
    Array zero = scalar_of(dtype, 0);
    Array a = lax::add(linalg::diagonal_matrix(d), lax::add(lax::pad(below, zero, {{1, 0, 0}, {0, 1, 0}}), lax::pad(above, zero, {{0, 1, 0}, {1, 0, 0}})));
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
  Array want = lax::add(lax::mul(times(a, linalg::transposed(a)), scalar_of(DType::float64, 2)), lax::mul(c, scalar_of(DType::float64, 0.5)));
  expect_close(got, want);
}

// ---- derivatives ------------------------------------------------------------------------------------------------

using Function = std::function<Arrays(std::span<const Array>)>;

// jvp against central differences, and <ct, J t> against <J^T ct, t>, in double precision.
void check_derivative(const Function& f, const Arrays& inputs, double allowed = 1e-5, bool reverse = true) {
  Arrays tangents;
  std::vector<bool> differentiable;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    tangents.push_back(random_matrix(inputs[i].dtype(), inputs[i].shape(), static_cast<unsigned>(50 + i)));
    differentiable.push_back(true);
  }
  JvpResult forward = jvp_flat(f, inputs, tangents);
  const double h = 1e-6;
  auto moved = [&](double by) {
    Arrays point;
    for (std::size_t i = 0; i < inputs.size(); ++i) point.push_back(lax::add(inputs[i], lax::mul(tangents[i], scalar_of(inputs[i].dtype(), by))));
    return f(point);
  };
  Arrays up = moved(h), down = moved(-h);
  for (std::size_t i = 0; i < up.size(); ++i) {
    if (!is_inexact(up[i].dtype())) continue;
    SCOPED_TRACE(concat("output ", i));
    ASSERT_TRUE(forward.tangents[i].defined());
    expect_close(forward.tangents[i], lax::div(lax::sub(up[i], down[i]), scalar_of(up[i].dtype(), 2 * h)), allowed);
  }
  if (!reverse) return;
  Linearized linear = linearize_flat(f, inputs, differentiable);
  auto inner = [](const Array& a, const Array& b) {
    std::vector<C> x = a.to_vector<C>(), y = b.to_vector<C>();
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += std::real(x[i] * y[i]);
    return sum;
  };
  Arrays cotangents;
  double left = 0, right = 0;
  for (std::size_t i = 0; i < linear.outputs.size(); ++i) {
    if (!linear.nonzero_outputs[i]) {
      cotangents.push_back(Array());
      continue;
    }
    cotangents.push_back(random_matrix(linear.outputs[i].dtype(), linear.outputs[i].shape(), static_cast<unsigned>(80 + i)));
    left += inner(cotangents.back(), forward.tangents[i]);
  }
  Arrays back = pull_back(linear, cotangents);
  for (std::size_t i = 0; i < inputs.size(); ++i) right += inner(back[i], tangents[i]);
  EXPECT_NEAR(left, right, 1e-8 * (1 + std::abs(left)));
}

constexpr DType wide_types[] = {DType::float64, DType::complex128};

TEST_F(Linalg, CholeskyDerivative) {
  for (DType dtype : wide_types) {
    auto f = [](std::span<const Array> in) { return Arrays{la::cholesky(in[0])}; };
    check_derivative(f, {positive_definite(dtype, {3, 3})});
    check_derivative(f, {positive_definite(dtype, {2, 3, 3})});
  }
}

TEST_F(Linalg, TriangularSolveDerivative) {
  for (DType dtype : wide_types) {
    for (int bits = 0; bits < 32; ++bits) {
      la::TriangularSolveOptions form = {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0, (bits & 16) != 0};
      auto f = [form](std::span<const Array> in) { return Arrays{la::triangular_solve(in[0], in[1], form)}; };
      for (int64_t other : {2, 4}) {
        SCOPED_TRACE(concat(to_string(dtype), " ", bits, " ", other));
        check_derivative(f, {positive_definite(dtype, {3, 3}), random_matrix(dtype, form.left_side ? Shape{3, other} : Shape{other, 3})});
      }
    }
  }
}

TEST_F(Linalg, LuDerivative) {
  for (DType dtype : wide_types) {
    for (Shape shape : {Shape{3, 3}, Shape{4, 3}, Shape{3, 4}, Shape{2, 3, 3}}) {
      check_derivative([](std::span<const Array> in) { return Arrays{std::get<0>(la::lu(in[0]))}; }, {random_matrix(dtype, shape)});
    }
  }
}

TEST_F(Linalg, QrDerivative) {
  for (DType dtype : wide_types) {
    for (Shape shape : {Shape{3, 3}, Shape{5, 3}, Shape{3, 5}, Shape{2, 4, 2}}) {
      for (bool full : {false, true}) {
        SCOPED_TRACE(concat(to_string(dtype), " rows ", shape[0], full ? " full" : ""));
        auto f = [full](std::span<const Array> in) {
          auto [q, r] = la::qr(in[0], full);
          return Arrays{q, r};
        };
        check_derivative(f, {random_matrix(dtype, shape)});
        auto pivoted = [full](std::span<const Array> in) {
          auto [q, r, p] = la::qr_with_pivoting(in[0], full);
          return Arrays{q, r};
        };
        check_derivative(pivoted, {random_matrix(dtype, shape)});
      }
    }
  }
}

TEST_F(Linalg, EighDerivative) {
  check_derivative([](std::span<const Array> in) {
    auto [v, w] = la::eigh(in[0]);
    return Arrays{v, w};
  }, {random_matrix(DType::float64, {4, 4})});
  check_derivative([](std::span<const Array> in) { return Arrays{la::eigh(in[0]).second}; }, {random_matrix(DType::float64, {2, 3, 3})});
  // Complex eigenvectors are fixed up to a phase: the projections are not.
  check_derivative([](std::span<const Array> in) {
    auto [v, w] = la::eigh(in[0]);
    Array first = linalg::cols(v, 0, 1);
    return Arrays{w, times(first, linalg::adjoint(first))};
  }, {random_matrix(DType::complex128, {3, 3})}, 1e-5, false);
}

TEST_F(Linalg, SvdDerivative) {
  for (Shape shape : {Shape{3, 3}, Shape{4, 3}, Shape{3, 4}, Shape{2, 3, 2}}) {
    check_derivative([](std::span<const Array> in) {
      auto [u, s, vh] = la::svd(in[0], {.full_matrices = false});
      return Arrays{u, s, vh};
    }, {random_matrix(DType::float64, shape)});
    check_derivative([](std::span<const Array> in) { return Arrays{la::singular_values(in[0])}; }, {random_matrix(DType::complex128, shape)});
  }
  EXPECT_THROW(jvp_flat([](std::span<const Array> in) { return Arrays{std::get<0>(la::svd(in[0]))}; },
                        Arrays{random_matrix(DType::float64, {3, 2})}, Arrays{random_matrix(DType::float64, {3, 2})}),
               NotImplementedError);
}

TEST_F(Linalg, EigDerivative) {
  for (DType dtype : wide_types) {
    for (Shape shape : {Shape{3, 3}, Shape{2, 3, 3}}) {
      la::EigOptions values = {.compute_left_eigenvectors = false, .compute_right_eigenvectors = false};
      check_derivative([values](std::span<const Array> in) { return la::eig(in[0], values); }, {random_matrix(dtype, shape)});
      check_derivative([](std::span<const Array> in) { return la::eig(in[0], {.enable_eigvec_derivs = true}); }, {random_matrix(dtype, shape)}, 1e-5, false);
    }
  }
  Array a = random_matrix(DType::float64, {2, 2});
  EXPECT_THROW(jvp_flat([](std::span<const Array> in) { return la::eig(in[0]); }, Arrays{a}, Arrays{a}), NotImplementedError);
}

TEST_F(Linalg, TridiagonalSolveDerivative) {
  for (DType dtype : wide_types) {
    Arrays inputs = {random_matrix(dtype, {4}, 1), random_matrix(dtype, {4}, 2), random_matrix(dtype, {4}, 3), random_matrix(dtype, {4, 2}, 4)};
    check_derivative([](std::span<const Array> in) { return Arrays{la::tridiagonal_solve(in[0], in[1], in[2], in[3])}; }, inputs);
  }
}

TEST_F(Linalg, SolveDerivative) {
  for (DType dtype : wide_types) {
    auto f = [](std::span<const Array> in) { return Arrays{linalg::solve(in[0], in[1])}; };
    check_derivative(f, {random_matrix(dtype, {3, 3}), random_matrix(dtype, {3}, 2)});
    check_derivative(f, {random_matrix(dtype, {3, 3}), random_matrix(dtype, {3, 2}, 2)});
    check_derivative(f, {random_matrix(dtype, {2, 3, 3}), random_matrix(dtype, {2, 3, 2}, 2)});
  }
}

// ---- rules ------------------------------------------------------------------------------------------------------

TEST_F(Linalg, BatchedEqualsLooped) {
  Family family = linalg_family();
  std::erase_if(family, [](const PrimitiveRecord& record) { return !record.batch; });
  EXPECT_EQ(family.size() + 1, linalg_family().size());  // cholesky_update has none in jax either
  rule_checks::check_batching(family);
}

TEST_F(Linalg, LoweredProgramsComputeTheSame) {
  for (DType dtype : {DType::float32, DType::complex128}) {
    Family family = linalg_family();
    // What the lowering cannot express: a perturbed tridiagonal system.
    std::erase_if(family, [](const PrimitiveRecord& record) { return record.name == "tridiagonal_solve"; });
    rule_checks::check_lowering(family, dtype);
  }
  rule_checks::check_lowering(linalg_family(), DType::int32);
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
  EXPECT_THROW(la::eigh(random_matrix(DType::float64, {3, 3}), {.subset_by_index = la::IndexRange(0, 2)}), NotImplementedError);
  EXPECT_THROW(la::qr(random_matrix(DType::float16, {3, 3})), NotImplementedError);
  EXPECT_THROW(la::householder_product(random_matrix(DType::float64, {2, 3}), array<double>({1})), ValueError);
  EXPECT_THROW(la::lu_pivots_to_permutation(array<int32_t>({1, 2, 2}), 2), ValueError);
}

// ---- custom_linear_solve and custom_root ------------------------------------------------------------------------

// Conjugate gradients in a while loop, which reverse mode could not differentiate by itself.
template <class Matvec>
Array conjugate_gradients(Matvec matvec, const Array& b) {
  using State = std::tuple<Array, Array, Array, Array>;
  auto dot = [](const Array& x, const Array& y) { return lax::reduce_sum(lax::mul(x, y), {.axes = {0}}); };
  State start(lax::zeros_like(b), b, b, dot(b, b));
  auto unfinished = [](const State& s) { return lax::gt(std::get<3>(s), scalar_of(DType::float64, 1e-28)); };
  auto step = [&](const State& s) {
    const auto& [x, r, p, size] = s;
    Array ap = matvec(p);
    Array alpha = lax::div(size, dot(p, ap));
    Array next = lax::sub(r, lax::mul(alpha, ap));
    Array next_size = dot(next, next);
    return State(lax::add(x, lax::mul(alpha, p)), next, lax::add(next, lax::mul(lax::div(next_size, size), p)), next_size);
  };
  return std::get<0>(lax::while_loop(unfinished, step, start));
}

Array solve_by_gradients(const Array& a, const Array& b) {
  auto matvec = [a](const Array& x) { return lax::dot(a, x); };
  auto solve = [](const std::function<Array(const Array&)>& f, const Array& y) { return conjugate_gradients(f, y); };
  return lax::custom_linear_solve(matvec, b, solve, true);
}

TEST_F(Linalg, CustomLinearSolveDifferentiatesImplicitly) {
  Array a = positive_definite(DType::float64, {4, 4}), b = random_matrix(DType::float64, {4}, 2);
  Array x = solve_by_gradients(a, b);
  expect_close(lax::dot(a, x), b, 1e-8);
  auto f = [](std::span<const Array> in) { return Arrays{solve_by_gradients(linalg::symmetrized(in[0]), in[1])}; };
  check_derivative(f, {a, b}, 1e-4);
}

TEST_F(Linalg, CustomLinearSolveBatchesItsSystems) {
  Array a = positive_definite(DType::float64, {3, 4, 4}), b = random_matrix(DType::float64, {3, 4}, 2);
  FlatFunction f = [](std::span<const Array> in) { return Arrays{solve_by_gradients(in[0], in[1])}; };
  auto row = [](const Array& x, int64_t i) { return lax::index_in_dim(x, i, 0, false); };
  Array both = vmap_flat(f, Arrays{a, b}, std::vector<int64_t>{0, 0}, {0}, {"", 3})[0];
  Array only_b = vmap_flat(f, Arrays{row(a, 0), b}, std::vector<int64_t>{not_mapped, 0}, {0}, {"", 3})[0];
  Array only_a = vmap_flat(f, Arrays{a, row(b, 0)}, std::vector<int64_t>{0, not_mapped}, {0}, {"", 3})[0];
  for (int64_t i = 0; i < 3; ++i) {
    expect_close(row(both, i), solve_by_gradients(row(a, i), row(b, i)), 1e-8);
    expect_close(row(only_b, i), solve_by_gradients(row(a, 0), row(b, i)), 1e-8);
    expect_close(row(only_a, i), solve_by_gradients(row(a, i), row(b, 0)), 1e-8);
  }
}

TEST_F(Linalg, CustomLinearSolveReturnsAux) {
  Array a = positive_definite(DType::float64, {3, 3}), b = random_matrix(DType::float64, {3}, 2);
  auto f = [](std::span<const Array> in) {
    Array m = in[0];
    auto matvec = [m](const Array& x) { return lax::dot(m, x); };
    auto solve = [m](const std::function<Array(const Array&)>&, const Array& y) {
      return std::pair(linalg::solve(lax::stop_gradient(m), y), Array(7));
    };
    auto [x, aux] = lax::custom_linear_solve_with_aux<Array>(matvec, in[1], solve);
    EXPECT_EQ(aux.shape(), Shape{});
    return Arrays{x};
  };
  check_derivative(f, {a, b}, 1e-5, false);
  EXPECT_THROW(check_derivative(f, {a, b}), TypeError);  // no transpose_solve
}

TEST_F(Linalg, CustomLinearSolvePrintsItsPrograms) {
  auto f = [](std::span<const Array> in) {
    Array m = in[0];
    auto matvec = [m](const Array& x) { return lax::dot(m, x); };
    auto solve = [](const std::function<Array(const Array&)>&, const Array& y) { return lax::div(y, scalar_of(DType::float64, 2)); };
    return Arrays{lax::custom_linear_solve(matvec, in[1], solve)};
  };
  Types types = {random_matrix(DType::float64, {3, 3}).type(), random_matrix(DType::float64, {3}).type()};
  std::string text = stage(f, types, "f").program.to_string();
  EXPECT_NE(text.find("const_lengths=_LinearSolveTuple(matvec=1, vecmat=0, solve=0, transpose_solve=0)"), std::string::npos) << text;
  EXPECT_NE(text.find("vecmat=None, solve={ lambda"), std::string::npos) << text;
}

// The square root by Newton's method.
Array root_of(const Array& a) {
  auto f = [a](const Array& x) { return lax::sub(lax::mul(x, x), a); };
  auto solve = [](const std::function<Array(const Array&)>& g, const Array& start) {
    using State = std::pair<Array, Array>;
    auto unfinished = [](const State& s) { return lax::lt(s.second, scalar_of(DType::int32, 30)); };
    auto step = [&](const State& s) {
      Array slope = lax::mul(scalar_of(DType::float64, 2), s.first);
      return State(lax::sub(s.first, lax::div(g(s.first), slope)), lax::add(s.second, scalar_of(DType::int32, 1)));
    };
    return lax::while_loop(unfinished, step, State(start, scalar_of(DType::int32, 0))).first;
  };
  auto tangent_solve = [](const std::function<Array(const Array&)>& g, const Array& y) {
    return lax::div(y, g(lax::ones(y.type())));
  };
  return lax::custom_root(f, lax::ones(a.type()), solve, tangent_solve);
}

TEST_F(Linalg, CustomRootDifferentiatesImplicitly) {
  Array a = scalar_of(DType::float64, 3);
  EXPECT_NEAR(root_of(a).item<double>(), std::sqrt(3.0), 1e-12);
  FlatFunction f = [](std::span<const Array> in) { return Arrays{root_of(in[0])}; };
  check_derivative(f, {a}, 1e-6);
  Array many = array<double>({1, 2, 3});
  Array roots = vmap_flat(f, Arrays{many}, std::vector<int64_t>{0}, {0}, {"", 3})[0];
  expect_close(roots, lax::sqrt(many), 1e-12);
  FlatFunction slope = [&](std::span<const Array> in) { return jvp_flat(f, in, Arrays{lax::ones(in[0].type())}).tangents; };
  expect_close(slope(Arrays{a})[0], scalar_of(DType::float64, 0.5 / std::sqrt(3.0)), 1e-9);
  expect_close(jvp_flat(slope, Arrays{a}, Arrays{lax::ones(a.type())}).tangents[0], scalar_of(DType::float64, -0.25 * std::pow(3.0, -1.5)), 1e-8);
}

}  // namespace
}  // namespace capibara
