// Operands of products of warpgroups, in shared memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace capibara::cuda::attention {

// An operand in shared memory: parts of 128 bytes of all rows, groups of eight rows 1024 bytes apart. The address is
// the same in all threads of a warp; they say so, since its registers are then those that a warp has once.
template <int Rows = 64>
__device__ uint32_t operand_at(uint32_t address) {
  constexpr uint32_t part = (Rows * 128) >> 4;
  return __shfl_sync(0xffffffffu, (address & 0x3ffff) >> 4 | part << 16, 0);
}
inline __device__ uint64_t further(uint32_t operand, int bytes) {
  constexpr uint64_t group = 1024 >> 4, permuted_by_128_bytes = 1;
  return (group | permuted_by_128_bytes << 30) << 32 | (operand + bytes / 16);
}

}  // namespace capibara::cuda::attention
