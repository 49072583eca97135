// The tolerance of sums of products against the reference kernels.
#pragma once

#include "backends/kernel_cases.h"

namespace capibara::cpu {

// Bounds every rounding of a sum of `terms` products of numbers up to 2, in the sum's type, and one of the result.
inline Tolerance sum_tolerance(DType operand, DType out, int64_t terms) {
  if (!is_inexact(out)) return {};
  double sum = real_dtype(operand) == DType::float64 ? epsilon_of(DType::float64) : epsilon_of(DType::float32);
  if (real_dtype(out) == DType::float64) sum = epsilon_of(DType::float64);
  return {sum * 4 * (static_cast<double>(terms) + 4), epsilon_of(out)};
}

}  // namespace capibara::cpu
