// Checks whether an array has a NaN or an infinity.
#include "models/protocol/finite.h"

#include <capibara/lax.h>

#include <numeric>

namespace capibara {

bool all_finite(const Array& array) {
  if (!is_inexact(array.dtype())) return true;
  Shape axes(array.shape().size());
  std::iota(axes.begin(), axes.end(), int64_t{0});
  return jax::lax::reduce_and(jax::lax::is_finite(array), {.axes = axes}).item<bool>();
}

}  // namespace capibara
