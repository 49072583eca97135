// jax.image: resampling of images by separable kernels.
#pragma once

#include <capibara/lax.h>

#include <string>

namespace capibara::jax::image {

enum class ResizeMethod { nearest, linear, lanczos3, lanczos5, cubic, cubic_pytorch, area };
// The method of a name, also with bi- and tri- in front; raises ValueError for others.
ResizeMethod resize_method(const std::string& name);

struct ResizeOptions {
  bool antialias = true;  // a wider kernel where the image shrinks
  std::string precision = "highest";
};
// The image resampled to another resolution: nearest, linear, cubic, lanczos3, lanczos5, area or cubic-pytorch.
Array resize(const Array& image, const Shape& shape, ResizeMethod method, const ResizeOptions& options = {});
inline Array resize(const Array& image, const Shape& shape, const std::string& method,
                    const ResizeOptions& options = {}) {
  return resize(image, shape, resize_method(method), options);
}

// The image scaled and translated along some of its dimensions, resampled to the given shape.
// Pixel x of the image goes to scale * x + translation along each of `spatial_dims`, one number for each.
Array scale_and_translate(const Array& image, const Shape& shape, const Ints& spatial_dims, const Array& scale,
                          const Array& translation, ResizeMethod method, const ResizeOptions& options = {});

}  // namespace capibara::jax::image
