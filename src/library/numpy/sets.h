// The sorted distinct slices of an array, with their true number if the size is given.
#pragma once

#include <capibara/numpy/sets.h>

namespace capibara::sets {

struct DistinctSlices {
  Array values;
  Array indices, inverse_indices, counts;  // if requested by the options
  Array true_size;
};
DistinctSlices distinct_slices(const Array& ar, int64_t axis, const jax::numpy::UniqueOptions& options);

}  // namespace capibara::sets
