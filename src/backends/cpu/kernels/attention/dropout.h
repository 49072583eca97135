// Dropout of attention: fifteen bits for each element, by its head, query and key, the same on every backend.
#pragma once

#include "backends/cpu/kernels/attention/rows.h"

namespace capibara::cpu::attention {

// Elements whose bits are at least `threshold` are kept. They are the lower ones of halves of the words of Philox for
// counters (4 (key / 16) + (key >> 1 & 3), 0, 8 (query / 16) + query % 8, 0): (query >> 3 & 1) and (key >> 3 & 1)
// choose a word, (key & 1) its half: src/kernels/attention/blockwise.cpp.
struct Dropout {
  std::uint32_t key[2] = {};  // of the head
  std::uint32_t threshold = 0;
};

// Of `Width` neighbouring queries at once, the words of the keys at `column`: of (key >> 3 & 1) == 0, and of 1.
template <int Width>
CAPIBARA_INLINE void philox_rows(const std::uint32_t* key, std::uint32_t first_query, std::uint32_t column,
                                 std::uint32_t* near, std::uint32_t* far) {
  std::uint32_t words[4][Width], keys[2] = {key[0], key[1]};
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
  for (int i = 0; i < Width; ++i) {
    const bool upper = (first_query + static_cast<std::uint32_t>(i)) >> 3 & 1;
    near[i] = upper ? words[2][i] : words[0][i];
    far[i] = upper ? words[3][i] : words[1][i];
  }
}

// What is not kept becomes 0, what is kept is multiplied by `scale`: values of rows [first, last), which are the keys
// from first_key on. `second`, if any, is treated the same.
template <class C, int Bytes, int Vectors>
CAPIBARA_INLINE void drop_rows(const Dropout& dropout, C* values, C* second, int64_t first, int64_t last,
                               int64_t first_key, int64_t first_query, C scale) {
  constexpr int width = Vectors * Bytes / static_cast<int>(sizeof(C));
  std::uint32_t words[2][width], chosen[width];
  for (int64_t group = (first_key + first) / 16; group * 16 < first_key + last; ++group) {
    for (int pair = 0; pair < 4; ++pair) {
      philox_rows<width>(dropout.key, static_cast<std::uint32_t>(first_query),
                         static_cast<std::uint32_t>(4 * group + pair), words[0], words[1]);
      for (int half = 0; half < 4; ++half) {
        const int64_t row = group * 16 + 2 * pair + (half & 1) + 8 * (half >> 1) - first_key;
        if (row < first || row >= last) continue;
        const int shift = 16 * (half & 1);
        for (int i = 0; i < width; ++i) chosen[i] = words[half >> 1][i] >> shift & 0x7fffu;
        C* at = values + row * width;
        for (int i = 0; i < width; ++i) at[i] = chosen[i] >= dropout.threshold ? at[i] * scale : C(0);
        if (!second) continue;
        C* other = second + row * width;
        for (int i = 0; i < width; ++i) other[i] = chosen[i] >= dropout.threshold ? other[i] * scale : C(0);
      }
    }
  }
}

}  // namespace capibara::cpu::attention
