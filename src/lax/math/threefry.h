// The Threefry-2x32 block function with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
//
// Exact: equal to jax's bit for bit, for every key and counter.
#pragma once

#include <array>
#include <cstdint>

namespace capibara::math {

// The operations that the function needs; uint32_t here, arrays of uint32 in array_value.h.
template <class U>
struct BitOperations {
  static constexpr U constant(std::uint32_t value, const U&) { return value; }
  static constexpr U rotate_left(U x, int amount) { return (x << amount) | (x >> (32 - amount)); }
};

template <class U>
std::array<U, 2> threefry2x32(std::array<U, 2> key, std::array<U, 2> counter) {
  using Operations = BitOperations<U>;
  constexpr int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const U schedule[3] = {key[0], key[1], key[0] ^ key[1] ^ Operations::constant(0x1BD11BDAu, key[0])};
  U a = counter[0] + schedule[0], b = counter[1] + schedule[1];
  for (int group = 0; group < 5; ++group) {
    for (int amount : rotations[group % 2]) {
      a = a + b;
      b = Operations::rotate_left(b, amount) ^ a;
    }
    a = a + schedule[(group + 1) % 3];
    b = b + schedule[(group + 2) % 3] + Operations::constant(static_cast<std::uint32_t>(group) + 1, key[0]);
  }
  return {a, b};
}

}  // namespace capibara::math
