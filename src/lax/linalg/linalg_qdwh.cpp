// The polar decomposition by dynamically weighted Halley iterations, a composition of the other functions.
#include <capibara/control.h>
#include <capibara/linalg.h>

#include <cmath>

#include "lax/linalg/linalg.h"

namespace capibara::jax::lax::linalg {

namespace matrix = capibara::linalg;

namespace {

// One step u -> (b/c) u + (a - b/c) u (I + c adjoint(u) u)^-1, by QR for large c and by Cholesky otherwise.
Array qdwh_step(const Array& u, const Array& a, const Array& b, const Array& c) {
  int64_t n = u.shape(-1), m = u.shape(-2);
  DType dtype = u.dtype(), real = real_dtype(dtype);
  auto wide = [dtype](const Array& x) { return matrix::as_dtype(x, dtype); };
  auto by_qr = [&](const Array& v, const Array& x, const Array& y, const Array& z) {
    Array root = lax::sqrt(z);
    auto [q, r] = qr(concatenate({mul(wide(root), v), matrix::eye(dtype, n, n)}, 0), false);
    Array top = matrix::rows(q, 0, m), bottom = matrix::rows(q, m, m + n);
    Array weight = div(sub(x, div(y, z)), root);
    Array product_y = mul(wide(div(y, z)), v);
    Array wide_weight = wide(weight);
    return add(product_y, mul(wide_weight, matrix::product(top, matrix::adjoint(bottom))));
  };
  auto by_cholesky = [&](const Array& v, const Array& x, const Array& y, const Array& z) {
    Array wide_z = wide(z), scaled = mul(wide_z, matrix::product(matrix::adjoint(v), v));
    Array gram = add(scaled, matrix::eye(dtype, n, n));
    Array factor = cholesky(gram);
    matrix::TriangularForm inner = {.left_side = false, .lower = true, .transpose_a = true, .conjugate_a = true};
    Array w = matrix::triangular_solve(factor, v, inner);
    w = matrix::triangular_solve(factor, w, {.left_side = false, .lower = true});
    Array first_product = mul(wide(div(y, z)), v);
    return add(first_product, mul(wide(sub(x, div(y, z))), w));
  };
  return cond(gt(c, scalar_of(real, 100)), by_qr, by_cholesky, u, a, b, c);
}

}  // namespace

std::tuple<Array, Array, Array, Array> qdwh(const Array& x, const QdwhOptions& options) {
  if (x.ndim() != 2 || x.shape(0) < x.shape(1)) {
    throw ValueError(
        concat("qdwh: the input must be one matrix with at least as many rows as columns, got ", to_string(x.type())));
  }
  if (!is_inexact(x.dtype()))
    throw TypeError(concat("qdwh: a floating or complex matrix is needed, got ", to_string(x.type())));
  DType real = real_dtype(x.dtype());
  double eps = options.eps ? *options.eps : real == DType::float64 ? 0x1p-52 : 0x1p-23;
  int64_t limit = options.max_iterations.value_or(10);
  auto constant = [real](double value) { return scalar_of(real, value); };
  // An upper bound of the largest singular value scales all of them into (0, 1].
  Array size = lax::abs(x);
  Array columns = reduce_max(reduce_sum(size, {.axes = {0}}), {.axes = {0}});
  Array row_sums = reduce_max(reduce_sum(size, {.axes = {1}}), {.axes = {0}});
  Array bound = lax::sqrt(mul(columns, row_sums));
  bound = select(gt(bound, constant(0)), bound, constant(1));
  using State = std::tuple<Array, Array, Array, Array>;  // u, the lower bound of its singular values, count, converged
  Array quotient = div(x, matrix::as_dtype(bound, x.dtype()));
  State start(quotient, constant(eps), scalar_of(DType::int32, 0), eq(constant(0), constant(1)));
  double tolerance = std::cbrt(5 * eps), bound_tolerance = 5 * eps;
  auto unfinished = [&](const State& s) {
    Array inverse = bitwise_not(std::get<3>(s));
    return bitwise_and(inverse, lt(std::get<2>(s), scalar_of(DType::int32, static_cast<double>(limit))));
  };
  auto step = [&](const State& s) {
    const auto& [u, l, count, done] = s;
    Array l2 = mul(l, l);
    Array dd = cbrt(div(mul(constant(4), sub(div(constant(1), l2), constant(1))), l2));
    Array root = lax::sqrt(add(constant(1), dd));
    Array difference = sub(constant(8), mul(constant(4), dd)), product_mul = mul(constant(8), sub(constant(2), l2));
    Array inner = add(difference, div(product_mul, mul(l2, root)));
    Array a = add(root, div(lax::sqrt(inner), constant(2)));
    Array b = div(integer_pow(sub(a, constant(1)), 2), constant(4));
    Array c = sub(add(a, b), constant(1));
    Array next = qdwh_step(u, a, b, c);
    Array product_l = mul(l, add(a, mul(b, l2)));
    Array raised = lax::min(div(product_l, add(constant(1), mul(c, l2))), constant(1));
    Array change = lax::sqrt(reduce_sum(square(lax::abs(sub(next, u))), {.axes = {0, 1}}));
    Array is_at_most = le(change, constant(tolerance));
    Array small = bitwise_and(is_at_most, le(lax::abs(sub(raised, constant(1))), constant(bound_tolerance)));
    return State(next, raised, add(count, scalar_of(DType::int32, 1)), small);
  };
  auto [u, l, count, converged] = while_loop(unfinished, step, start);
  // One Newton-Schulz step repairs the last rounding errors.
  Array gram = matrix::product(matrix::adjoint(u), u);
  Array product_x = mul(scalar_of(x.dtype(), 1.5), u);
  Array polished = sub(product_x, mul(scalar_of(x.dtype(), 0.5), matrix::product(u, gram)));
  Array h = matrix::symmetrized(matrix::product(matrix::adjoint(polished), x));
  return {polished, h, count, converged};
}

}  // namespace capibara::jax::lax::linalg
