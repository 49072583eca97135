// jax.scipy.ndimage: the neighbours of each coordinate, weighted by proximity.
#include <capibara/scipy/ndimage.h>

#include <capibara/numpy/elementwise.h>

#include "lax/operators/promote.h"

namespace capibara::jax::scipy::ndimage {

namespace {

// One neighbour along one dimension: its index, whether it is in bounds, and its weight.
struct Corner {
  Array index, inside, weight;  // inside is empty if every index is made valid
};

Array int32(int64_t value) { return lax::full({}, Array(value), DType::int32); }

// A triangular wave between 0 and size - 1.
Array mirrored(const Array& index, int64_t size) {
  const int64_t span = size - 1;
  return lax::abs((index + Array(span)) % Array(2 * span) - Array(span));
}

Array fitted(const std::string& mode, const Array& index, int64_t size) {
  if (mode == "nearest") {
    Array int32_value = int32(0);
    return lax::clamp(int32_value, index, int32(size - 1));
  }
  if (mode == "wrap") return index % Array(size);
  if (mode == "mirror") return mirrored(index, size);
  if (mode == "reflect") return (mirrored(2 * index + 1, 2 * size + 1) - 1) >> 1;
  return index;
}

Array rounded(const Array& x) { return is_inexact(x.dtype()) ? lax::round(x) : x; }

std::vector<Corner> corners(const Array& coordinate, int64_t order, int64_t size, const std::string& mode) {
  std::vector<Corner> found;
  if (order == 0) {
    const Array one = lax::convert_element_type(Array(1), coordinate.dtype(), false);
    found = {{lax::convert_element_type(rounded(coordinate), DType::int32, false), {}, one}};
  } else {
    const Array lower = is_inexact(coordinate.dtype()) ? lax::floor(coordinate) : coordinate;
    const Array upper_weight = coordinate - lower;
    const Array index = lax::convert_element_type(lower, DType::int32, false);
    found = {{index, {}, 1 - upper_weight}, {index + 1, {}, upper_weight}};
  }
  for (Corner& corner : found) {
    if (mode == "constant") {
      Array is_at_least = corner.index >= 0;
      corner.inside = is_at_least & (corner.index < Array(size));
    }
    corner.index = fitted(mode, corner.index, size);
  }
  return found;
}

}  // namespace

Array map_coordinates(const Array& input, const Arrays& coordinates, int64_t order,
                      const MapCoordinatesOptions& options) {
  if (static_cast<int64_t>(coordinates.size()) != input.ndim()) {
    throw ValueError(concat("map_coordinates: coordinates must be a sequence of length input.ndim, but ",
                            coordinates.size(), " != ", input.ndim()));
  }
  const std::string& mode = options.mode;
  if (mode != "constant" && mode != "nearest" && mode != "wrap" && mode != "mirror" && mode != "reflect") {
    throw NotImplementedError(concat("map_coordinates does not support mode ", mode,
                                     "; supported are constant, nearest, wrap, mirror and reflect"));
  }
  if (order != 0 && order != 1) throw NotImplementedError(concat("map_coordinates requires order<=1, got ", order));
  const Array outside = lax::convert_element_type(options.cval, input.dtype(), false);
  std::vector<std::vector<Corner>> dims;
  for (std::size_t i = 0; i < coordinates.size(); ++i)
    dims.push_back(corners(coordinates[i], order, input.shape()[i], mode));
  const std::size_t choices = order == 0 ? 1 : std::size_t{1} << dims.size();
  Array result;
  for (std::size_t choice = 0; choice < choices; ++choice) {
    std::vector<Index> indices;
    Array weight, inside;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const Corner& corner = dims[i][order == 0 ? 0 : (choice >> (dims.size() - 1 - i)) & 1];
      indices.push_back(corner.index);
      weight = weight.defined() ? weight * corner.weight : corner.weight;
      if (corner.inside.defined()) inside = inside.defined() ? inside & corner.inside : corner.inside;
    }
    Array value = index(input, indices);
    if (inside.defined()) value = numpy::where(inside, value, outside);
    const Array term = weight * value;
    result = result.defined() ? result + term : term;
  }
  if (is_integer(input.dtype())) result = rounded(result);
  return lax::convert_element_type(result, input.dtype(), false);
}

}  // namespace capibara::jax::scipy::ndimage
