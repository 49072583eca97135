// The innermost step of a matmul on AMX: up to four tiles of the result while iterating over k.
//
// Two by two tiles need four loads for four multiplications, which take twice as long as loads from the L1 cache.
// The sums of a tile are the same whether they stay in it or are stored between two parts of k: how k is cut changes no
// bit, as long as parts are whole tiles.
#pragma once

#include <algorithm>

#include "backends/cpu/kernels/gemm/amx/amx_kinds.h"
#include "backends/cpu/kernels/gemm/round_to_bfloat16.h"

#if defined(__x86_64__)

namespace capibara::cpu {

#define CAPIBARA_AMX_INLINE inline __attribute__((always_inline))

// Sixteen rows of the left operand: from the packed operand or in place; the last k, if they do not fill a tile, are
// packed.
struct AmxLeft {
  const std::byte* data;
  int64_t row_step, step;  // bytes from row to row, and from one tile to the next
  const std::byte* last = nullptr;
};

// Complete sums, to be rounded and stored row by row.
struct AmxRounding {
  const float* sums = nullptr;
  Bfloat16Bits* out = nullptr;
  int64_t rows = 0, columns = 0, step = 0, out_step = 0;  // steps in elements from row to row

  void store(int64_t first, int64_t last) const {
    for (int64_t r = first; r < last; ++r) round_amx_sums(sums + r * step, out + r * out_step, columns);
  }
};

// Rows in memory of which each step of a block prefetches a few, a line of each.
struct AmxAhead {
  const std::byte* data = nullptr;
  int64_t rows = 0, step = 0;  // rows for each step; bytes from row to row
};

struct AmxBlock {
  int64_t steps;  // tiles of k, the last one of `AmxLeft` included
  AmxLeft left[2];
  const std::byte* right;
  int64_t panel;                        // bytes from one packed panel of the right operand to the next
  int64_t right_step = amx_tile_bytes;  // bytes from one of its tiles to the next
  void* out[4];
  int64_t out_step[4];  // bytes from row to row
  bool accumulate;
  AmxAhead ahead;        // rows of the left operand that are needed soon: a step prefetches its line of all of them
  AmxAhead written;      // rows of the result that are written soon, distributed to the steps
  AmxRounding rounding;  // of the block before: a step stores one row, while the tiles multiply
};

// Tiles 0 to 3: the result, [row][column]; 4 and 5: rows of the left operand; 6 and 7: columns of the right one.
template <class Tiles, class K, int R, int C>
CAPIBARA_AMX_INLINE void amx_step(const std::byte* first, int64_t first_step, const std::byte* second,
                                  int64_t second_step, const std::byte* right, int64_t panel) {
  Tiles::template load<4>(first, first_step);
  // Two rows of tiles: the left operand stays in a near cache while the right one streams by.
  if constexpr (R > 1)
    Tiles::template load_once<6>(right, amx_row_bytes);
  else
    Tiles::template load<6>(right, amx_row_bytes);
  Tiles::template multiply<K, 0, 4, 6>();
  if constexpr (C > 1) {
    if constexpr (R > 1)
      Tiles::template load_once<7>(right + panel, amx_row_bytes);
    else
      Tiles::template load<7>(right + panel, amx_row_bytes);
    Tiles::template multiply<K, 1, 4, 7>();
  }
  if constexpr (R > 1) {
    Tiles::template load<5>(second, second_step);
    Tiles::template multiply<K, C, 5, 6>();
    if constexpr (C > 1) Tiles::template multiply<K, C + 1, 5, 7>();
  } else {
    if constexpr (C > 2) {
      Tiles::template load<6>(right + 2 * panel, amx_row_bytes);
      Tiles::template multiply<K, 2, 4, 6>();
    }
    if constexpr (C > 3) {
      Tiles::template load<7>(right + 3 * panel, amx_row_bytes);
      Tiles::template multiply<K, 3, 4, 7>();
    }
  }
}

template <class Tiles, int T, int Count>
CAPIBARA_AMX_INLINE void begin_amx_tiles(const AmxBlock& block) {
  if constexpr (T < Count) {
    if (block.accumulate)
      Tiles::template load<T>(block.out[T], block.out_step[T]);
    else
      Tiles::template zero<T>();
    begin_amx_tiles<Tiles, T + 1, Count>(block);
  }
}
template <class Tiles, int T, int Count>
CAPIBARA_AMX_INLINE void end_amx_tiles(const AmxBlock& block) {
  if constexpr (T < Count) {
    Tiles::template store<T>(block.out[T], block.out_step[T]);
    end_amx_tiles<Tiles, T + 1, Count>(block);
  }
}

// R by C tiles: (1, 1) to (1, 4), (2, 1) and (2, 2).
template <class Tiles, class K, int R, int C>
CAPIBARA_AMX_INLINE void run_amx_block(const AmxBlock& block) {
  static_assert(R == 1 ? C <= 4 : R == 2 && C <= 2);
  begin_amx_tiles<Tiles, 0, R * C>(block);
  const AmxLeft a = block.left[0], b = block.left[R - 1];
  const std::byte *first = a.data, *second = b.data, *right = block.right;
  const std::byte* written = block.written.data;
  const int64_t panel = block.panel, whole = block.steps - (a.last || b.last ? 1 : 0);
  for (int64_t s = 0; s < whole; ++s, first += a.step, second += b.step, right += block.right_step) {
    const std::byte* ahead = block.ahead.data + s * amx_row_bytes;
    for (int64_t r = 0; r < block.ahead.rows; ++r, ahead += block.ahead.step) __builtin_prefetch(ahead, 0, 2);
    if (s < 32) {
      for (int64_t r = 0; r < block.written.rows; ++r, written += block.written.step) __builtin_prefetch(written, 1);
    }
    if (s < block.rounding.rows) block.rounding.store(s, s + 1);
    amx_step<Tiles, K, R, C>(first, a.row_step, second, b.row_step, right, panel);
  }
  if (whole < block.steps) {
    const bool packed = a.last != nullptr, next_packed = b.last != nullptr;
    amx_step<Tiles, K, R, C>(packed ? a.last : first, packed ? amx_row_bytes : a.row_step,
                             next_packed ? b.last : second, next_packed ? amx_row_bytes : b.row_step, right, panel);
  }
  block.rounding.store(std::min(whole, block.rounding.rows), block.rounding.rows);
  end_amx_tiles<Tiles, 0, R * C>(block);
}

}  // namespace capibara::cpu

#endif
