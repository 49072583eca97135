// Building blocks shared by indexing functions of jax.numpy.
#pragma once

#include <capibara/lax.h>

#include "lax/operators/promote.h"

namespace capibara {

// 0 .. count-1 in the default integer type.
inline Array counting_array(int64_t count) { return jax::lax::iota(default_int(), count); }

// A one-dimensional array repeated or truncated to this size.
inline Array tiled_to_size(const Array& x, int64_t size) {
  Array tiled = x.size() < size ? jax::lax::tile(x, {(size + x.size() - 1) / x.size()}) : x;
  return tiled.size() > size ? jax::lax::slice_in_dim(tiled, 0, size) : tiled;
}

}  // namespace capibara
