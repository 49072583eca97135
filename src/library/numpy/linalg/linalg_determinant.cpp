// jax.numpy.linalg: determinants, with derivatives that remain finite for singular matrices.
#include <capibara/custom_derivatives.h>
#include <capibara/linalg.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/linalg.h>
#include <capibara/numpy/reductions.h>

#include <limits>

#include "lax/linalg/linalg.h"
#include "lax/operators/promote.h"

namespace capibara::jax::numpy::linalg {

namespace matrix = capibara::linalg;

namespace {

using Pair = std::tuple<Array, Array>;

Array entry(const Array& a, int64_t row, int64_t column) { return a(ellipsis, row, column); }

Array scalar(double value, DType dtype) { return lax::convert_element_type(Array(value), dtype, false); }

Array trace_of(const Array& a) { return numpy::sum(matrix::diagonal(a), {.axis = -1}); }

Array det_2x2(const Array& a) {
  Array entry_a = entry(a, 0, 0), product = entry_a * entry(a, 1, 1), entry_value = entry(a, 0, 1);
  return product - entry_value * entry(a, 1, 0);
}

Array det_3x3(const Array& a) {
  const auto term = [&](int64_t i, int64_t j, int64_t k) {
    Array entry_a = entry(a, 0, i), product = entry_a * entry(a, 1, j);
    return product * entry(a, 2, k);
  };
  Array term_value = term(0, 1, 2), sum = term_value + term(1, 2, 0), sum_term = sum + term(2, 0, 1);
  Array difference = sum_term - term(2, 1, 0), difference_term = difference - term(0, 2, 1);
  return difference_term - term(1, 0, 2);
}

// The tangents of sign and logarithm, derived from that of the logarithm of the complex determinant.
Pair split_tangent(const Array& tangent, const Array& sign) {
  if (!is_complex(sign.dtype())) return {lax::zeros(sign.type()), tangent};
  const Array real = lax::real(tangent);
  return {(tangent - lax::convert_element_type(real, tangent.dtype())) * sign, real};
}

// ---- 1x1 and 2x2 -------------------------------------------------------------------------------------------------

Array det_small(const Array& a) { return a.shape(-1) == 1 ? entry(a, 0, 0) : det_2x2(a); }

Array det_small_tangent(const Array& a, const Array& t) {
  if (a.shape(-1) == 1) return entry(t, 0, 0);
  Array entry_t = entry(t, 0, 0), product = entry_t * entry(a, 1, 1), entry_value = entry(t, 0, 1);
  Array difference = product - entry_value * entry(a, 1, 0), first_entry = entry(t, 1, 0);
  Array difference_t = difference - first_entry * entry(a, 0, 1), second_entry = entry(t, 1, 1);
  return difference_t + second_entry * entry(a, 0, 0);
}

Pair slogdet_small(const Array& matrices) {
  static const auto function = [] {
    auto made = custom_jvp(
        [](Array a) -> Pair {
          const Array det = det_small(a);
          return {numpy::sign(det), lax::log(lax::abs(det))};
        },
        "_slogdet_small");
    made.defjvp(
        [](const std::tuple<Array>& primals, const std::tuple<Array>& tangents) {
          const Array &a = std::get<0>(primals), &t = std::get<0>(tangents);
          // The sign of a complex determinant varies; its higher derivatives see that only through this rule.
          const Pair primal = slogdet_small(a);
          const Array tangent = det_small_tangent(a, t), det = det_small(a);
          return std::tuple(primal, split_tangent(tangent / det, std::get<0>(primal)));
        },
        "_slogdet_small_jvp");
    return made;
  }();
  return function(matrices);
}

// ---- any size ----------------------------------------------------------------------------------------------------

// The number of row exchanges in the factorization.
Array exchanges(const Array& pivots) {
  const Array order = lax::broadcasted_iota(pivots.dtype(), pivots.shape(), pivots.ndim() - 1);
  return numpy::count_nonzero(pivots != order, {.axis = -1});
}

// 1 if the count is even, -1 if it is odd.
Array parity_sign(const Array& count, DType dtype) {
  return lax::convert_element_type(-2 * (count % 2) + 1, dtype, false);
}

Pair slogdet_by_lu(const Array& a) {
  const DType dtype = a.dtype();
  const auto [factors, pivots, permutation] = lax::linalg::lu(a);
  const Array diagonal = matrix::diagonal(factors);
  const Array singular = numpy::any(diagonal == scalar(0, dtype), {.axis = -1});
  Array count = exchanges(pivots), sign = scalar(1, dtype);
  if (is_complex(dtype)) {
    sign = numpy::prod(diagonal / lax::convert_element_type(lax::abs(diagonal), dtype), {.axis = -1});
  } else {
    count = count + numpy::count_nonzero(diagonal < 0, {.axis = -1});
  }
  Array scalar_value = scalar(0, dtype);
  sign = numpy::where(singular, scalar_value, sign * parity_sign(count, dtype));
  const Array logarithm = numpy::sum(lax::log(lax::abs(diagonal)), {.axis = -1});
  return {sign, numpy::where(singular, scalar(-std::numeric_limits<double>::infinity(), real_dtype(dtype)), logarithm)};
}

Pair slogdet_by_qr(const Array& a) {
  static const Primitive geqrf = primitive("geqrf");
  if (is_complex(a.dtype())) {
    throw NotImplementedError(concat("slogdet: method 'qr' is for real matrices, got ", to_string(a.type())));
  }
  const Arrays reflected = capibara::bind(geqrf, Arrays{a});
  const Array diagonal = matrix::diagonal(reflected[0]), taus = reflected[1];
  // Each nontrivial reflection flips the sign.
  const Array used = lax::slice_in_dim(taus, 0, std::max<int64_t>(a.shape(-1) - 1, 0), 1, taus.ndim() - 1);
  const Array flips = numpy::prod(numpy::where(used != 0, -1, 1), {.axis = -1});
  const Array sign = numpy::prod(numpy::sign(diagonal), {.axis = -1});
  return {sign * lax::convert_element_type(flips, sign.dtype(), false),
          numpy::sum(lax::log(lax::abs(diagonal)), {.axis = -1})};
}

// custom_jvp of a slogdet with derivative trace(inv(a) da).
template <Pair (*value)(const Array&)>
Pair slogdet_of(const Array& matrices) {
  static const auto function = [] {
    auto made = custom_jvp([](Array a) -> Pair { return value(a); }, "_slogdet");
    made.defjvp(
        [](const std::tuple<Array>& primals, const std::tuple<Array>& tangents) {
          const SlogdetResult primal = slogdet(std::get<0>(primals));
          const Array tangent = trace_of(solve(std::get<0>(primals), std::get<0>(tangents)));
          return std::tuple(Pair(primal.sign, primal.logabsdet), split_tangent(tangent, primal.sign));
        },
        "_slogdet_jvp");
    return made;
  }();
  return function(matrices);
}

// ---- det ---------------------------------------------------------------------------------------------------------

// det(a), and det(a) inv(a) b, which exists even for singular a: the last pivot is never a divisor.
std::pair<Array, Array> cofactor_solve(const Array& a, const Array& b) {
  if (a.shape(-1) == 1) return {entry(a, 0, 0), b};
  const int64_t batch_rank = a.ndim() - 2, n = a.shape(-1);
  auto [factors, pivots, permutation] = lax::linalg::lu(a);
  const Array diagonal = matrix::diagonal(factors);
  const Array sign = parity_sign(exchanges(pivots), a.dtype());
  const Array cumprod_diagonal = lax::cumprod(diagonal, {.axis = batch_rank});
  const Array minors = cumprod_diagonal * lax::expand_dims(sign, {batch_rank});
  factors = factors.at(ellipsis, -1, -1).set(1.0 / minors(ellipsis, -2));
  // Matrices of even lower rank have no cofactors.
  Shape vector(a.shape().begin(), a.shape().end() - 1);
  const Array probe =
      lax::linalg::triangular_solve(factors, lax::full(vector, Array(1), a.dtype()), {.left_side = true});
  const Array is_nan = numpy::isnan(probe);
  Array deficient = numpy::any(is_nan | numpy::isinf(probe), {.axis = -1});
  deficient = broadcast_to("det", lax::expand_dims(deficient, {batch_rank, batch_rank + 1}), b.shape());
  Array x = lax::select(deficient, lax::zeros(b.type()), b);
  x = matrix::map_batch([](std::span<const Array> in) { return in[0](in[1]); }, Arrays{x, permutation}, batch_rank);
  x = matrix::triangular_solve(factors, x, {.left_side = true, .lower = true, .unit_diagonal = true});
  const Array full = minors(ellipsis, -1);
  const Array upper = matrix::rows(x, 0, n - 1);
  x = lax::concatenate({upper * lax::expand_dims(full, {batch_rank, batch_rank + 1}), matrix::rows(x, n - 1, n)},
                       batch_rank);
  x = matrix::triangular_solve(factors, x, {.left_side = true});
  return {full, lax::select(deficient, lax::zeros(x.type()), x)};
}

Array det_of(const Array& matrices) {
  static const auto function = [] {
    auto made = custom_jvp(
        [](Array a) -> Array {
          const SlogdetResult parts = slogdet(a);
          return parts.sign * lax::convert_element_type(lax::exp(parts.logabsdet), parts.sign.dtype());
        },
        "_det");
    made.defjvp(
        [](const std::tuple<Array>& primals, const std::tuple<Array>& tangents) {
          const auto [value, solution] = cofactor_solve(std::get<0>(primals), std::get<0>(tangents));
          return std::tuple(value, trace_of(solution));
        },
        "_det_jvp");
    return made;
  }();
  return function(matrices);
}

void require_square(const char* name, const Array& a) {
  if (a.ndim() >= 2 && a.shape(-1) == a.shape(-2)) return;
  throw ValueError(concat("Argument to ", name, "() must have shape [..., n, n], got ", to_string(a.type())));
}

}  // namespace

SlogdetResult slogdet(const Array& matrices, const std::string& method) {
  const Array a = promote_inexact("slogdet", matrices);
  require_square("slogdet", a);
  if (method != "lu" && method != "qr") {
    throw ValueError(concat("Unknown slogdet method '", method, "'. Supported methods are 'lu' (`None`), and 'qr'."));
  }
  const int64_t n = a.shape(-1);
  const auto [sign, logarithm] = method == "qr"     ? slogdet_of<slogdet_by_qr>(a)
                                 : n == 1 || n == 2 ? slogdet_small(a)
                                                    : slogdet_of<slogdet_by_lu>(a);
  return {sign, logarithm};
}

Array det(const Array& matrices) {
  const Array a = promote_inexact("det", matrices);
  require_square("det", a);
  if (a.shape(-1) == 2) return det_2x2(a);
  if (a.shape(-1) == 3) return det_3x3(a);
  return det_of(a);
}

}  // namespace capibara::jax::numpy::linalg
