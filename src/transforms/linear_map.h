// The result of linearize, vjp and linear_transpose: a linear program and the values it reads.
#pragma once

#include <capibara/transforms.h>

#include "transforms/flat.h"

namespace capibara::detail {

class LinearMap {
 public:
  Linearized linearized;  // of the main outputs
  Types in_types, out_types;
  std::vector<bool> differentiated;  // inputs with a tangent in the linear program
};

class TransposedFunction {
 public:
  Staged staged;
  Types in_types;
};

// One cotangent per input leaf; empty if there is none.
Arrays pull_back_raw(const LinearMap& map, std::span<const Array> cotangents);
// A cotangent, or zeros if there is none.
Array or_zeros(const Array& cotangent, const ArrayType& primal);
// Raises TypeError if values of this type cannot be differentiated in reverse mode.
void check_reverse_input(const std::string& name, const ArrayType& type, const jax::GradOptions& options);
void check_reverse_output(const std::string& name, const ArrayType& type, const jax::GradOptions& options);

}  // namespace capibara::detail
