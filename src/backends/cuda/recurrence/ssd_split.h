// The state space duals that the CUDA kernels take, shared by the kernels and their claim.
#pragma once

#include <cstdint>

namespace capibara::cuda {

inline constexpr int ssd_chunk = 64, ssd_dim = 64;  // steps per chunk, elements per head

constexpr bool takes_states(int64_t states) { return states == 32 || states == 64 || states == 128; }

}  // namespace capibara::cuda
