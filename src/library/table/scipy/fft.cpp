// Table rows for jax.scipy.fft.
#include <capibara/scipy/fft.h>

#include "library/table/families.h"

namespace capibara::library {

namespace fft = jax::scipy::fft;

namespace {

fft::DctOptions one_axis(const Arguments& a) {
  return {.type = a.integer("type"), .n = a.optional_integer("n"), .axis = a.integer("axis"), .norm = a.text("norm")};
}

fft::DctnOptions any_axes(const Arguments& a) {
  return {
      .type = a.integer("type"), .s = a.optional_ints("s"), .axes = a.optional_ints("axes"), .norm = a.text("norm")};
}

const Function scipy_fft_functions[] = {
    {"dct", "x, type=2, n=None, axis=-1, norm=None",
     [](const Arguments& a) -> Value { return fft::dct(a.array("x"), one_axis(a)); },
     "The discrete cosine transform of type 2 along one axis."},
    {"idct", "x, type=2, n=None, axis=-1, norm=None",
     [](const Arguments& a) -> Value { return fft::idct(a.array("x"), one_axis(a)); }, "The inverse of dct."},
    {"dctn", "x, type=2, s=None, axes=None, norm=None",
     [](const Arguments& a) -> Value { return fft::dctn(a.array("x"), any_axes(a)); },
     "The discrete cosine transform of type 2 along several axes."},
    {"idctn", "x, type=2, s=None, axes=None, norm=None",
     [](const Arguments& a) -> Value { return fft::idctn(a.array("x"), any_axes(a)); }, "The inverse of dctn."},
};

}  // namespace

Family scipy_fft() { return scipy_fft_functions; }

}  // namespace capibara::library
