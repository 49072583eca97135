// jax.numpy.linalg: norms of vectors and matrices, condition numbers and ranks.
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/indexing.h>
#include <capibara/numpy/linalg.h>
#include <capibara/numpy/manipulation.h>
#include <capibara/numpy/reductions.h>

#include <cmath>
#include <limits>

#include "lax/operators/promote.h"

namespace capibara::jax::numpy::linalg {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::string shown(const NormOrder& ord) {
  if (ord.name()) return *ord.name();
  return ord.number() ? concat(*ord.number()) : "None";
}

Array euclidean(const Array& x, const Axis& axis, bool keepdims) {
  return numpy::sqrt(numpy::sum(numpy::real(x * numpy::conj(x)), {.axis = axis, .keepdims = keepdims}));
}

// The maximum (or minimum) over one axis of the sums of absolute values along the other.
Array extreme_sum(const Array& x, int64_t sum_axis, int64_t extreme_axis, bool keepdims, bool greatest) {
  if (!keepdims && extreme_axis > sum_axis) --extreme_axis;
  const Array sums = numpy::sum(numpy::abs(x), {.axis = sum_axis, .keepdims = keepdims});
  if (greatest) return numpy::amax(sums, {.axis = extreme_axis, .keepdims = keepdims, .initial = Array(0)});
  return numpy::amin(sums, {.axis = extreme_axis, .keepdims = keepdims});
}

Array spectral(const Array& x, const NormOrder& ord, const Ints& axes, bool keepdims) {
  const Array s = singular_values(numpy::moveaxis(x, axes, Ints{-2, -1}));
  Array result;
  if (ord.is(2))
    result = numpy::amax(s, {.axis = -1, .initial = Array(0)});
  else if (ord.is(-2))
    result = numpy::amin(s, {.axis = -1});
  else
    result = numpy::sum(s, {.axis = -1});
  return keepdims ? numpy::expand_dims(result, axes) : result;
}

Array norm_of_matrices(const Array& x, const NormOrder& ord, const Ints& axes, bool keepdims) {
  const int64_t row = axes[0], column = axes[1];
  const std::string* name = ord.name();
  if (ord.absent() || (name && (*name == "f" || *name == "fro"))) return euclidean(x, axes, keepdims);
  if (ord.is(1) || ord.is(-1)) return extreme_sum(x, row, column, keepdims, ord.is(1));
  if (ord.is(infinity) || ord.is(-infinity)) return extreme_sum(x, column, row, keepdims, ord.is(infinity));
  if (ord.is(2) || ord.is(-2) || (name && *name == "nuc")) return spectral(x, ord, axes, keepdims);
  throw ValueError(concat("Invalid order '", shown(ord), "' for matrix norm."));
}

}  // namespace

Array norm(const Array& operand, const NormOptions& options) {
  const Array x = promote_inexact("norm", operand);
  if (options.axis.all() && options.ord.absent()) return euclidean(x, {}, options.keepdims);
  Ints axes;
  if (options.axis.all()) {
    axes = options.axis.resolve("norm", x.ndim());
  } else {
    for (int64_t axis : options.axis.list()) axes.push_back(canonical_axis("norm", axis, x.ndim()));
  }
  if (axes.size() == 1) {
    return vector_norm(
        x, {.axis = axes, .keepdims = options.keepdims, .ord = options.ord.absent() ? NormOrder(2) : options.ord});
  }
  if (axes.size() == 2) return norm_of_matrices(x, options.ord, axes, options.keepdims);
  throw ValueError(concat("Improper number of axes for norm: ", axes.size(),
                          ". Pass one axis to compute a vector-norm, or two axes to compute a matrix-norm."));
}

Array vector_norm(const Array& x, const VectorNormOptions& options) {
  const auto& [axis, keepdims, ord] = options;
  if (ord.absent() || ord.is(2)) return euclidean(x, axis, keepdims);
  if (ord.is(infinity)) return numpy::amax(numpy::abs(x), {.axis = axis, .keepdims = keepdims, .initial = Array(0)});
  if (ord.is(-infinity)) return numpy::amin(numpy::abs(x), {.axis = axis, .keepdims = keepdims});
  if (ord.is(0)) {
    if (!is_inexact(x.dtype())) {
      throw ValueError(concat("vector_norm: ord=0 needs a floating or complex array, got ", to_string(x.type())));
    }
    return numpy::sum(x != 0, {.axis = axis, .dtype = real_dtype(x.dtype()), .keepdims = keepdims});
  }
  const Array size = numpy::abs(x);
  if (ord.is(1)) return numpy::sum(size, {.axis = axis, .keepdims = keepdims});
  if (ord.name()) {
    throw ValueError(
        concat("Invalid order '", *ord.name(), "' for vector norm.",
               *ord.name() == "inf" || *ord.name() == "-inf" ? " Use a number, jax.numpy.inf, instead." : ""));
  }
  const DType dtype = size.dtype();
  const Array power = lax::convert_element_type(Array(*ord.number()), dtype, false);
  const Array root = lax::convert_element_type(Array(1.0 / *ord.number()), dtype, false);
  if (!is_inexact(dtype)) {
    return numpy::power(numpy::sum(numpy::power(size, power), {.axis = axis, .keepdims = keepdims}), root);
  }
  const Array total = numpy::sum(lax::pow(size, lax::full_like(size, power)), {.axis = axis, .keepdims = keepdims});
  return lax::pow(total, lax::full_like(total, root));
}

Array matrix_norm(const Array& x, const MatrixNormOptions& options) {
  return norm(x, {.ord = options.ord, .axis = {-2, -1}, .keepdims = options.keepdims});
}

Array cond(const Array& x, const NormOrder& p) {
  if (x.ndim() < 2) throw ValueError(concat("cond: the input must be at least 2D, got ", to_string(x.type())));
  if (x.shape(-1) == 0 || x.shape(-2) == 0)
    throw ValueError(concat("cond: the input must not be empty, got ", to_string(x.type())));
  if (p.absent() || p.is(2)) {
    const Array s = svdvals(x);
    Array s_ellipsis = s(ellipsis, 0);
    return s_ellipsis / s(ellipsis, -1);
  }
  Array result;
  if (p.is(-2)) {
    const Array s = svdvals(x);
    Array s_value = s(ellipsis, -1);
    result = s_value / s(ellipsis, 0);
  } else {
    if (x.shape(-1) != x.shape(-2)) {
      throw ValueError(concat("cond: for p=", shown(p), " the matrices must be square, got ", to_string(x.type())));
    }
    Array norm_x = norm(x, {.ord = p, .axis = {-2, -1}});
    result = norm_x * norm(inv(x), {.ord = p, .axis = {-2, -1}});
  }
  // A NaN that was not in the matrix indicates a singular one.
  const Array had_nan = numpy::any(numpy::isnan(x), {.axis = {-2, -1}});
  Array is_nan = numpy::isnan(result);
  return numpy::where(is_nan & ~had_nan, infinity, result);
}

Array matrix_rank(const Array& matrices, const MatrixRankOptions& options) {
  const Array a = promote_inexact("matrix_rank", matrices);
  if (a.ndim() < 2) return lax::convert_element_type(numpy::any(a != 0), DType::int32, false);
  const Array s = singular_values(a, {.full_matrices = false, .hermitian = options.hermitian});
  Array least;
  if (options.rtol) {
    least = *options.rtol;
  } else {
    const double longest = static_cast<double>(std::max(a.shape(-1), a.shape(-2)));
    Array larger = numpy::max(s, {.axis = -1});
    least = larger * lax::convert_element_type(Array(longest), s.dtype(), false) * finfo(s.dtype()).eps;
  }
  return numpy::sum(s > lax::expand_dims(least, {least.ndim()}), {.axis = -1});
}

Array trace(const Array& x, const MatrixTraceOptions& options) {
  return numpy::trace(x, {.offset = Array(options.offset), .axis1 = -2, .axis2 = -1, .dtype = options.dtype});
}

}  // namespace capibara::jax::numpy::linalg
