// Permutations of examples that need no memory.
#pragma once

#include <cstdint>

namespace capibara::training {

// The finalizer of splitmix64.
inline uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// A permutation of 0 ... count - 1: Feistel rounds on the next power of four, repeated while the result is too large.
inline uint64_t permuted(uint64_t index, uint64_t count, uint64_t key) {
  int half = 1;
  while (uint64_t{1} << (2 * half) < count) ++half;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  do {
    uint64_t left = index >> half, right = index & mask;
    for (uint64_t round = 0; round < 4; ++round) {
      const uint64_t next = left ^ (mixed(right ^ mixed(key + round)) & mask);
      left = right;
      right = next;
    }
    index = left << half | right;
  } while (index >= count);
  return index;
}

}  // namespace capibara::training
