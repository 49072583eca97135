// Table rows for jax.image.
#include <capibara/image.h>

#include "library/table/families.h"

namespace capibara::library {

namespace image = jax::image;

namespace {

image::ResizeOptions options(const Arguments& a) {
  return {.antialias = a.flag("antialias"), .precision = a.text("precision")};
}

const Function image_functions[] = {
    {"resize", "image, shape, method, antialias=True, precision='highest'",
     [](const Arguments& a) -> Value {
       return image::resize(a.array("image"), a.shape("shape"), a.text("method"), options(a));
     },
     "The image resampled to another resolution: nearest, linear, cubic, lanczos3, lanczos5, area or cubic-pytorch."},
    {"scale_and_translate",
     "image, shape, spatial_dims, scale, translation, method, antialias=True, precision='highest'",
     [](const Arguments& a) -> Value {
       const Array scale = a.array_like("scale"), translation = a.array_like("translation");
       return image::scale_and_translate(a.array("image"), a.shape("shape"), a.ints("spatial_dims"), scale, translation,
                                         image::resize_method(a.text("method")), options(a));
     },
     "The image scaled and translated along some of its dimensions, resampled to the given shape."},
};

}  // namespace

Family image_resampling() { return image_functions; }

}  // namespace capibara::library
