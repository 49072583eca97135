// How the matrix products of capibara.kernels name precisions: jax's names, and types that operands are rounded to.
#pragma once

#include <capibara/array.h>

#include <optional>
#include <string>

namespace capibara::kernels {

struct Rounding {
  std::string precision;         // as dot_general takes it
  std::optional<DType> operand;  // what operands are rounded to beforehand
};

// ValueError where there is no such precision. `dtype` is that of the operands.
Rounding rounding_of(const char* op, const std::string& precision, DType dtype);

}  // namespace capibara::kernels
