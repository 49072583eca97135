// Table rows for jax.scipy.ndimage.
#include <capibara/scipy/ndimage.h>

#include "library/table/families.h"

namespace capibara::library {

namespace {

Arrays coordinate_arrays(const Arguments& a) {
  const Sequence* sequence = a["coordinates"].sequence();
  if (!sequence) return a.arrays("coordinates");
  Arrays coordinates;
  for (const Value& item : sequence->items) coordinates.push_back(array_of(item, "map_coordinates"));
  return coordinates;
}

const Function scipy_ndimage_functions[] = {
    {"map_coordinates", "input, coordinates, order: int, mode='constant', cval=0.0",
     [](const Arguments& a) -> Value {
       const Array input = a.array_like("input");
       return jax::scipy::ndimage::map_coordinates(input, coordinate_arrays(a), a.integer("order"),
                                                   {.mode = a.text("mode"), .cval = a.array("cval")});
     },
     "The input sampled at fractional coordinates, one array of them for each dimension."},
};

}  // namespace

Family scipy_ndimage() { return scipy_ndimage_functions; }

}  // namespace capibara::library
