// Dropout of attention: sixteen bits for each element, by its head, query and key, the same on every backend.
#pragma once

#include "backends/cpu/kernels/attention/rows.h"

namespace capibara::cpu::attention {

// Elements whose bits are at least `threshold` are kept. The words are those of threefry2x32 for counters (query,
// 4 (key / 16) + (key >> 1 & 3)), of which (key & 1) and (key >> 3 & 1) choose a half:
// src/kernels/attention/blockwise.cpp.
struct Dropout {
  std::uint32_t key[2] = {};  // of the head
  std::uint32_t threshold = 0;
};

// The blocks of `Width` neighbouring queries at once.
template <int Width>
CAPIBARA_INLINE void threefry_rows(const std::uint32_t* key, std::uint32_t first_query, std::uint32_t counter,
                                   std::uint32_t* a, std::uint32_t* b) {
  const std::uint32_t schedule[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1bd11bdau};
  for (int i = 0; i < Width; ++i) {
    a[i] = first_query + static_cast<std::uint32_t>(i) + schedule[0];
    b[i] = counter + schedule[1];
  }
#define CAPIBARA_ROUND(AMOUNT)                                  \
  for (int i = 0; i < Width; ++i) {                             \
    a[i] += b[i];                                               \
    b[i] = (b[i] << (AMOUNT) | b[i] >> (32 - (AMOUNT))) ^ a[i]; \
  }
#define CAPIBARA_INJECT(X, Y, ADDED) \
  for (int i = 0; i < Width; ++i) {  \
    a[i] += schedule[X];             \
    b[i] += schedule[Y] + (ADDED);   \
  }
#define CAPIBARA_EVEN CAPIBARA_ROUND(13) CAPIBARA_ROUND(15) CAPIBARA_ROUND(26) CAPIBARA_ROUND(6)
#define CAPIBARA_ODD CAPIBARA_ROUND(17) CAPIBARA_ROUND(29) CAPIBARA_ROUND(16) CAPIBARA_ROUND(24)
  CAPIBARA_EVEN CAPIBARA_INJECT(1, 2, 1u) CAPIBARA_ODD CAPIBARA_INJECT(2, 0, 2u) CAPIBARA_EVEN CAPIBARA_INJECT(0, 1, 3u)
      CAPIBARA_ODD CAPIBARA_INJECT(1, 2, 4u) CAPIBARA_EVEN CAPIBARA_INJECT(2, 0, 5u)
#undef CAPIBARA_ROUND
#undef CAPIBARA_INJECT
#undef CAPIBARA_EVEN
#undef CAPIBARA_ODD
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
      threefry_rows<width>(dropout.key, static_cast<std::uint32_t>(first_query),
                           static_cast<std::uint32_t>(4 * group + pair), words[0], words[1]);
      for (int half = 0; half < 4; ++half) {
        const int64_t row = group * 16 + 2 * pair + (half & 1) + 8 * (half >> 1) - first_key;
        if (row < first || row >= last) continue;
        const int shift = 16 * (half & 1);
        for (int i = 0; i < width; ++i) chosen[i] = words[half >> 1][i] >> shift & 0xffffu;
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
