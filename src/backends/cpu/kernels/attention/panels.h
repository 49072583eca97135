// Packed panels of attention's operands, and their matmuls by the GEMM tiles.
//
// A left operand is packed as panels of a tile's rows, a right one as panels of one to three vectors of columns. Panels
// hold panel[k / together][row or column][k % together].
#pragma once

#include "backends/cpu/kernels/gemm/gemm_pack.h"
#include "backends/cpu/kernels/gemm/gemm_tile.h"
#include "core/array/element.h"

namespace capibara::cpu::attention {

// Splits columns into panels of up to `most` vectors; avoids a last panel of a single vector.
struct ColumnPanels {
  int64_t vectors, most;
  int64_t count() const { return (vectors + most - 1) / most; }
  int64_t start(int64_t panel) const { return panel * most - (panel > 0 && panel == count() - 1 && shared() ? 1 : 0); }
  int64_t width(int64_t panel) const { return (panel + 1 == count() ? vectors : start(panel + 1)) - start(panel); }
  bool shared() const { return most == 3 && vectors % 3 == 1 && vectors > 3; }
};

inline int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

template <class K>
struct Tiles {
  using P = typename K::Packed;
  using C = typename K::Sum;
  static constexpr int64_t together = K::together;
  const Tile<K>& tile = best_tile<K>();
  struct Session {};  // what a thread holds while it multiplies

  static int64_t padded(int64_t k) { return round_up(k, together); }
  int64_t lanes() const { return tile.lanes; }
  int64_t full_width() const { return tile.lanes * tile.vectors; }
  ColumnPanels panels(int64_t columns) const { return {(columns + tile.lanes - 1) / tile.lanes, tile.vectors}; }
  int64_t panel_height(int64_t left) const { return tile.height(left); }
  int64_t packed_rows(int64_t rows) const {
    const int64_t whole = rows / tile.rows * tile.rows;
    return whole == rows ? rows : whole + panel_height(rows - whole);
  }

  // Columns with contiguous k: column c starts at from + c * stride; columns from `count` to `width` are zeros.
  template <class S>
  void pack_right(const S* from, int64_t stride, int64_t count, int64_t k, int64_t width, P* out) const {
    const S* start[max_panel_width];
    for (int64_t i = 0; i < width; ++i) start[i] = i < count ? from + i * stride : absent_row<S>();
    pack_transposed<K, S>(start, k, width, out);
  }
  // Rows with contiguous k.
  template <class S>
  void pack_left(const S* from, int64_t stride, int64_t rows, int64_t k, P* out) const {
    for (int64_t r = 0; r < rows; r += tile.rows) {
      const int64_t height = panel_height(rows - r);
      pack_right(from + r * stride, stride, std::min(rows - r, height), k, height, out + r * padded(k));
    }
  }
  // Contiguous rows, whose k are `stride` apart.
  template <class S>
  void pack_left_across(const S* from, int64_t stride, int64_t rows, int64_t k, P* out) const {
    for (int64_t r = 0; r < rows; r += tile.rows) {
      const int64_t height = panel_height(rows - r);
      pack_across<K, S>(from + r, stride, std::min(rows - r, height), k, height, out + r * padded(k));
    }
  }

  // c = or += left * right for rows [first, last) and k [k0, k1), where `left` has `k` in total; `first` is a
  // multiple of a tile's rows, k0 of `together`. `right` begins at k0, with `right_step` elements for each k; c begins
  // at row 0.
  void multiply(const P* left, int64_t rows, int64_t k, int64_t first, int64_t last, int64_t k0, int64_t k1,
                const P* right, int64_t right_step, C* c, int64_t c_stride, int64_t vectors, bool accumulate) const {
    const int64_t steps = (k1 - k0 + together - 1) / together;
    if (steps <= 0) return;
    for (int64_t r = first; r < last; r += tile.rows) {
      const int64_t height = panel_height(rows - r);
      tile.function(height, vectors)(steps, left + r * padded(k) + k0 * height, right,
                                     right_step * together * static_cast<int64_t>(sizeof(P)), c + r * c_stride,
                                     c_stride * static_cast<int64_t>(sizeof(C)), accumulate);
    }
  }
};

// Accumulators as panels store them: in place if the types are equal, else rounded into `hold`.
template <class K>
const typename K::Packed* narrowed(const typename K::Sum* values, int64_t begin, int64_t end,
                                   typename K::Packed* hold) {
  if constexpr (std::is_same_v<typename K::Packed, typename K::Sum>) {
    return values;
  } else {
    for (int64_t i = begin; i < end; ++i) {
      const std::uint32_t bits = std::bit_cast<std::uint32_t>(values[i]),
                          up = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
      hold[i].bits = static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : up);
    }
    return hold;
  }
}

// `k` rows of `width` values as a panel of a right operand: in place if nothing is interleaved.
template <class K>
const typename K::Packed* as_panel(const typename K::Packed* rows, int64_t k, int64_t width, typename K::Packed* hold) {
  if constexpr (K::together == 1) {
    return rows;
  } else {
    pack_across<K, typename K::Packed>(rows, width, width, k, width, hold);
    return hold;
  }
}

// `k` rows of `width` accumulators as a panel of a right operand, rounded if types differ.
template <class K>
const typename K::Packed* rounded_panel(const typename K::Sum* rows, int64_t k, int64_t width,
                                        typename K::Packed* narrow, typename K::Packed* panel) {
  return as_panel<K>(narrowed<K>(rows, 0, k * width, narrow), k, width, panel);
}

// The array element type whose bits are packed from S.
template <class S>
struct ElementOf {
  using type = S;
};
template <>
struct ElementOf<Bfloat16Bits> {
  using type = BFloat16;
};
template <>
struct ElementOf<HalfBits> {
  using type = Half;
};

}  // namespace capibara::cpu::attention
