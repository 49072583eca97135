// Floats of 4 to 8 bits in generated code: codes in memory, f32 in registers.
#pragma once

#include <capibara/dtype.h>

#include "backends/cpu/loops/builder.h"

namespace capibara::cpu {

bool is_coded_float(DType dtype);                                       // float4, float6 and float8 formats
Value decode_small_float(Builder& builder, DType dtype, Value code);    // i8 -> f32
Value encode_small_float(Builder& builder, DType dtype, Value number);  // f32 -> i8, to nearest even

}  // namespace capibara::cpu
