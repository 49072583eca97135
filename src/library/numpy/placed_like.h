// Placement of new arrays on the devices of an existing one.
#pragma once

#include <capibara/placement.h>

namespace capibara::jax::numpy {

// `made` on the devices of `a` if `a` was placed explicitly: on several only if the shapes are equal, with equal parts.
inline Array placed_like(const Array& a, const Array& made) {
  if (a.is_tracer() || made.is_tracer() || !a.committed()) return made;
  const std::optional<NamedSharding> placement = jax::placement(a);
  if (placement && placement->devices.size() > 1)
    return made.shape() == a.shape() ? jax::device_put(made, *placement) : made;
  return jax::device_put(made, placement.value_or(NamedSharding{a.device().platform, {a.device().id}, {}, {}, ""}));
}

}  // namespace capibara::jax::numpy
