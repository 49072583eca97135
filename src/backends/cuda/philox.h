// Counter-based random bits: Philox-4x32 with 7 rounds, the fewest that pass the tests of TestU01.
#pragma once

#include <cstdint>

namespace capibara::cuda {

// Of several blocks, whose multiplications do not wait for each other: counters (words[i][0], 0, words[i][2], 0) become
// four words each.
template <int N>
__device__ inline void philox(uint2 key, uint32_t (&words)[N][4]) {
  constexpr uint32_t first_factor = 0xd2511f53u, second_factor = 0xcd9e8d57u;
#pragma unroll
  for (int i = 0; i < N; ++i) words[i][1] = words[i][3] = 0;
#pragma unroll
  for (int round = 0; round < 7; ++round) {
    const uint32_t first_key = key.x + round * 0x9e3779b9u, second_key = key.y + round * 0xbb67ae85u;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const uint64_t first = static_cast<uint64_t>(first_factor) * words[i][0];
      const uint64_t second = static_cast<uint64_t>(second_factor) * words[i][2];
      words[i][0] = static_cast<uint32_t>(second >> 32) ^ words[i][1] ^ first_key;
      words[i][1] = static_cast<uint32_t>(second);
      words[i][2] = static_cast<uint32_t>(first >> 32) ^ words[i][3] ^ second_key;
      words[i][3] = static_cast<uint32_t>(first);
    }
  }
}

}  // namespace capibara::cuda
