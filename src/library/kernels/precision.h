// Precision names of capibara.kernels' matmuls: jax's names, and types that operands are rounded to.
#pragma once

#include <capibara/array.h>

#include <optional>
#include <string>

namespace capibara::kernels {

struct Rounding {
  std::string precision;         // in the form that dot_general takes
  std::optional<DType> operand;  // the type operands are rounded to first
};

// ValueError for unknown precisions. `dtype` is that of the operands.
Rounding rounding_of(const char* op, const std::string& precision, DType dtype);

}  // namespace capibara::kernels
