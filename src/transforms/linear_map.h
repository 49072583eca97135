// What linearize, vjp and linear_transpose leave behind: a linear program and the values it reads.
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

}  // namespace capibara::detail
