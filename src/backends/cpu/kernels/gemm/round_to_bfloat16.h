// Rounds float32 to bfloat16: to nearest, ties to even.
#pragma once

#include "backends/cpu/kernels/gemm/gemm.h"

namespace capibara::cpu {

void round_to_bfloat16(const float* from, Bfloat16Bits* to, int64_t count);
// The same for sums computed by AMX, which are never denormal: only on processors with AMX.
void round_amx_sums(const float* from, Bfloat16Bits* to, int64_t count);

}  // namespace capibara::cpu
