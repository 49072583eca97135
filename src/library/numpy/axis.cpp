// The axis argument of jax.numpy functions.
#include <capibara/numpy/axis.h>

#include <algorithm>

#include "core/array/format.h"
#include "lax/operators/promote.h"

namespace capibara::jax::numpy {

Ints Axis::resolve(const char* operation, int64_t rank) const {
  Ints axes;
  if (all()) {
    for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
    return axes;
  }
  for (int64_t axis : *list_) {
    const int64_t own = canonical_axis(operation, axis, rank);
    if (std::find(axes.begin(), axes.end(), own) != axes.end()) {
      throw ValueError(concat(operation, ": duplicate value in 'axis', a repeated axis: ", shape_tuple(*list_)));
    }
    axes.push_back(own);
  }
  return axes;
}

}  // namespace capibara::jax::numpy
