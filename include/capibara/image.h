// jax.image: resampling of images by separable kernels.
#pragma once

#include <capibara/lax.h>

#include <string>

namespace capibara::jax::image {

enum class ResizeMethod { nearest, linear, lanczos3, lanczos5, cubic, cubic_pytorch, area };
// The method of this name, also with the prefix bi- or tri-; raises ValueError for other names.
ResizeMethod resize_method(const std::string& name);

struct ResizeOptions {
  bool antialias = true;  // widens the kernel when the image shrinks
  std::string precision = "highest";
};
// The image resampled to another resolution: nearest, linear, cubic, lanczos3, lanczos5, area or cubic-pytorch.
Array resize(const Array& image, const Shape& shape, ResizeMethod method, const ResizeOptions& options = {});
inline Array resize(const Array& image, const Shape& shape, const std::string& method,
                    const ResizeOptions& options = {}) {
  return resize(image, shape, resize_method(method), options);
}

// The image scaled and translated along some of its dimensions, resampled to the given shape.
// Pixel x of the image moves to scale * x + translation along each of `spatial_dims`, with one value per dimension.
Array scale_and_translate(const Array& image, const Shape& shape, const Ints& spatial_dims, const Array& scale,
                          const Array& translation, ResizeMethod method, const ResizeOptions& options = {});

}  // namespace capibara::jax::image
