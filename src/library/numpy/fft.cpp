// jax.numpy.fft: moves the transformed axes to the end, truncates or pads them, and calls lax::fft on at most three at
// a time.
#include <capibara/numpy/fft.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "lax/operators/promote.h"

namespace capibara::jax::numpy::fft {

namespace {

using lax::FftType;

// One of the transforms: its name, its lax::fft type, and the direction of its norms.
struct Transform {
  const char* name;
  FftType type;
  bool inverse;
};

Ints last_axes(int64_t rank, std::size_t count) {
  Ints axes;
  for (int64_t i = rank - static_cast<int64_t>(count); i < rank; ++i) axes.push_back(i);
  return axes;
}

// The permutation that moves `axes` to the end in their order, and its inverse.
std::pair<Ints, Ints> to_the_end(const Transform& transform, const Ints& axes, int64_t rank) {
  Ints own;
  for (int64_t axis : axes) own.push_back(canonical_axis(transform.name, axis, rank));
  if (std::set<int64_t>(own.begin(), own.end()).size() != own.size()) {
    throw TypeError(concat(transform.name, ": the same axis is given twice, counted from both ends"));
  }
  Ints forward, backward(static_cast<std::size_t>(rank));
  for (int64_t i = 0; i < rank; ++i) {
    if (std::find(own.begin(), own.end(), i) == own.end()) forward.push_back(i);
  }
  forward.insert(forward.end(), own.begin(), own.end());
  for (int64_t i = 0; i < rank; ++i) backward[static_cast<std::size_t>(forward[static_cast<std::size_t>(i)])] = i;
  return {forward, backward};
}

Array cut_or_padded(const Array& x, const Shape& shape) {
  std::vector<lax::PadDim> config;
  for (std::size_t i = 0; i < shape.size(); ++i) config.push_back({0, shape[i] - x.shape()[i], 0});
  if (shape == x.shape()) return x;
  return lax::pad(x, lax::convert_element_type(Array(0), x.dtype(), false), config);
}

// Over the last s.size() axes; more than three are transformed in several steps.
Array transform_last(const Array& x, FftType type, const Ints& s) {
  const std::size_t count = s.size();
  if (count <= 3) return lax::fft(x, type, s);
  const std::size_t now = count == 4 ? 2 : 3;
  const Ints rest(s.begin(), s.end() - static_cast<std::ptrdiff_t>(now)),
      last(s.end() - static_cast<std::ptrdiff_t>(now), s.end());
  Ints rest_axes;
  for (std::size_t i = 0; i < rest.size(); ++i) rest_axes.push_back(x.ndim() - static_cast<int64_t>(count - i));
  const auto [forward, backward] = to_the_end({"fft", type, false}, rest_axes, x.ndim());
  const bool inverse = type == FftType::ifft || type == FftType::irfft;
  const auto outer = [&, &forward = forward, &backward = backward](const Array& y) {
    return lax::transpose(transform_last(lax::transpose(y, forward), inverse ? FftType::ifft : FftType::fft, rest),
                          backward);
  };
  if (inverse) return lax::fft(outer(x), type, last);
  return outer(lax::fft(x, type, last));
}

double norm_factor(const Ints& s, const std::string& norm, bool inverse) {
  double count = 1;
  for (int64_t length : s) count *= static_cast<double>(length);
  if (norm == "backward") return 1;
  if (norm == "ortho") return inverse ? std::sqrt(count) : 1 / std::sqrt(count);
  if (norm == "forward") return inverse ? count : 1 / count;
  throw ValueError(concat("Invalid norm value ", norm, "; should be \"backward\",\"ortho\" or \"forward\"."));
}

Array run(const Transform& transform, const Array& a, const FftnOptions& options) {
  if (options.s) {
    for (int64_t length : *options.s) {
      if (length <= 0) throw ValueError(concat(transform.name, ": Shape should be positive, got ", length));
    }
  }
  if (options.s && options.axes && options.s->size() != options.axes->size()) {
    throw ValueError(concat(transform.name, ": Shape and axes have different lengths: ", options.s->size(), " and ",
                            options.axes->size()));
  }
  const std::size_t count = options.axes ? options.axes->size() : options.s ? options.s->size() : a.shape().size();
  if (static_cast<int64_t>(count) > a.ndim()) {
    throw ValueError(
        concat(transform.name, ": the input must have at least ", count, " dimensions, got ", to_string(a.type())));
  }
  Array x = a;
  std::pair<Ints, Ints> permutations;
  if (options.axes) {
    if (std::set<int64_t>(options.axes->begin(), options.axes->end()).size() != count) {
      throw ValueError(concat("jax.numpy.fft.", transform.name, " does not support repeated axes."));
    }
    permutations = to_the_end(transform, *options.axes, a.ndim());
    x = lax::transpose(a, permutations.first);
  }
  Ints s;
  const Ints axes = last_axes(x.ndim(), count);
  if (options.s) {
    s = *options.s;
    Shape shape = x.shape();
    for (std::size_t i = 0; i < count; ++i) shape[static_cast<std::size_t>(axes[i])] = s[i];
    if (transform.type == FftType::irfft) shape.back() = shape.back() / 2 + 1;
    x = cut_or_padded(x, shape);
  } else {
    for (int64_t axis : axes) s.push_back(x.shape(axis));
    if (transform.type == FftType::irfft && !s.empty()) s.back() = std::max<int64_t>(0, 2 * (s.back() - 1));
  }
  Array transformed = transform_last(x, transform.type, s);
  if (!options.norm.empty()) {
    const double factor = norm_factor(s, options.norm, transform.inverse);
    transformed = transformed * lax::convert_element_type(Array(factor), transformed.dtype(), false);
  }
  return options.axes ? lax::transpose(transformed, permutations.second) : transformed;
}

Array run(const Transform& transform, const Array& a, const FftOptions& options) {
  FftnOptions all{.norm = options.norm};
  if (options.n) all.s = Ints{*options.n};
  if (options.axis) all.axes = Ints{*options.axis};
  return run(transform, a, all);
}

Array run(const Transform& transform, const Array& a, const Fft2Options& options) {
  if (options.axes.size() != 2) {
    throw ValueError(
        concat("jax.numpy.fft.", transform.name, " only supports 2 axes. Got ", options.axes.size(), " axes."));
  }
  return run(transform, a, FftnOptions{.s = options.s, .axes = options.axes, .norm = options.norm});
}

int64_t length_along(const char* name, const Array& x, std::optional<int64_t> axis) {
  if (!axis) throw TypeError(concat(name, ": axis must be an integer, got None"));
  if (*axis < -x.ndim() || *axis >= x.ndim()) {
    throw IndexError(concat(name, ": axis ", *axis, " is out of range for an array of dimension ", x.ndim()));
  }
  return x.shape(*axis);
}

Array shifted(const char* name, const Array& x, const Axis& axes, bool forward) {
  Array result = x;
  const Ints all = axes.all() ? axes.resolve(name, x.ndim()) : axes.list();
  for (int64_t axis : all) {
    const int64_t size = length_along(name, x, axis), half = size / 2;
    const int64_t split = forward ? size - half : half;  // the first `split` elements move to the end
    if (half == 0) continue;
    const int64_t own = axis < 0 ? axis + x.ndim() : axis;
    result = lax::concatenate(
        {lax::slice_in_dim(result, split, size, 1, own), lax::slice_in_dim(result, 0, split, 1, own)}, own);
  }
  return result;
}

constexpr Transform fft_row{"fft", FftType::fft, false}, ifft_row{"ifft", FftType::ifft, true};
constexpr Transform rfft_row{"rfft", FftType::rfft, false}, irfft_row{"irfft", FftType::irfft, true};
constexpr Transform hfft_row{"hfft", FftType::irfft, false}, ihfft_row{"ihfft", FftType::rfft, true};
constexpr Transform fftn_row{"fftn", FftType::fft, false}, ifftn_row{"ifftn", FftType::ifft, true};
constexpr Transform rfftn_row{"rfftn", FftType::rfft, false}, irfftn_row{"irfftn", FftType::irfft, true};
constexpr Transform fft2_row{"fft2", FftType::fft, false}, ifft2_row{"ifft2", FftType::ifft, true};
constexpr Transform rfft2_row{"rfft2", FftType::rfft, false}, irfft2_row{"irfft2", FftType::irfft, true};

}  // namespace

Array fft(const Array& a, const FftOptions& options) { return run(fft_row, a, options); }
Array ifft(const Array& a, const FftOptions& options) { return run(ifft_row, a, options); }
Array rfft(const Array& a, const FftOptions& options) { return run(rfft_row, a, options); }
Array irfft(const Array& a, const FftOptions& options) { return run(irfft_row, a, options); }

Array hfft(const Array& a, const FftOptions& options) {
  const int64_t n = options.n ? *options.n : 2 * (length_along("hfft", a, options.axis) - 1);
  return run(hfft_row, is_complex(a.dtype()) ? lax::conj(a) : a, options) * Array(n);
}

Array ihfft(const Array& a, const FftOptions& options) {
  const int64_t n = options.n ? *options.n : length_along("ihfft", a, options.axis);
  return lax::conj(run(ihfft_row, a, options)) * Array(1.0 / static_cast<double>(n));
}

Array fftn(const Array& a, const FftnOptions& options) { return run(fftn_row, a, options); }
Array ifftn(const Array& a, const FftnOptions& options) { return run(ifftn_row, a, options); }
Array rfftn(const Array& a, const FftnOptions& options) { return run(rfftn_row, a, options); }
Array irfftn(const Array& a, const FftnOptions& options) { return run(irfftn_row, a, options); }

Array fft2(const Array& a, const Fft2Options& options) { return run(fft2_row, a, options); }
Array ifft2(const Array& a, const Fft2Options& options) { return run(ifft2_row, a, options); }
Array rfft2(const Array& a, const Fft2Options& options) { return run(rfft2_row, a, options); }
Array irfft2(const Array& a, const Fft2Options& options) { return run(irfft2_row, a, options); }

Array fftfreq(int64_t n, const FrequencyOptions& options) {
  const DType result_dtype = options.dtype.value_or(default_float());
  const DType dtype = real_dtype(inexact_dtype(result_dtype));
  const Array half(n / 2), i = lax::iota(dtype, n);
  const Array k = (i + half) % Array(n) - half;
  const Array frequencies = k / lax::convert_element_type(options.d * Array(n), dtype, false);
  return lax::convert_element_type(frequencies, result_dtype, false);
}

Array rfftfreq(int64_t n, const FrequencyOptions& options) {
  const DType dtype = options.dtype.value_or(default_float());
  const Array k = lax::iota(dtype, n / 2 + 1);
  return k / lax::convert_element_type(options.d * Array(n), dtype, false);
}

Array fftshift(const Array& x, const Axis& axes) { return shifted("fftshift", x, axes, true); }
Array ifftshift(const Array& x, const Axis& axes) { return shifted("ifftshift", x, axes, false); }

}  // namespace capibara::jax::numpy::fft
