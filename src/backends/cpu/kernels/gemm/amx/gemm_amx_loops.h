// The loops around the tiles of AMX: blocks that fit the caches, shared out among threads.
//
// A task is a block of the result. It meets all its rows with as many columns of the right operand as the second cache
// holds before it goes on to the next ones. These are packed by the task itself on one thread, by all threads together
// before the tasks begin where there are several. The left operand is read in place where its k are neighbours, else
// packed too. The sums of a block stay in tiles for all its k where they are not too many: storing and loading them
// costs as much as many multiplications.
#pragma once

#include "backends/cpu/kernels/gemm/amx/amx_blocking.h"
#include "backends/cpu/kernels/gemm/amx/gemm_amx_part.h"
#include "core/runtime/interrupt.h"

#if defined(__x86_64__)

namespace capibara::cpu {

template <class K, class Tiles>
class AmxRun {
 public:
  using P = typename K::Packed;
  static constexpr int64_t depth = K::together, size = sizeof(P);  // k of a tile, bytes of an element

  explicit AmxRun(const Product<K>& product)
      : AmxRun(product, AmxBlocking::of(product.rows.extent(), product.columns.extent(), product.inner * size,
                                        product.right_stride == 1, in_parallel_region() ? 1 : thread_count())) {}
  AmxRun(const Product<K>& product, const AmxBlocking& blocking)
      : product_(product),
        blocking_(blocking),
        m_(product.rows.extent()),
        n_(product.columns.extent()),
        inner_(product.inner),
        edges_(product) {}

  int64_t right_size() const { return rounded(n_, 16) * rounded(inner_, depth); }
  int64_t left_size() const { return rounded(m_, 16) * rounded(inner_, depth); }
  void pack_whole_right(P* out) const { pack(product_.right, 0, n_, 0, inner_, out); }
  void pack_whole_left(P* out) const { pack(product_.left, 0, m_, 0, inner_, out); }

  void run() {
    // What is packed of an operand at once stays below this, however large it is.
    constexpr int64_t max_packed = 16 << 20, max_inner = 32 << 10;
    const bool in_place = !product_.packed_left && product_.left_in_place;
    const bool packs_left = !product_.packed_left && !in_place;
    const bool packs_right = !product_.packed_right && blocking_.shares && m_ > blocking_.rows;
    const int64_t inner_step = packs_left ? std::min(rounded(inner_, depth), max_inner / size) : rounded(inner_, depth);
    const int64_t max_items = std::max<int64_t>(512, max_packed / (inner_step * size) / 512 * 512);
    const int64_t row_step = packs_left ? max_items : m_, column_step = packs_right ? max_items : n_;
    Scratch<P> left, right;
    if (packs_left) left = Scratch<P>(std::min(rounded(m_, 16), row_step) * inner_step, "packing of a matrix");
    if (packs_right) right = Scratch<P>(std::min(rounded(n_, 16), column_step) * inner_step, "packing of a matrix");
    if (in_place) edges_.pack();
    for (int64_t n0 = 0; n0 < n_; n0 += column_step) {
      const int64_t n = std::min(column_step, n_ - n0);
      for (int64_t k0 = 0; k0 < inner_; k0 += inner_step) {
        const int64_t k = std::min(inner_step, inner_ - k0);
        if (packs_right) pack(product_.right, n0, n, k0, k, right.data());
        right_ = {right.data(), n0, k0, rounded(k, depth)};
        if (product_.packed_right) right_ = {product_.packed_right, 0, 0, rounded(inner_, depth)};
        for (int64_t m0 = 0; m0 < m_; m0 += row_step) {
          const int64_t m = std::min(row_step, m_ - m0);
          if (packs_left) pack(product_.left, m0, m, k0, k, left.data());
          left_ = {left.data(), m0, k0, rounded(k, depth)};
          if (product_.packed_left) left_ = {product_.packed_left, 0, 0, rounded(inner_, depth)};
          share_out(m0, m, n0, n, k0, k);
        }
      }
    }
  }

 private:
  void pack(Pack<P> pack, int64_t first, int64_t count, int64_t k0, int64_t k, P* out) const {
    const int64_t items = thread_count() > 1 ? 256 : 1024, strip = 4 * depth;  // memory is read in long pieces
    const int64_t groups = (count + items - 1) / items, strips = (k + strip - 1) / strip, panel = rounded(k, depth);
    const double cost = static_cast<double>(std::min(count, items) * strip * size) * 0.05;
    parallel_for_cost(groups * strips, cost, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end;) {
        const int64_t i = t / strips * items, p = t % strips * strip, more = std::min(end - t, strips - t % strips);
        const int64_t some = std::min(more * strip, k - p);
        pack(first + i, std::min(items, count - i), k0 + p, some, panel, out + i * panel + p * amx_rows);
        t += more;
      }
      return 0;
    });
  }

  void share_out(int64_t m0, int64_t m, int64_t n0, int64_t n, int64_t k0, int64_t k) const {
    const int64_t row_tasks = (m + blocking_.rows - 1) / blocking_.rows;
    const int64_t max_rows = std::min(m, blocking_.rows), max_columns = std::min(n, blocking_.columns);
    const double cost = multiply_cost<K>(static_cast<double>(max_rows * max_columns) * static_cast<double>(k)) +
                        (right_.data ? 0 : static_cast<double>(max_columns * k * size) * 0.05);
    parallel_for_cost(blocking_.tasks(m, n), cost, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t row = m0 + t % row_tasks * blocking_.rows, rows = std::min(blocking_.rows, m0 + m - row);
        const int64_t column = n0 + t / row_tasks * blocking_.columns;
        const int64_t columns = std::min(blocking_.columns, n0 + n - column);
        run_task(row, rows, column, columns, k0, k);
        if (k0 + k == inner_ && product_.finish) (*product_.finish)(row, rows, column, columns);
      }
      return 0;
    });
  }

  void run_task(int64_t row, int64_t rows, int64_t first, int64_t columns, int64_t k0, int64_t k) const {
    using S = typename K::Sum;
    const int64_t step = std::min(rounded(k, depth), std::max(depth, blocking_.inner_bytes / size));
    const int64_t chunk = std::min(blocking_.chunk, columns);
    const bool packs = !right_.data, holds = step < k && k == inner_;
    Scratch<P> block;
    Scratch<S> sums;
    if (packs) block = Scratch<P>(rounded(chunk, 16) * step, "packing of a matrix");
    if (holds) sums = Scratch<S>(rounded(rows, 32) * rounded(chunk, 64), "sums of a product");
    for (int64_t column = first; column < first + columns; column += chunk) {
      const int64_t width = std::min(chunk, first + columns - column);
      const AmxHold<S> hold{sums.data(), row, column, rounded(rows, 32)};
      for (int64_t p = k0; p < k0 + k; p += step) {
        const int64_t some = std::min(step, k0 + k - p);
        if (packs) product_.right(column, width, p, some, step, block.data());
        const AmxPacked<P> own{block.data(), column, p, step};
        AmxPart<K, Tiles>{product_, left_, edges_, packs ? own : right_, hold, row, rows, column, width, p, some}.run();
        poll_stop();
      }
      if (k0 + k == inner_ && (holds || (product_.brains && k0 > 0)))
        write_amx_sums(product_, hold, row, rows, column, width);
    }
  }

  const Product<K>& product_;
  const AmxBlocking blocking_;
  const int64_t m_, n_, inner_;
  AmxPacked<P> left_, right_;  // null: read in place, packed by each task
  AmxEdges<K> edges_;
};

}  // namespace capibara::cpu

#endif
