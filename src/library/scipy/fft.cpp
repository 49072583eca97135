// jax.scipy.fft: cosine transforms by one complex transform of the same length, after Makhoul (1980).
#include <capibara/scipy/fft.h>

#include <capibara/numpy/axis.h>
#include <capibara/numpy/fft.h>

#include <complex>
#include <numbers>

#include "lax/operators/promote.h"

namespace capibara::jax::scipy::fft {

namespace {

using numpy::Axis;

void check(const char* name, int64_t type, const std::string& norm) {
  if (type != 2) throw NotImplementedError(concat(name, ": only type 2 is implemented, got type ", type));
  if (!norm.empty() && norm != "backward" && norm != "ortho") {
    throw ValueError(concat("jax.scipy.fft.", name, ": norm='", norm, "' is not implemented"));
  }
}

Ints other_axes(int64_t rank, int64_t axis) {
  Ints others;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != axis) others.push_back(i);
  }
  return others;
}

Array along(const Array& vector, int64_t axis, int64_t rank) {
  return lax::expand_dims(vector, other_axes(rank, axis));
}

// exp(-i pi k / 2n).
Array quarter_turns(int64_t n, const Array& k) {
  const Array wide = lax::convert_element_type(k, complex_dtype(k.dtype()), k.weak_type());
  const std::complex<double> turn(0, -0.5 * std::numbers::pi);
  return lax::exp(turn * wide / Array(n));
}

// Even positions first, then the odd ones in reverse.
Array interleaved(const Array& x, int64_t axis) {
  const Array even = lax::slice_in_dim(x, std::nullopt, std::nullopt, 2, axis);
  const Array odd = lax::rev(lax::slice_in_dim(x, 1, std::nullopt, 2, axis), {axis});
  return lax::concatenate({even, odd}, axis);
}

Array deinterleaved(const Array& x, int64_t axis) {
  const int64_t size = x.shape(axis), half = (size + 1) / 2;
  const Array first = lax::slice_in_dim(x, 0, half, 1, axis),
              second = lax::rev(lax::slice_in_dim(x, half, size, 1, axis), {axis});
  const auto at = [&](const Array& into, std::optional<int64_t> start) {
    std::vector<Index> indices(static_cast<std::size_t>(axis), Index(slice()));
    indices.push_back(slice(start, std::nullopt, 2));
    return IndexUpdate(into, indices);
  };
  const Array out = at(lax::full(x.shape(), Array(0), x.dtype()), std::nullopt).set(first);
  return at(out, 1).set(second);
}

Array orthonormal(const Array& x, int64_t axis) {
  const int64_t size = x.shape(axis);
  const Array factor =
      lax::concatenate({lax::full({1}, Array(4), x.dtype()), lax::full({size - 1}, Array(2), x.dtype())}, 0);
  return x / lax::sqrt(along(factor, axis, x.ndim()) * Array(size));
}

Array resized(const Array& x, const Ints& axes, const Ints& sizes) {
  std::vector<lax::PadDim> config(x.shape().size());
  for (std::size_t i = 0; i < axes.size(); ++i)
    config[static_cast<std::size_t>(axes[i])].high = sizes[i] - x.shape(axes[i]);
  return lax::pad(x, lax::convert_element_type(Array(0), x.dtype(), false), config);
}

Array rolled_by_one(const Array& x, int64_t axis) {
  const int64_t size = x.shape(axis);
  return lax::concatenate({lax::slice_in_dim(x, size - 1, size, 1, axis), lax::slice_in_dim(x, 0, size - 1, 1, axis)},
                          axis);
}

Array dct_of_two(const Array& x, const Ints& axes, const std::string& norm) {
  const int64_t first = axes[0], second = axes[1];
  const Array v = numpy::fft::fftn(interleaved(interleaved(x, first), second), {.axes = axes});
  const Array k1 = along(lax::iota(v.dtype(), x.shape(first)), first, x.ndim());
  const Array k2 = along(lax::iota(v.dtype(), x.shape(second)), second, x.ndim());
  const int64_t n1 = x.shape(first), n2 = x.shape(second);
  const Array mirrored = rolled_by_one(lax::rev(v, {second}), second);
  Array quarter_turns_n1 = quarter_turns(n1, k1), product = quarter_turns(n2, k2) * v;
  Array out = quarter_turns_n1 * (product + quarter_turns(n2, -k2) * mirrored);
  out = 2 * lax::real(out);
  return norm == "ortho" ? orthonormal(orthonormal(out, first), second) : out;
}

// Axes and the input with their lengths.
struct Resolved {
  Ints axes;
  std::optional<Ints> s;
};
Resolved resolve(const char* name, const Array& x, const DctnOptions& options) {
  if (options.s && static_cast<int64_t>(options.s->size()) > x.ndim()) {
    throw ValueError(concat(name, ": s must have at most x.ndim (", x.ndim(), ") elements, got ", options.s->size()));
  }
  if (options.axes) return {Axis(*options.axes).resolve(name, x.ndim()), options.s};
  Ints axes;
  const int64_t count = options.s ? static_cast<int64_t>(options.s->size()) : x.ndim();
  for (int64_t i = x.ndim() - count; i < x.ndim(); ++i) axes.push_back(i);
  return {axes, options.s};
}

// Transforms the real and the imaginary part separately.
template <class Transform, class Options>
Array by_parts(Transform transform, const Array& x, const Options& options) {
  auto transform_x = transform(lax::real(x), options);
  return lax::complex(transform_x, transform(lax::imag(x), options));
}

}  // namespace

Array dct(const Array& input, const DctOptions& options) {
  check("dct", options.type, options.norm);
  if (is_complex(input.dtype())) return by_parts(dct, input, options);
  const int64_t axis = canonical_axis("dct", options.axis, input.ndim());
  const Array x = options.n ? resized(input, {axis}, {*options.n}) : input;
  const int64_t size = x.shape(axis);
  const Array v = numpy::fft::fft(interleaved(x, axis), {.axis = axis});
  const Array k = along(lax::iota(real_dtype(v.dtype()), size), axis, x.ndim());
  const Array out = 2 * lax::real(v * quarter_turns(size, k));
  return options.norm == "ortho" ? orthonormal(out, axis) : out;
}

Array dctn(const Array& x, const DctnOptions& options) {
  check("dctn", options.type, options.norm);
  if (is_complex(x.dtype())) return by_parts(dctn, x, options);
  const Resolved resolved = resolve("dctn", x, options);
  const Ints& axes = resolved.axes;
  if (axes.size() == 1) {
    DctOptions one = {.axis = axes[0], .norm = options.norm};
    if (resolved.s) one.n = (*resolved.s)[0];
    return dct(x, one);
  }
  Array result = resolved.s ? resized(x, axes, *resolved.s) : x;
  for (std::size_t i = 0; i < axes.size(); i += 2) {
    if (i + 1 < axes.size())
      result = dct_of_two(result, {axes[i], axes[i + 1]}, options.norm);
    else
      result = dct(result, {.axis = axes[i], .norm = options.norm});
  }
  return result;
}

Array idct(const Array& input, const DctOptions& options) {
  check("idct", options.type, options.norm);
  if (is_complex(input.dtype())) return by_parts(idct, input, options);
  const int64_t axis = canonical_axis("idct", options.axis, input.ndim());
  Array x = promote_inexact("idct", options.n ? resized(input, {axis}, {*options.n}) : input);
  const int64_t size = x.shape(axis);
  if (options.norm != "ortho") x = orthonormal(x, axis);
  x = orthonormal(x, axis);
  const Array turns = quarter_turns(size, along(lax::iota(x.dtype(), size), axis, x.ndim()));
  x = lax::convert_element_type(x, turns.dtype(), false) / turns * 2 * Array(size);
  return deinterleaved(lax::real(numpy::fft::ifft(x, {.axis = axis})), axis);
}

Array idctn(const Array& x, const DctnOptions& options) {
  check("idctn", options.type, options.norm);
  if (is_complex(x.dtype())) return by_parts(idctn, x, options);
  const Resolved resolved = resolve("idctn", x, options);
  Array result = resolved.s ? resized(x, resolved.axes, *resolved.s) : x;
  for (int64_t axis : resolved.axes) result = idct(result, {.axis = axis, .norm = options.norm});
  return result;
}

}  // namespace capibara::jax::scipy::fft
