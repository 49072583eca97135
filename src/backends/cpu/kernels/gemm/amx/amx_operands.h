// What a matmul on AMX reads and writes: operands that are packed or in place, and sums on their way to the result.
#pragma once

#include "backends/cpu/kernels/gemm/amx/gemm_amx_block.h"
#include "backends/cpu/kernels/gemm/gemm_parts.h"
#include "backends/cpu/kernels/gemm/round_brains.h"
#include "backends/cpu/kernels/scratch.h"

#if defined(__x86_64__)

namespace capibara::cpu {

// An operand that is packed from item `first` and k `first_k` on, with `inner` k of each; null: it is not.
template <class P>
struct AmxPacked {
  const P* data = nullptr;
  int64_t first = 0, first_k = 0, inner = 0;

  const std::byte* at(int64_t item, int64_t k) const {
    return reinterpret_cast<const std::byte*>(data + (item - first) * inner + (k - first_k) * amx_rows);
  }
  int64_t panel() const { return inner * amx_rows * static_cast<int64_t>(sizeof(P)); }  // bytes
};

// Of a left operand in place, what does not fill tiles, packed: the last rows, and of the others the last k.
template <class K>
class AmxEdges {
 public:
  using P = typename K::Packed;
  static constexpr int64_t depth = K::together, size = sizeof(P);  // k of a tile, bytes of an element

  explicit AmxEdges(const Product<K>& product) : product_(product) {}

  void pack() {
    const int64_t m = product_.rows.extent(), inner = product_.inner, rows = m / 16 * 16, whole = inner / depth * depth;
    if (rows < m) {
      last_rows_ = Scratch<P>(16 * rounded(inner, depth), "packing of a matrix");
      product_.left(rows, m - rows, 0, inner, rounded(inner, depth), last_rows_.data());
    }
    if (whole == inner || rows == 0) return;
    last_k_ = Scratch<P>(rows * depth, "packing of a matrix");
    parallel_for_cost(rows / 16, 100, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * 16;
      product_.left(first, end * 16 - first, whole, inner - whole, depth, last_k_.data() + first * depth);
      return 0;
    });
  }

  // Rows [row, row + 16), from k0 on; `ends`: up to the last k.
  AmxLeft at(int64_t row, int64_t k0, bool ends) const {
    if (row + 16 > product_.rows.extent()) return {bytes(last_rows_.data() + k0 * 16), amx_row_bytes, amx_tile_bytes};
    return {bytes(product_.left_in_place + row * product_.left_stride + k0), product_.left_stride * size, amx_row_bytes,
            ends && last_k_.data() ? bytes(last_k_.data() + row * depth) : nullptr};
  }

 private:
  static const std::byte* bytes(const P* data) { return reinterpret_cast<const std::byte*>(data); }

  const Product<K>& product_;
  Scratch<P> last_rows_, last_k_;
};

// Where a task keeps the sums of some of its k: panels of 32 columns, all its rows in each.
template <class S>
struct AmxHold {
  S* data = nullptr;
  int64_t row, column, rows;  // the first ones, and how many

  S* at(int64_t i, int64_t j) const {
    return data + (j - column) / 32 * 32 * rows + (i - row) * 32 + (j - column) % 32;
  }
};

// Writes complete sums to the result: from `hold`, or rounded from the result itself.
template <class K>
void write_amx_sums(const Product<K>& product, const AmxHold<typename K::Sum>& hold, int64_t row, int64_t rows,
                    int64_t column, int64_t columns) {
  for (int64_t j = column; j < column + columns; j += 32) {
    const int64_t some = std::min<int64_t>(32, column + columns - j);
    for (int64_t i = row; i < row + rows; ++i) {
      const int64_t start = product.rows.at(i);
      if constexpr (std::is_same_v<typename K::Sum, float>) {
        if (product.brains) {
          const int64_t at = start + product.columns.at(j);
          round_amx_sums(hold.data ? hold.at(i, j) : product.out + at, product.brains + at, some);
          continue;
        }
      }
      for (int64_t c = 0; c < some; ++c) product.out[start + product.columns.at(j + c)] = hold.at(i, j)[c];
    }
  }
}

}  // namespace capibara::cpu

#endif
