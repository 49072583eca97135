// Which state space duals the CUDA kernels take: what they and their claim have to agree on.
#pragma once

#include <cstdint>

namespace capibara::cuda {

inline constexpr int ssd_chunk = 64, ssd_dim = 64;  // steps of a chunk, elements of a head

constexpr bool takes_states(int64_t states) { return states == 32 || states == 64 || states == 128; }

}  // namespace capibara::cuda
