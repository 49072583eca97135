// jax.scipy.ndimage: sampling of arrays at fractional coordinates.
#pragma once

#include <capibara/lax.h>
#include <capibara/primitive.h>

#include <string>

namespace capibara::jax::scipy::ndimage {

struct MapCoordinatesOptions {
  std::string mode = "constant";  // beyond the edges: constant, nearest, wrap, mirror or reflect
  Array cval = 0.0;               // the value beyond the edges in constant mode
};
// The input sampled at fractional coordinates, one array of them for each dimension. Order 0 takes the nearest element,
// 1 interpolates linearly.
Array map_coordinates(const Array& input, const Arrays& coordinates, int64_t order,
                      const MapCoordinatesOptions& options = {});

}  // namespace capibara::jax::scipy::ndimage
