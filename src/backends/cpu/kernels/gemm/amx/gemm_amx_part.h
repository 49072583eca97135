// A part of a matmul on AMX: some rows by some columns for some k, from operands in memory or packed.
#pragma once

#include <algorithm>

#include "backends/cpu/kernels/gemm/amx/amx_operands.h"
#include "backends/cpu/kernels/gemm/round_brains.h"

#if defined(__x86_64__)

namespace capibara::cpu {

// Rows [m0, m0 + m) by columns [n0, n0 + n) for k [k0, k0 + k).
template <class K, class Tiles>
struct AmxPart {
  using P = typename K::Packed;
  using S = typename K::Sum;
  static constexpr int64_t depth = K::together;

  const Product<K>& product;
  const AmxPacked<P>& left;
  const AmxEdges<K>& edges;  // where left is not packed
  const AmxPacked<P>& right;
  const AmxHold<S>& hold;  // null: sums are in the result
  int64_t m0, m, n0, n, k0, k;

  // Tiles are configured as long as nobody else is called. 32 rows stay in the nearer caches while the columns pass by
  // from the second one, and the next rows are fetched meanwhile.
  void run() const {
    Tiles::configure();
    AmxBlock block{};
    block.panel = right.panel();
    block.steps = (k + depth - 1) / depth;
    block.accumulate = k0 > 0;
    const int64_t width = m <= 16 ? 64 : 32;
    for (int64_t i = m0; i < m0 + m; i += 32) {
      const int64_t rows = std::min<int64_t>(32, m0 + m - i);
      block.left[0] = left_at(i);
      if (rows > 16) block.left[1] = left_at(i + 16);
      for (int64_t j = n0; j < n0 + n; j += width) {
        block.right = right.at(j, k0);
        look_ahead(block, i + 32, (j - n0) / width * 2);
        run_block(block, i, rows, j, std::min(width, n0 + n - j));
      }
    }
    Tiles::release();
  }

 private:
  AmxLeft left_at(int64_t row) const {
    if (left.data) return {left.at(row, k0), amx_row_bytes, amx_tile_bytes};
    return edges.at(row, k0, k0 + k == product.inner);
  }

  // Two of the rows from `first` on; none is left after 32.
  void look_ahead(AmxBlock& block, int64_t first, int64_t next) const {
    for (int64_t r = 0; r < 2; ++r, ++next) {
      const int64_t panel = first + next / 16 * 16;
      block.ahead[r] = block.left[0].data;
      if (next >= 32 || panel + 16 > m0 + m) continue;
      const AmxLeft at = left_at(panel);
      block.ahead[r] = at.data + next % 16 * (left.data ? block.steps * amx_row_bytes : at.row_step);
    }
  }

  // Whole tiles of sums go to the result as they are, others and those that are rounded by way of `beside`.
  void run_block(AmxBlock& block, int64_t i, int64_t rows, int64_t j, int64_t columns) const {
    alignas(64) S beside[32 * 32];
    const int64_t down = rows > 16 ? 2 : 1, across = (columns + 15) / 16, step = 16 * across;
    const bool rounds = product.brains && !hold.data && k == product.inner;
    const bool straight = !rounds && rows == down * 16 && columns == across * 16 && product.rows.is_regular() &&
                          product.columns.contiguous(j, columns);
    const auto each_row = [&](auto&& f) {
      for (int64_t r = 0; r < rows; ++r) f(product.rows.at(i + r), beside + r * step);
    };
    const auto each = [&](auto&& f) {
      each_row([&](int64_t start, S* own) {
        for (int64_t c = 0; c < columns; ++c) f(product.out[start + product.columns.at(j + c)], own[c]);
      });
    };
    for (int64_t t = 0; t < down * across; ++t) {
      const int64_t row = t / across * 16, column = t % across * 16;
      block.out[t] = hold.data  ? hold.at(i + row, j + column)
                     : straight ? product.out + product.rows.at(i + row) + product.columns.at(j + column)
                                : beside + row * step + column;
      block.out_step[t] = (hold.data ? 32 : straight ? product.rows.stride() : step) * static_cast<int64_t>(sizeof(S));
    }
    const bool elsewhere = !hold.data && !straight;
    if (elsewhere && block.accumulate) each([](S& place, S& own) { own = place; });
    if (rounds) {
      const BrainBits* column = product.brains + product.columns.at(j);
      each_row([&](int64_t start, S*) { __builtin_prefetch(column + start, 1); });
    }
    function(down, across)(block);
    if constexpr (std::is_same_v<S, float>) {
      if (rounds) {
        const int64_t column = product.columns.at(j);
        return each_row(
            [&](int64_t start, float* own) { round_amx_sums(own, product.brains + start + column, columns); });
      }
    }
    if (elsewhere) each([](S& place, S& own) { place = own; });
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
