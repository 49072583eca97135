// jax.scipy.signal: convolutions, correlations and trends.
#include <capibara/scipy/signal.h>

#include <capibara/numpy/contraction.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/fft.h>
#include <capibara/numpy/linalg.h>
#include <capibara/numpy/manipulation.h>
#include <capibara/numpy/reductions.h>

#include <algorithm>

#include "lax/operators/promote.h"
#include "program/derive/derive.h"
#include "program/trace/trace.h"

namespace capibara::jax::scipy::signal {

namespace {

void check_mode(const char* name, const std::string& mode) {
  if (mode == "full" || mode == "same" || mode == "valid") return;
  throw ValueError(concat(name, ": mode must be one of ['full', 'same', 'valid'], got ", mode));
}

// True if every dimension of a is at least as large as that of b.
bool covers(const Array& a, const Array& b) {
  for (std::size_t i = 0; i < a.shape().size(); ++i) {
    if (a.shape()[i] < b.shape()[i]) return false;
  }
  return true;
}

void require_equal_rank(const char* name, const Array& a, const Array& b) {
  if (a.ndim() == b.ndim()) return;
  throw ValueError(concat(name, ": the inputs must have the same number of dimensions, got ", to_string(a.type()),
                          " and ", to_string(b.type())));
}

Array convolved(const char* name, const Array& in1, const Array& in2, const std::string& mode,
                const std::string& precision) {
  check_mode(name, mode);
  require_equal_rank(name, in1, in2);
  if (in1.size() == 0 || in2.size() == 0) {
    throw ValueError(concat(name, ": arrays without elements are not supported, got ", to_string(in1.type()), " and ",
                            to_string(in2.type())));
  }
  const Arrays both = promote_dtypes_inexact({in1, in2});
  const bool swap = covers(in2, in1);
  if (!swap && !covers(in1, in2)) {
    throw ValueError(concat(name, ": one input must be smaller than the other in every dimension, got ",
                            to_string(in1.type()), " and ", to_string(in2.type())));
  }
  const Array &large = both[swap ? 1 : 0], kernel = numpy::flip(both[swap ? 0 : 1]);
  lax::Padding padding;
  for (std::size_t i = 0; i < kernel.shape().size(); ++i) {
    const int64_t size = kernel.shape()[i], second = in2.shape()[i];
    if (mode == "valid")
      padding.emplace_back(0, 0);
    else if (mode == "full")
      padding.emplace_back(size - 1, size - 1);
    else
      padding.emplace_back(size - 1 - (second - 1) / 2, size - second + (second - 1) / 2);
  }
  const Array expanded = lax::expand_dims(large, {0, 1});
  const Array result = lax::conv_general_dilated(expanded, lax::expand_dims(kernel, {0, 1}),
                                                 {.padding = padding, .precision = precision});
  return lax::squeeze(result, {0, 1});
}

void require_matrices(const char* name, const Array& a, const Array& b) {
  if (a.ndim() == 2 && b.ndim() == 2) return;
  throw ValueError(concat(name, ": only 2-dimensional inputs are supported, got ", to_string(a.type()), " and ",
                          to_string(b.type())));
}

Array fft_convolved(const Array& first, const Array& second, const std::string& mode) {
  Array a = first, b = second;
  Shape whole;
  for (std::size_t i = 0; i < a.shape().size(); ++i) whole.push_back(a.shape()[i] + b.shape()[i] - 1);
  if (mode == "valid") {
    const bool swap = covers(b, a);
    if (!swap && !covers(a, b)) {
      throw ValueError(concat(
          "fftconvolve: for 'valid' mode, one input must be at least as large as the other in every dimension, got ",
          to_string(a.type()), " and ", to_string(b.type())));
    }
    if (swap) std::swap(a, b);
  }
  bool product = true;  // true: in each dimension one of the sizes is one
  for (std::size_t i = 0; i < whole.size(); ++i) product = product && (a.shape()[i] == 1 || b.shape()[i] == 1);
  Array result;
  if (product) {
    result = a * b;
  } else if (is_complex(a.dtype())) {
    Array fftn_a = numpy::fft::fftn(a, {.s = whole});
    result = numpy::fft::ifftn(fftn_a * numpy::fft::fftn(b, {.s = whole}), {.s = whole});
  } else {
    Array rfftn_a = numpy::fft::rfftn(a, {.s = whole});
    result = numpy::fft::irfftn(rfftn_a * numpy::fft::rfftn(b, {.s = whole}), {.s = whole});
  }
  Ints start, limit;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const int64_t size = mode == "full" ? whole[i] : mode == "same" ? a.shape()[i] : a.shape()[i] - b.shape()[i] + 1;
    start.push_back((whole[i] - size) / 2);
    limit.push_back(start.back() + size);
  }
  return lax::slice(result, start, limit);
}

}  // namespace

Array fftconvolve(const Array& in1, const Array& in2, const FftconvolveOptions& options) {
  const Arrays both = promote_dtypes_inexact({in1, in2});
  require_equal_rank("fftconvolve", in1, in2);
  check_mode("fftconvolve", options.mode);
  if (!options.axes) return fft_convolved(both[0], both[1], options.mode);
  Ints axes;
  for (int64_t axis : *options.axes) axes.push_back(canonical_axis("fftconvolve", axis, in1.ndim()));
  Ints mapped;
  for (int64_t axis = 0; axis < in1.ndim(); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) continue;
    if (in1.shape(axis) != in2.shape(axis)) {
      throw ValueError(concat("fftconvolve: the axes that are not convolved must have the same sizes, got ",
                              to_string(in1.type()), " and ", to_string(in2.type())));
    }
    mapped.push_back(axis);
  }
  FlatFunction function = [&](std::span<const Array> in) { return Arrays{fft_convolved(in[0], in[1], options.mode)}; };
  // The first mapped axis is outermost: inside it, each later axis is shifted left by one.
  for (std::size_t i = mapped.size(); i-- > 0;) {
    const int64_t axis = mapped[i] - static_cast<int64_t>(i), size = in1.shape(mapped[i]);
    function = [inner = function, axis, size](std::span<const Array> in) {
      return vmap_flat(inner, in, Ints{axis, axis}, {axis}, {"", size});
    };
  }
  return function(both)[0];
}

Array convolve(const Array& in1, const Array& in2, const ConvolveOptions& options) {
  if (options.method == "fft") return fftconvolve(in1, in2, {.mode = options.mode});
  if (options.method != "direct" && options.method != "auto") {
    throw ValueError(concat("convolve: method must be 'auto', 'fft', or 'direct', got ", options.method));
  }
  return convolved("convolve", in1, in2, options.mode, options.precision);
}

Array correlate(const Array& in1, const Array& in2, const ConvolveOptions& options) {
  return convolve(in1, numpy::flip(numpy::conj(in2)), options);
}

Array convolve2d(const Array& in1, const Array& in2, const Convolve2dOptions& options) {
  require_matrices("convolve2d", in1, in2);
  return convolved("convolve2d", in1, in2, options.mode, options.precision);
}

Array correlate2d(const Array& in1, const Array& in2, const Convolve2dOptions& options) {
  require_matrices("correlate2d", in1, in2);
  const bool swap =
      covers(in2, in1) && !(options.mode == "valid" && in1.shape() == in2.shape()) && options.mode != "same";
  if (!swap) {
    Array flip_in1 = numpy::flip(in1);
    return numpy::flip(convolved("correlate2d", flip_in1, numpy::conj(in2), options.mode, options.precision));
  }
  const Array flip_in2 = numpy::flip(in2);
  const Array result = convolved("correlate2d", flip_in2, numpy::conj(in1), options.mode, options.precision);
  return options.mode == "valid" ? result : numpy::conj(result);
}

Array detrend(const Array& data, const DetrendOptions& options) {
  if (options.type != "constant" && options.type != "linear") {
    throw ValueError(concat("detrend: trend type must be 'linear' or 'constant', got ", options.type));
  }
  Array x = promote_inexact("detrend", data);
  if (options.type == "constant") return x - numpy::mean(x, {.axis = options.axis, .keepdims = true});
  if (options.axis < -x.ndim() || options.axis >= x.ndim()) {
    throw IndexError(concat("detrend: axis ", options.axis, " is out of range for ", to_string(x.type())));
  }
  const int64_t length = x.shape(options.axis);
  Ints breaks = options.bp;
  breaks.push_back(0);
  breaks.push_back(length);
  std::sort(breaks.begin(), breaks.end());
  breaks.erase(std::unique(breaks.begin(), breaks.end()), breaks.end());
  if (breaks.front() < 0 || breaks.back() > length) {
    throw ValueError(concat("detrend: breakpoints must be between 0 and the length of the axis, ", length));
  }
  x = numpy::moveaxis(x, options.axis, 0);
  const Shape shape = x.shape();
  x = x.reshape({length, length == 0 ? 0 : x.size() / length});
  Arrays parts;
  for (std::size_t i = 0; i + 1 < breaks.size(); ++i) {
    const int64_t count = breaks[i + 1] - breaks[i];
    const Array part = lax::slice_in_dim(x, breaks[i], breaks[i + 1]);
    const Array sum = lax::iota(x.dtype(), count) + 1;
    const Array ramp = sum / lax::convert_element_type(Array(count), x.dtype(), false);
    const Array lines = lax::stack({lax::full({count}, Array(1), x.dtype()), ramp}, 1);
    const Array trend = numpy::matmul(lines, numpy::linalg::lstsq(lines, part).x, {.precision = "highest"});
    parts.push_back(part - trend);
  }
  return numpy::moveaxis(lax::concatenate(parts, 0).reshape(shape), 0, options.axis);
}

}  // namespace capibara::jax::scipy::signal
