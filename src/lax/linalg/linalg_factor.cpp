// Factorizations into triangles: cholesky, lu, and the permutations of their rows.
#include "lax/linalg/linalg.h"
#include "lax/sharding/factors.h"
#include "lax/sharding/splits.h"

#include <capibara/control.h>
#include <capibara/indexing.h>
#include <capibara/linalg.h>

#include <algorithm>
#include <cmath>

namespace capibara {

namespace lax = jax::lax;

namespace linalg {

namespace {

// ---- cholesky ---------------------------------------------------------------------------------------------------

// dL = L phi(L^-1 dA L^-H), where phi takes the lower triangle with half the diagonal.
JvpResult cholesky_jvp(const JvpArgs& args) {
  Array l = tril(capibara::bind(args.primitive, args.primals, args.attrs)[0]);
  Array right = triangular_solve(l, args.tangents[0], {.lower = true, .transpose_a = true, .conjugate_a = true});
  Array x = triangular_solve(l, right, {.left_side = true, .lower = true});
  int64_t n = x.shape(-1);
  Array lower = tril(x);
  Array weights = lax::add(scalar_of(x.dtype(), 1), eye(x.dtype(), n, n));
  Array phi = lax::div(lower, with_rank(weights, x.ndim()));
  return {{l}, {product(l, phi)}};
}

PrimitiveRecord cholesky_record() {
  PrimitiveRecord record =
      decomposition("cholesky", "The lower triangular L of A = L adjoint(L); NaN where A is not positive definite.");
  record.traits.matrix_nanoseconds = 1;
  record.dtypes = inexact_dtypes;
  record.type = [](std::span<const ArrayType> types, const Attrs&) {
    Operands operands = split_operands("cholesky", types, {.ranks = {2}});
    require_square("cholesky", operands.core[0]);
    return TypeResult(Types{types[0]});
  };
  record.jvp = cholesky_jvp;
  record.stablehlo = "stablehlo.cholesky";
  record.samples = [](DType dtype) {
    // Values near 1 with a single row are positive definite; larger random matrices show the failure.
    std::vector<Sample> samples = matrix_samples(dtype, {{1, 1}, {2, 1, 1}, {0, 2, 2}, {0, 0}});
    for (Sample& s : samples) s.low = 0.5;
    return samples;
  };
  record.flops = [](std::span<const ArrayType> types, const Attrs&) {
    return static_cast<double>(types[0].size()) * static_cast<double>(types[0].shape.back()) / 3;
  };
  return record;
}

// ---- cholesky_update --------------------------------------------------------------------------------------------

// A Givens rotation that maps (x, y) to (r, 0): its cosine and minus its sine.
std::pair<Array, Array> rotation(const Array& x, const Array& y) {
  DType dtype = x.dtype();
  using Pair = std::pair<Array, Array>;
  auto nothing = [dtype](const Array&, const Array&) { return Pair(scalar_of(dtype, 1), scalar_of(dtype, 0)); };
  auto rotate = [dtype](const Array& a, const Array& b) {
    Array size_a = lax::abs(a), size_b = lax::abs(b);
    Array scale = lax::select(lax::gt(size_a, size_b), size_a, size_b);
    Array u = lax::div(a, scale), v = lax::div(b, scale);
    Array power = lax::integer_pow(u, 2);
    Array inverse = lax::div(scalar_of(dtype, 1), lax::sqrt(lax::add(power, lax::integer_pow(v, 2))));
    Array product = lax::mul(u, inverse);
    return Pair(product, lax::mul(lax::neg(v), inverse));
  };
  return lax::cond(lax::eq(y, scalar_of(dtype, 0)), nothing, rotate, x, y);
}

Arrays lower_cholesky_update(std::span<const Array> inputs, const Attrs&) {
  Array r = inputs[0], z = inputs[1];
  for (int64_t k = 0; k < z.shape(0); ++k) {
    Array r_k = r(k, k);
    auto [cosine, sine] = rotation(r_k, z(k));
    Array row = r(k, slice());
    Array product = lax::mul(cosine, row), new_row = lax::sub(product, lax::mul(sine, z));
    Array product_cosine = lax::mul(cosine, z);
    z = lax::add(product_cosine, lax::mul(sine, row));
    r = r.at(k, slice()).set(new_row);
  }
  return {r};
}

PrimitiveRecord cholesky_update_record() {
  PrimitiveRecord record;
  record.name = "cholesky_update";
  record.factors = leading_factors(2);
  record.splits = linalg_splits({2, 1});
  record.traits.matrix_nanoseconds = 1;
  record.doc = "The factor R of A + w transpose(w), given the upper triangular R of A = transpose(R) R and w.";
  record.dtypes = {DType::float32, DType::float64};
  record.type = [](std::span<const ArrayType> types, const Attrs&) {
    Operands operands =
        split_operands("cholesky_update", types, {.ranks = {2, 1}, .batched = false, .real_only = true});
    const Shape &r = operands.core[0], &w = operands.core[1];
    if (r[0] != r[1] || w[0] != r[1]) {
      throw ValueError(
          concat("Rank-1 update to Cholesky decomposition takes a square matrix and a vector of the same size as ",
                 "input. Got ", to_string(types[0]), " and ", to_string(types[1]), " instead"));
    }
    ArrayType out = types[0];
    out.weak_type = operands.weak;
    return TypeResult(Types{out});
  };
  record.lower = lower_cholesky_update;
  record.samples = [](DType dtype) {
    std::vector<Sample> samples = {sample(dtype, {{3, 3}, {3}}), sample(dtype, {{1, 1}, {1}})};
    for (Sample& s : samples) s.low = 0.5;
    return samples;
  };
  return record;
}

// ---- lu ---------------------------------------------------------------------------------------------------------

// d(LU) = L tril(X, -1) + triu(X) U with X = L^-1 dA U^-1, both factors made square.
Array lu_tangent(std::span<const Array> in) {
  const Array &lu = in[0], &tangent = in[1], &permutation = in[2];
  int64_t m = tangent.shape(0), n = tangent.shape(1), k = std::min(m, n);
  DType dtype = tangent.dtype();
  Array zero = scalar_of(dtype, 0);
  Array l = lax::pad(tril(cols(lu, 0, k), -1), zero, {{0, 0, 0}, {0, m - k, 0}});
  l = lax::add(l, eye(dtype, m, m));
  Array u_eye = lax::pad(eye(dtype, n - k, n - k), zero, {{k, 0, 0}, {k, 0, 0}});
  Array u = lax::add(lax::pad(triu(rows(lu, 0, k)), zero, {{0, n - k, 0}, {0, 0, 0}}), u_eye);
  Array x = triangular_solve(l, tangent(permutation), {.left_side = true, .lower = true, .unit_diagonal = true});
  x = triangular_solve(u, x, {});
  Array l_tangent = matmul(l, tril(x, -1), "highest");
  return lax::add(l_tangent, matmul(triu(x), u, "highest"));
}

PrimitiveRecord lu_record() {
  PrimitiveRecord record = decomposition("lu", "L and U of P A = L U in one matrix, the pivots, and the permutation.");
  record.traits.multiple_results = true;
  record.traits.matrix_nanoseconds = 1;
  record.dtypes = inexact_dtypes;
  record.type = [](std::span<const ArrayType> types, const Attrs&) {
    Operands operands = split_operands("lu", types, {.ranks = {2}});
    int64_t m = operands.core[0][0], n = operands.core[0][1];
    operands.weak = false;
    return TypeResult(Types{types[0], operands.type(DType::int32, {std::min(m, n)}), operands.type(DType::int32, {m})});
  };
  record.jvp = [](const JvpArgs& args) {
    Arrays out = capibara::bind(args.primitive, args.primals, args.attrs);
    Array tangent = map_batch(lu_tangent, Arrays{out[0], args.tangents[0], out[2]}, out[0].ndim() - 2);
    return JvpResult{out, {tangent, Array(), Array()}};
  };
  record.samples = [](DType dtype) { return matrix_samples(dtype, matrix_shapes); };
  record.flops = [](std::span<const ArrayType> types, const Attrs&) {
    const Shape& shape = types[0].shape;
    double m = static_cast<double>(shape[shape.size() - 2]), n = static_cast<double>(shape.back());
    return static_cast<double>(types[0].size()) * std::min(m, n) -
           static_cast<double>(types[0].size()) / std::max(1.0, m * n) * std::pow(std::min(m, n), 3) / 3;
  };
  return record;
}

// Swaps row i with row pivots[i], in sequence, in a loop over all matrices at once.
Arrays lower_permutation(std::span<const Array> inputs, const Attrs& attrs) {
  const Array& pivots = inputs[0];
  int64_t size = attrs.integer("permutation_size"), count = pivots.shape(-1), batch = pivots.ndim() - 1;
  Shape shape = pivots.shape();
  shape.back() = size;
  Array start = lax::broadcasted_iota(DType::int32, shape, batch);
  if (size == 0 || count == 0) return {start};
  int64_t flat_count = 1;
  for (int64_t i = 0; i < batch; ++i) flat_count *= shape[static_cast<std::size_t>(i)];
  Array swaps = lax::reshape(pivots, {flat_count, count}), lanes = lax::iota(DType::int32, flat_count);
  auto swap_row = [&](const Array& i, const std::pair<Array, Array>& state) {
    const auto& [permutation, all] = state;
    Array j = lax::dynamic_index_in_dim(all, i, 1, false);
    Array at_i = lax::dynamic_index_in_dim(permutation, i, 1, false), at_j = permutation(lanes, j);
    Array next = lax::dynamic_update_index_in_dim(permutation, at_j, i, 1);
    return std::pair(next.at(lanes, j).set(at_i), all);
  };
  auto end = lax::fori_loop(scalar_of(DType::int32, 0), scalar_of(DType::int32, static_cast<double>(count)), swap_row,
                            std::pair(lax::reshape(start, {flat_count, size}), swaps));
  return {lax::reshape(end.first, shape)};
}

PrimitiveRecord permutation_record() {
  PrimitiveRecord record =
      decomposition("lu_pivots_to_permutation", "The permutation that a sequence of row swaps amounts to.");
  record.factors = leading_factors(1);
  record.splits = linalg_splits({1});
  record.traits.matrix_nanoseconds = 1;
  record.dtypes = {DType::int32};
  record.differentiable = false;
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) {
    require_count("lu_pivots_to_permutation", types, 1);
    const ArrayType& pivots = types[0];
    if (pivots.dtype != DType::int32) {
      throw TypeError(concat("lu_pivots_to_permutation: pivots must be int32, got ", to_string(pivots)));
    }
    if (pivots.rank() < 1) {
      throw TypeError(
          concat("Input 0 to lu_pivots_to_permutation must have rank at least 1, but got ", to_string(pivots)));
    }
    int64_t size = attrs.integer("permutation_size");
    if (size < pivots.shape.back()) {
      throw ValueError(concat("lu_pivots_to_permutation: Output permutation size ", size,
                              " has to exceed the trailing dimension of the pivots. Got pivots size ",
                              pivots.shape.back()));
    }
    ArrayType out = pivots;
    out.shape.back() = size;
    return TypeResult(Types{out});
  };
  record.lower = lower_permutation;
  record.samples = [](DType dtype) {
    std::vector<Sample> samples = {sample(dtype, {{2}}, {{"permutation_size", 3}}),
                                   sample(dtype, {{2, 3}}, {{"permutation_size", 3}}),
                                   sample(dtype, {{0}}, {{"permutation_size", 2}})};
    for (Sample& s : samples) {
      s.low = 0;
      s.high = 2.99;
    }
    return samples;
  };
  return record;
}

}  // namespace

}  // namespace linalg

std::vector<PrimitiveRecord> factor_records() {
  using namespace linalg;
  return {cholesky_record(), cholesky_update_record(), lu_record(), permutation_record()};
}

}  // namespace capibara

namespace capibara::jax::lax::linalg {

namespace matrix = capibara::linalg;

Array cholesky(const Array& x, bool symmetrize_input) {
  static const Primitive p = primitive("cholesky");
  matrix::require_matrices("cholesky", x);
  return matrix::tril(bind1(p, {symmetrize_input ? matrix::symmetrized(x) : x}));
}

Array cholesky_update(const Array& r_matrix, const Array& w_vector) {
  static const Primitive p = primitive("cholesky_update");
  return bind1(p, {r_matrix, w_vector});
}

std::tuple<Array, Array, Array> lu(const Array& x) {
  static const Primitive p = primitive("lu");
  Arrays out = capibara::bind(p, Arrays{x});
  return {out[0], out[1], out[2]};
}

Array lu_pivots_to_permutation(const Array& pivots, int64_t permutation_size) {
  static const Primitive p = primitive("lu_pivots_to_permutation");
  return bind1(p, {pivots}, {{"permutation_size", permutation_size}});
}

}  // namespace capibara::jax::lax::linalg
