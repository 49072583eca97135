// Weights in fewer bits: bfloat16 for all parameters, bytes for the matrices.
#include <capibara/training/weights.h>

#include <capibara/lax.h>

#include <array>

namespace capibara::training {

namespace lax = jax::lax;

namespace {

// The axis that a matrix's multiplication sums over; -1 for parameters that are no matrices.
int64_t summed_axis(const std::string& name, const Array& array) {
  if (name == "embedding") return 1;  // rows are looked up, and are the outputs of a tied head
  if (array.ndim() == 2 && name.ends_with(".weight")) return 0;
  const bool expert = name.ends_with(".gate") || name.ends_with(".up") || name.ends_with(".down");
  return array.ndim() == 3 && expert ? 1 : -1;
}

struct Bytes {
  Array values, scale;
};

// The nearest of 127 steps on each side of zero, the greatest of which is the greatest element of its output.
Bytes to_bytes(const Array& weights, int64_t axis) {
  Array wide = lax::convert_element_type(weights, DType::float32);
  Array greatest = lax::reduce_max(lax::abs(wide), {.axes = {axis}});
  Array scale =
      lax::select(lax::gt(greatest, lax::full_like(greatest, 0.0)), greatest / 127.0, lax::full_like(greatest, 1.0));
  Shape kept;
  for (int64_t dim = 0; dim < wide.ndim(); ++dim) {
    if (dim != axis) kept.push_back(dim);
  }
  Array steps = wide / lax::broadcast_in_dim(scale, wide.shape(), kept);
  return {lax::convert_element_type(lax::round(steps, lax::RoundingMethod::to_nearest_even), DType::int8), scale};
}

}  // namespace

Parameters convert_weights(const Parameters& parameters, const std::string& weights) {
  if (weights != "float32" && weights != "bfloat16" && weights != "int8") {
    throw ValueError(concat("convert_weights: weights are float32, bfloat16 or int8, got '", weights, "'"));
  }
  Parameters result;
  for (const auto& [name, array] : parameters) {
    if (!is_floating(array.dtype())) {
      throw ValueError(concat("convert_weights: parameter '", name, "' has type ", to_string(array.type()),
                              "; expected floats, as they were trained"));
    }
    const int64_t axis = weights == "int8" ? summed_axis(name, array) : -1;
    if (axis < 0) {
      result[name] = lax::convert_element_type(array, weights == "bfloat16" ? DType::bfloat16 : DType::float32);
    } else {
      const Bytes bytes = to_bytes(array, axis);
      result[name] = bytes.values;
      result[name + ".scale"] = bytes.scale;
    }
  }
  return result;
}

}  // namespace capibara::training
