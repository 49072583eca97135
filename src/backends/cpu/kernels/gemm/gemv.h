// Vectors of floats by matrices of bytes: 8-bit weights.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/gemm/gemm.h"

namespace capibara::cpu {

// out[rows, columns] = left * right for a few rows of floats and a matrix of bytes, which is not converted in advance.
// False: not for these strides, or too many rows.
bool multiply_by_bytes(const Matrix<float>& left, const Matrix<std::int8_t>& right, float* out, const Axis& rows,
                       const Axis& columns);

}  // namespace capibara::cpu
