// stablehlo.rng_bit_generator: Philox-4x32-10 and Threefry-2x32 streams laid out as jax on the CPU lays them out.
//
// The state is uint64 words: {key, counter}, or {key, counter low, counter high} for Philox. DEFAULT means Philox.
// Exact: bits and state are equal to jax 0.10.2's for 8, 16, 32 and 64-bit results and every shape.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lax/math/threefry.h"

namespace capibara::math {

inline std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 2> key, std::array<std::uint32_t, 4> counter) {
  for (int round = 0; round < 10; ++round) {
    std::uint64_t first = std::uint64_t{0xD2511F53u} * counter[0], second = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(first)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

namespace detail {

inline std::array<std::uint32_t, 2> halves(std::uint64_t word) {
  return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)};
}

// Element i of `bits` bits is built from 32-bit words: the low bits of word i, or words 2i (low) and 2i + 1.
inline void store_element(std::vector<std::byte>& output, std::size_t bytes, std::size_t element, std::uint64_t value) {
  for (std::size_t i = 0; i < bytes; ++i) output[element * bytes + i] = static_cast<std::byte>(value >> (8 * i));
}

}  // namespace detail

// The bytes (little-endian elements, row-major) of `count` elements of `bits` bits; advances `state`.
inline std::vector<std::byte> philox_bits(std::span<std::uint64_t> state, std::size_t count, int bits) {
  std::size_t bytes = static_cast<std::size_t>(bits) / 8;
  std::size_t words = bits == 64 ? 2 * count : count, blocks = (words + 3) / 4;
  auto key = detail::halves(state[0]);
  // With two words of state the key also fills the upper half of the counter.
  std::uint64_t low = state[1], high = state.size() > 2 ? state[2] : state[0];
  std::vector<std::byte> output(count * bytes);
  std::uint64_t pending = 0;
  for (std::size_t block = 0; block < blocks; ++block) {
    auto l = detail::halves(low), h = detail::halves(high);
    auto random = philox4x32(key, {l[0], l[1], h[0], h[1]});
    for (std::size_t i = 0; i < 4 && 4 * block + i < words; ++i) {
      std::size_t word = 4 * block + i;
      if (bits < 64) {
        detail::store_element(output, bytes, word, random[i]);
      } else if (word % 2 == 0) {
        pending = random[i];
      } else {
        detail::store_element(output, bytes, word / 2, pending | std::uint64_t{random[i]} << 32);
      }
    }
    low += 1;
    high += low == 0 ? 1 : 0;
  }
  state[1] = low;
  if (state.size() > 2) state[2] = high;
  return output;
}

// One block gives two words. In 64-bit results they form one element; in smaller ones they are neighbours along the
// first even dimension (else the largest, which is then padded to even).
inline std::vector<std::byte> threefry_bits(std::span<std::uint64_t> state, std::span<const std::int64_t> shape,
                                            int bits) {
  std::size_t bytes = static_cast<std::size_t>(bits) / 8, count = 1;
  for (std::int64_t size : shape) count *= static_cast<std::size_t>(size);
  std::array<std::uint32_t, 2> key = detail::halves(state[0]);
  auto block = [&](std::uint64_t n) { return threefry2x32<std::uint32_t>(key, detail::halves(state[1] + n)); };
  std::vector<std::byte> output(count * bytes);
  if (bits == 64) {
    for (std::size_t i = 0; i < count; ++i) {
      auto pair = block(i);
      detail::store_element(output, bytes, i, pair[0] | std::uint64_t{pair[1]} << 32);
    }
    state[1] += count;
    return output;
  }
  auto even = std::find_if(shape.begin(), shape.end(), [](std::int64_t size) { return size % 2 == 0; });
  auto split = even != shape.end() ? even : std::max_element(shape.begin(), shape.end());
  std::size_t size = 1, inner = 1;
  if (split != shape.end()) {
    size = static_cast<std::size_t>(*split);
    for (auto it = split + 1; it != shape.end(); ++it) inner *= static_cast<std::size_t>(*it);
  }
  std::size_t outer = size * inner == 0 ? 0 : count / (size * inner), half = (size + 1) / 2;
  for (std::size_t o = 0; o < outer; ++o) {
    for (std::size_t h = 0; h < half; ++h) {
      for (std::size_t i = 0; i < inner; ++i) {
        auto pair = block((o * half + h) * inner + i);
        for (std::size_t side = 0; side < 2 && 2 * h + side < size; ++side) {
          detail::store_element(output, bytes, (o * size + 2 * h + side) * inner + i, pair[side]);
        }
      }
    }
  }
  state[1] += outer * half * inner;
  return output;
}

}  // namespace capibara::math
