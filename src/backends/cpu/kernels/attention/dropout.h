// Dropout of attention: sixteen bits for each element, by its head, query and key, the same on every backend.
#pragma once

#include "backends/cpu/kernels/attention/rows.h"

namespace capibara::cpu::attention {

// Elements whose bits are at least `threshold` are kept. The words of Philox for counters (key / 16, 0,
// 8 (query / 16) + query % 8, 0) are digits of 32 numbers, of two queries by 16 keys:
// src/kernels/attention/blockwise.cpp.
struct Dropout {
  std::uint32_t key[2] = {};  // of the head
  std::uint32_t threshold = 0;
};

// Of `Width` neighbouring queries at once.
template <int Width>
CAPIBARA_INLINE void philox_rows(const std::uint32_t* key, std::uint32_t first_query, std::uint32_t column,
                                 std::uint32_t (*words)[Width]) {
  std::uint32_t keys[2] = {key[0], key[1]};
  for (int i = 0; i < Width; ++i) {
    const std::uint32_t query = first_query + static_cast<std::uint32_t>(i);
    words[0][i] = column, words[1][i] = words[3][i] = 0;
    words[2][i] = query / 16 * 8 + query % 8;
  }
  for (int round = 0; round < 7; ++round) {
    for (int i = 0; i < Width; ++i) {
      const std::uint64_t first = std::uint64_t{0xd2511f53u} * words[0][i];
      const std::uint64_t second = std::uint64_t{0xcd9e8d57u} * words[2][i];
      words[0][i] = static_cast<std::uint32_t>(second >> 32) ^ words[1][i] ^ keys[0];
      words[1][i] = static_cast<std::uint32_t>(second);
      words[2][i] = static_cast<std::uint32_t>(first >> 32) ^ words[3][i] ^ keys[1];
      words[3][i] = static_cast<std::uint32_t>(first);
    }
    keys[0] += 0x9e3779b9u;
    keys[1] += 0xbb67ae85u;
  }
}

// Which numbers, whose next four digits are the bits of `words`, are at least those of `threshold`; where they are
// equal, as `kept` says.
template <int Width>
CAPIBARA_INLINE void compare_digits(const std::uint32_t (*words)[Width], std::uint32_t threshold, std::uint32_t* kept) {
  for (int digit = 0; digit < 4; ++digit) {
    const std::uint32_t any = threshold >> digit & 1 ? 0 : ~std::uint32_t{0};
    for (int i = 0; i < Width; ++i) kept[i] = (words[digit][i] & kept[i]) | (any & (words[digit][i] | kept[i]));
  }
}

// The bits of the 16 keys from 16 `group` on, where kept_bit says.
template <int Width>
CAPIBARA_INLINE void kept_words(const Dropout& dropout, std::uint32_t first_query, std::uint32_t group,
                                std::uint32_t* kept) {
  std::uint32_t words[4][Width], mixed[4][Width];
  philox_rows<Width>(dropout.key, first_query, group, words);
  auto further = [](std::uint32_t word, int bits) { return word >> bits | word << (32 - bits); };
  for (int j = 0; j < 4; ++j) {
    for (int i = 0; i < Width; ++i) mixed[j][i] = words[j][i] ^ further(words[(j + 1) % 4][i], 24);
  }
  for (int i = 0; i < Width; ++i) kept[i] = ~std::uint32_t{0};
  for (int place = 0; place < 16; place += 8) {
    if (place > 0) {
      for (int i = 0; i < Width; ++i) kept[i] = further(kept[i], 11);
    }
    compare_digits<Width>(mixed, dropout.threshold >> place, kept);
    for (int i = 0; i < Width; ++i) kept[i] = further(kept[i], 13);
    compare_digits<Width>(words, dropout.threshold >> (place + 4), kept);
  }
  for (int i = 0; i < Width; ++i) kept[i] >>= (first_query + static_cast<std::uint32_t>(i)) >> 3 & 1;
}
constexpr int kept_bit(int key) {
  return (key >> 2 & 1) * 16 + (key & 1) * 8 + (key >> 1 & 1) * 4 + (key >> 3 & 1) * 2;
}

// What is not kept becomes 0, what is kept is multiplied by `scale`: values of rows [first, last), which are the keys
// from first_key on. `second`, if any, is treated the same.
template <class C, int Bytes, int Vectors>
CAPIBARA_INLINE void drop_rows(const Dropout& dropout, C* values, C* second, int64_t first, int64_t last,
                               int64_t first_key, int64_t first_query, C scale) {
  constexpr int width = Vectors * Bytes / static_cast<int>(sizeof(C));
  std::uint32_t kept[width];
  for (int64_t group = (first_key + first) / 16; group * 16 < first_key + last; ++group) {
    kept_words<width>(dropout, static_cast<std::uint32_t>(first_query), static_cast<std::uint32_t>(group), kept);
    for (int key = 0; key < 16; ++key) {
      const int64_t row = group * 16 + key - first_key;
      if (row < first || row >= last) continue;
      const std::uint32_t bit = std::uint32_t{1} << kept_bit(key);
      C* at = values + row * width;
      for (int i = 0; i < width; ++i) at[i] = kept[i] & bit ? at[i] * scale : C(0);
      if (!second) continue;
      C* other = second + row * width;
      for (int i = 0; i < width; ++i) other[i] = kept[i] & bit ? other[i] * scale : C(0);
    }
  }
}

}  // namespace capibara::cpu::attention
