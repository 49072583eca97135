// jax.image: each resampled dimension is contracted with a matrix of kernel weights, input size x output size.
#include <capibara/image.h>

#include <capibara/numpy/elementwise.h>

#include <cmath>
#include <numbers>

#include "lax/operators/promote.h"

namespace capibara::jax::image {

namespace {

constexpr double pi = std::numbers::pi;

using numpy::maximum;
using numpy::minimum;
using numpy::where;

// The kernels at distances x >= 0, in pixels of the input.
Array lanczos_kernel(const Array& x, double radius) {
  const Array product = radius * lax::sin(pi * x);
  const Array y = product * lax::sin(pi * x / radius);
  const Array is_different = x != 0;
  const Array safe = where(is_different, (pi * pi) * lax::square(x), 1);
  Array is_greater = x > radius, is_greater_x = x > 1e-3;
  return where(is_greater, 0.0, where(is_greater_x, y / safe, 1));
}

Array triangle_kernel(const Array& x) { return maximum(0, 1 - lax::abs(x)); }

// Keys' cubic convolution with derivative -0.5 at distance 1.
Array keys_kernel(const Array& x) {
  const Array near = ((1.5 * x - 2.5) * x) * x + 1.0;
  const Array far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0;
  Array is_at_least = x >= 2.0;
  return where(is_at_least, 0.0, where(x >= 1.0, far, near));
}

// The same with derivative -0.75, as in PyTorch and OpenCV without antialiasing.
Array steep_cubic_kernel(const Array& x) {
  const double a = -0.75;
  const Array near = ((a + 2) * x - (a + 3)) * x * x + 1.0;
  const Array far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  Array is_at_least = x >= 2.0;
  return where(is_at_least, 0.0, where(x >= 1.0, far, near));
}

Array kernel_at(ResizeMethod method, const Array& x) {
  switch (method) {
    case ResizeMethod::lanczos3:
      return lanczos_kernel(x, 3);
    case ResizeMethod::lanczos5:
      return lanczos_kernel(x, 5);
    case ResizeMethod::cubic:
      return keys_kernel(x);
    case ResizeMethod::cubic_pytorch:
      return steep_cubic_kernel(x);
    default:
      return triangle_kernel(x);
  }
}

Array as_row(const Array& x) { return lax::expand_dims(x, {0}); }
Array as_column(const Array& x) { return lax::expand_dims(x, {1}); }

Array normalized(const Array& weights) {
  const Array total = lax::expand_dims(lax::reduce_sum(weights, {.axes = {0}}), {0});
  const Array share = weights / where(total != 0, total, 1);
  return where(lax::abs(total) > 1000.0 * 0x1p-23, share, 0);
}

// How one dimension is resampled. The inverse is stored separately, so that for a static scale it is rounded only once.
struct Warp {
  Array inverse_scale, translation;
  DType dtype;
};

// The overlap of each output pixel, mapped back to the input, with each input pixel.
Array area_weights(int64_t inputs, int64_t outputs, const Warp& warp) {
  const Array product = lax::iota(warp.dtype, outputs) * warp.inverse_scale;
  const Array left = product - warp.translation * warp.inverse_scale;
  const Array right = left + warp.inverse_scale;
  const Array begin = lax::iota(warp.dtype, inputs), end = begin + 1.0;
  Array as_row_right = as_row(right), smaller = minimum(as_row_right, as_column(end)), as_row_left = as_row(left);
  return maximum(0.0, smaller - maximum(as_row_left, as_column(begin)));
}

// Weights outside the image are added to its edge pixels.
Array folded_to_edges(const Array& weights, int64_t inputs, int64_t radius) {
  const int64_t outputs = weights.shape(1), rows = inputs + 2 * radius;
  const Array positions = lax::iota(DType::int32, rows);
  const Array index = lax::sub(positions, lax::full({rows}, Array(radius), DType::int32));
  const Array filled = lax::full({}, Array(0), DType::int32);
  const Array edge = lax::clamp(filled, index, lax::full({}, Array(inputs - 1), DType::int32));
  const Array zeros = lax::full({inputs, outputs}, Array(0), weights.dtype());
  return zeros.at(edge).add(weights);
}

Array weight_matrix(int64_t inputs, int64_t outputs, const Warp& warp, ResizeMethod method, bool antialias) {
  const bool edge_padding = method == ResizeMethod::cubic_pytorch;
  const int64_t radius = edge_padding ? 2 : 0;
  const Array kernel_scale = antialias ? maximum(warp.inverse_scale, 1.0) : Array(1.0);
  const Array product = (lax::iota(warp.dtype, outputs) + 0.5) * warp.inverse_scale;
  const Array sample = product - warp.translation * warp.inverse_scale - 0.5;
  Array weights;
  if (method == ResizeMethod::area) {
    weights = area_weights(inputs, outputs, warp);
  } else {
    const Array pixel = lax::iota(warp.dtype, inputs + 2 * radius) - static_cast<double>(radius);
    Array as_row_sample = as_row(sample);
    weights = kernel_at(method, lax::abs(as_row_sample - as_column(pixel)) / kernel_scale);
  }
  if (edge_padding) return normalized(folded_to_edges(weights, inputs, radius));
  weights = normalized(weights);
  const Array is_at_least = sample >= -0.5;
  const Array inside = is_at_least & (sample <= static_cast<double>(inputs) - 0.5);
  return where(as_row(inside), weights, 0);
}

// image with dimension `dim` contracted with weights, input size x output size.
Array contracted(const Array& image, const Array& weights, int64_t dim, const std::string& precision) {
  const Array product = lax::dot_general(image, weights, {{dim}, {0}, {}, {}}, {.precision = precision});
  Ints permutation;
  for (int64_t i = 0; i < image.ndim(); ++i) {
    permutation.push_back(i < dim ? i : i == dim ? image.ndim() - 1 : i - 1);
  }
  return lax::transpose(product, permutation);
}

Array resampled(const Array& image, const Shape& shape, const Ints& dims, const std::vector<Warp>& warps,
                ResizeMethod method, const ResizeOptions& options) {
  Array result = image;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const int64_t dim = canonical_axis("image", dims[i], image.ndim());
    const Array weights =
        weight_matrix(image.shape(dim), shape[static_cast<std::size_t>(dim)], warps[i], method, options.antialias);
    result = contracted(result, lax::convert_element_type(weights, image.dtype(), false), dim, options.precision);
  }
  return result;
}

Array resized_to_nearest(const Array& image, const Shape& shape) {
  Array result = image;
  for (int64_t dim = 0; dim < image.ndim(); ++dim) {
    const int64_t inputs = image.shape(dim), outputs = shape[static_cast<std::size_t>(dim)];
    if (inputs == outputs) continue;
    // In float32 even if x64 is on, as in jax.
    const Array position =
        (lax::iota(DType::float32, outputs) + 0.5) * static_cast<double>(inputs) / static_cast<double>(outputs);
    std::vector<Index> indices(static_cast<std::size_t>(dim), Index(slice()));
    indices.push_back(lax::convert_element_type(lax::floor(position), DType::int32));
    result = index(result, indices);
  }
  return result;
}

void check_shape(const char* name, const Array& image, const Shape& shape) {
  if (static_cast<int64_t>(shape.size()) == image.ndim()) return;
  throw ValueError(concat(name, ": shape must have length equal to the number of dimensions of x; got ", shape.size(),
                          " sizes for ", to_string(image.type())));
}

}  // namespace

ResizeMethod resize_method(const std::string& name) {
  static const std::pair<const char*, ResizeMethod> names[] = {{"nearest", ResizeMethod::nearest},
                                                               {"linear", ResizeMethod::linear},
                                                               {"bilinear", ResizeMethod::linear},
                                                               {"trilinear", ResizeMethod::linear},
                                                               {"triangle", ResizeMethod::linear},
                                                               {"lanczos3", ResizeMethod::lanczos3},
                                                               {"lanczos5", ResizeMethod::lanczos5},
                                                               {"cubic", ResizeMethod::cubic},
                                                               {"bicubic", ResizeMethod::cubic},
                                                               {"tricubic", ResizeMethod::cubic},
                                                               {"cubic-pytorch", ResizeMethod::cubic_pytorch},
                                                               {"bicubic-pytorch", ResizeMethod::cubic_pytorch},
                                                               {"area", ResizeMethod::area}};
  for (const auto& [known, method] : names) {
    if (name == known) return method;
  }
  throw ValueError(concat("Unknown resize method \"", name, "\""));
}

Array resize(const Array& image, const Shape& shape, ResizeMethod method, const ResizeOptions& options) {
  check_shape("resize", image, shape);
  if (method == ResizeMethod::nearest) return resized_to_nearest(image, shape);
  const Array pixels = promote_inexact("resize", image);
  if (method == ResizeMethod::cubic_pytorch && options.antialias) method = ResizeMethod::cubic;
  Ints dims;
  std::vector<Warp> warps;
  for (int64_t dim = 0; dim < image.ndim(); ++dim) {
    const int64_t inputs = image.shape(dim), outputs = shape[static_cast<std::size_t>(dim)];
    if (inputs == outputs) continue;  // every kernel leaves such a dimension unchanged
    const double scale = outputs == 0 ? 1.0 : static_cast<double>(outputs) / static_cast<double>(inputs);
    dims.push_back(dim);
    warps.push_back({Array(1.0 / scale), Array(0.0), default_float()});
  }
  return resampled(pixels, shape, dims, warps, method, options);
}

Array scale_and_translate(const Array& image, const Shape& shape, const Ints& spatial_dims, const Array& scale,
                          const Array& translation, ResizeMethod method, const ResizeOptions& options) {
  check_shape("scale_and_translate", image, shape);
  if (method == ResizeMethod::nearest) {
    throw ValueError("scale_and_translate: the method 'nearest' is not supported");
  }
  if (method == ResizeMethod::cubic_pytorch && options.antialias) method = ResizeMethod::cubic;
  const int64_t count = static_cast<int64_t>(spatial_dims.size());
  const Arrays both = promote_dtypes_inexact({scale, translation});
  for (const Array& one : both) {
    if (one.ndim() == 1 && one.shape(0) == count) continue;
    throw ValueError(concat("scale_and_translate: scale and translation must hold one number for each of the ", count,
                            " spatial dimensions, got ", to_string(one.type())));
  }
  std::vector<Warp> warps;
  for (int64_t i = 0; i < count; ++i) warps.push_back({1.0 / both[0](i), both[1](i), both[0].dtype()});
  return resampled(promote_inexact("scale_and_translate", image), shape, spatial_dims, warps, method, options);
}

}  // namespace capibara::jax::image
