// A part of a matmul on AMX: some rows by some columns for some k, from operands in memory or packed.
#pragma once

#include <algorithm>

#include "backends/cpu/kernels/products/amx_operands.h"

#if defined(__x86_64__)

namespace capibara::cpu {

// Rows [m0, m0 + m) by columns [n0, n0 + n) for k [k0, k0 + k), `step` of them at a time.
template <class K, class Tiles>
struct AmxPart {
  using P = typename K::Packed;
  using S = typename K::Sum;
  static constexpr int64_t depth = K::together;

  const Product<K>& product;
  const AmxPacked<P>& left;
  const AmxEdges<K>& edges;  // where left is not packed
  const AmxPacked<P>& right;
  const AmxHold& hold;  // null: sums are in the result
  int64_t m0, m, n0, n, k0, k, step;

  // Tiles are configured as long as nobody else is called.
  void run() const {
    Tiles::configure();
    AmxBlock block;
    block.panel = right.panel();
    const int64_t width = m <= 16 ? 64 : 32;
    for (int64_t j = n0; j < n0 + n; j += width) {
      for (int64_t p = k0; p < k0 + k; p += step) {
        const int64_t some = std::min(step, k0 + k - p);
        block.steps = (some + depth - 1) / depth;
        block.accumulate = p > 0;
        block.right = right.at(j, p);
        for (int64_t i = m0; i < m0 + m; i += 32) {
          const int64_t rows = std::min<int64_t>(32, m0 + m - i);
          block.left[0] = left_at(i, p, some);
          if (rows > 16) block.left[1] = left_at(i + 16, p, some);
          run_block(block, i, rows, j, std::min(width, n0 + n - j));
        }
      }
    }
    Tiles::release();
  }

  AmxLeft left_at(int64_t row, int64_t p, int64_t some) const {
    if (left.data) return {left.at(row, p), amx_row_bytes, amx_tile_bytes};
    return edges.at(row, p, p + some == product.inner);
  }

  // Whole tiles go to the result as they are, others by way of `edge`.
  void run_block(AmxBlock& block, int64_t i, int64_t rows, int64_t j, int64_t columns) const {
    alignas(64) S edge[4][16 * 16];
    const int64_t down = rows > 16 ? 2 : 1, across = (columns + 15) / 16;
    bool beside[4];
    const auto each_beside = [&](int64_t t, auto&& f) {
      const int64_t row = i + t / across * 16, column = j + t % across * 16;
      for (int64_t r = row; r < std::min(row + 16, i + rows); ++r) {
        S* target = product.out + product.rows.at(r);
        for (int64_t c = column; c < std::min(column + 16, j + columns); ++c) {
          f(target[product.columns.at(c)], edge[t][(r - row) * 16 + c - column]);
        }
      }
    };
    for (int64_t t = 0; t < down * across; ++t) {
      const int64_t row = i + t / across * 16, column = j + t % across * 16;
      const bool whole = row + 16 <= i + rows && column + 16 <= j + columns;
      const bool straight = whole && product.rows.is_regular() && product.columns.contiguous(column, 16);
      beside[t] = !hold.data && !straight;
      block.out[t] = edge[t];
      block.out_step[t] = (hold.data ? 32 : straight ? product.rows.stride() : 16) * static_cast<int64_t>(sizeof(S));
      if (hold.data)
        block.out[t] = hold.at(row, column);
      else if (straight)
        block.out[t] = product.out + product.rows.at(row) + product.columns.at(column);
      if (beside[t] && block.accumulate) each_beside(t, [](S& place, S& own) { own = place; });
    }
    function(down, across)(block);
    for (int64_t t = 0; t < down * across; ++t) {
      if (beside[t]) each_beside(t, [](S& place, S& own) { place = own; });
    }
  }

  static void (*function(int64_t down, int64_t across))(const AmxBlock&) {
    if (down == 2) return across == 2 ? Tiles::template run<K, 2, 2> : Tiles::template run<K, 2, 1>;
    if (across == 1) return Tiles::template run<K, 1, 1>;
    if (across == 2) return Tiles::template run<K, 1, 2>;
    return across == 3 ? Tiles::template run<K, 1, 3> : Tiles::template run<K, 1, 4>;
  }
};

}  // namespace capibara::cpu

#endif
