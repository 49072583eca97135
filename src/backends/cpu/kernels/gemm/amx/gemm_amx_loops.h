// The loops around the AMX tiles: blocks that fit the caches, distributed to threads.
//
// A task is a block of the result. It multiplies all its rows with as many columns of the right operand as the L2 cache
// holds before it continues with the next ones. One thread, or a few with many columns each, pack these in the task
// itself: no packed column moves from core to core. Otherwise all threads pack together before the tasks begin.
// The left operand is read in place where its k are contiguous, else packed
// too. The sums of a block stay in tiles for all its k if these are few enough: storing and reloading sums costs as
// much as many multiplications.
#pragma once

#include <algorithm>

#include "backends/cpu/kernels/gemm/amx/gemm_amx_block.h"
#include "backends/cpu/kernels/gemm/gemm_parts.h"
#include "backends/cpu/kernels/gemm/round_to_bfloat16.h"
#include "backends/cpu/kernels/scratch.h"
#include "core/runtime/interrupt.h"

// How a matmul on AMX is cut into tasks and blocks: its result does not depend on it.

namespace capibara::cpu {

struct AmxBlocking {
  int64_t rows, columns;  // of a task
  int64_t chunk;          // columns of a task that are packed at once
  int64_t inner_bytes;    // k of a row that are packed at once
  bool shares = false;    // all threads pack the right operand together before the tasks begin

  // `row_bytes`: all k of a row. `along_inner`: the k of the right operand are contiguous in memory, rather than its
  // columns; packing reads long runs. `by_rows`: blocks of whole rows are needed as soon as they are complete.
  static AmxBlocking of(int64_t m, int64_t n, int64_t row_bytes, bool along_inner, bool by_rows, int threads) {
    constexpr int64_t few = 64, few_threads = 4, min_columns = 512, second_cache = 1 << 20, max_inner = 4096,
                      max_shared_inner = 32 << 10;
    if (m <= few) {
      const int64_t columns = std::clamp<int64_t>(rounded(n / (threads > 1 ? 2 * threads : 1), 64), 64, 1024);
      if (along_inner) return {rounded(m, 16), columns, std::min<int64_t>(columns, 128), 2048};
      return {rounded(m, 16), columns, columns, 256};
    }
    AmxBlocking blocking{rounded(m, 32), rounded(n, 32), 0, std::min(rounded(row_bytes, 64), max_inner)};
    blocking.rows = std::min<int64_t>(blocking.rows, 2048);
    // Two tasks for each thread: slower threads take fewer.
    const int64_t parts = 2 * threads;
    const bool by_columns = !by_rows && threads > 1 && threads <= few_threads && n >= min_columns * parts;
    if (by_columns) blocking.columns = rounded((n + parts - 1) / parts, 32);
    blocking.shares = !by_columns && threads > 1 && row_bytes <= max_shared_inner;
    if (threads > 1 && !by_columns) {
      // Tall tasks: columns packed by another thread have to be fetched, which pays off over many rows.
      const int64_t rows = std::clamp<int64_t>(second_cache / std::max<int64_t>(1, row_bytes) / 64 * 64, 256, 512);
      blocking.rows = std::min(blocking.rows, rows);
      for (int64_t* extent : {&blocking.columns, &blocking.rows}) {
        while (blocking.tasks(m, n) < 2 * threads && *extent > 64) *extent = rounded(*extent / 2, 32);
      }
    }
    blocking.chunk = std::min(blocking.columns, second_cache / blocking.inner_bytes / 32 * 32);
    return blocking;
  }
  int64_t tasks(int64_t m, int64_t n) const { return (m + rows - 1) / rows * ((n + columns - 1) / columns); }
};

}  // namespace capibara::cpu

// Operands of a matmul on AMX, packed or in place, and its sums before they are written to the result.

#if defined(__x86_64__)

namespace capibara::cpu {

// An operand packed from item `first` and k `first_k` on, with `inner` k for each item; null: not packed.
template <class P>
struct AmxPacked {
  const P* data = nullptr;
  int64_t first = 0, first_k = 0, inner = 0;

  const std::byte* at(int64_t item, int64_t k) const {
    return reinterpret_cast<const std::byte*>(data + (item - first) * inner + (k - first_k) * amx_rows);
  }
  int64_t panel() const { return inner * amx_rows * static_cast<int64_t>(sizeof(P)); }  // bytes
};

// The packed parts of a left operand in place that do not fill tiles: the last rows, and the last k of the others.
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

  // Rows [row, row + 16), from k0 on; `ends`: through the last k.
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

// Partial sums of a task between parts of k: panels of 32 columns, each with all the task's rows.
template <class S>
struct AmxHold {
  S* data = nullptr;
  int64_t row, column, rows;  // first row and column, number of rows

  S* at(int64_t i, int64_t j) const {
    return data + (j - column) / 32 * 32 * rows + (i - row) * 32 + (j - column) % 32;
  }
};

// Writes complete sums to the result: from `hold`, or from the result itself if they are only rounded.
template <class K>
void write_amx_sums(const Product<K>& product, const AmxHold<typename K::Sum>& hold, int64_t row, int64_t rows,
                    int64_t column, int64_t columns) {
  for (int64_t j = column; j < column + columns; j += 32) {
    const int64_t some = std::min<int64_t>(32, column + columns - j);
    for (int64_t i = row; i < row + rows; ++i) {
      const int64_t start = product.rows.at(i);
      if constexpr (std::is_same_v<typename K::Sum, float>) {
        if (product.bfloat16s) {
          const int64_t at = start + product.columns.at(j);
          round_amx_sums(hold.data ? hold.at(i, j) : product.out + at, product.bfloat16s + at, some);
          continue;
        }
      }
      for (int64_t c = 0; c < some; ++c) product.out[start + product.columns.at(j + c)] = hold.at(i, j)[c];
    }
  }
}

}  // namespace capibara::cpu

#endif

// A part of a matmul on AMX: some rows by some columns for some k, from operands in memory or packed.

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
  const AmxEdges<K>& edges;  // used where left is not packed
  const AmxPacked<P>& right;
  const AmxHold<S>& hold;  // null: sums are in the result
  int64_t m0, m, n0, n, k0, k;

  // Tiles stay configured only while no other code is called. 32 rows stay in the near caches while the columns stream
  // from L2, and the next rows are prefetched.
  void run() const {
    Tiles::configure();
    alignas(64) S beside[32 * 32];
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
        look_ahead(block, i + 32, (j - n0) / width);
        run_block(block, i, rows, j, std::min(width, n0 + n - j), beside);
      }
    }
    Tiles::release();
    block.rounding.store(0, block.rounding.rows);
  }

 private:
  AmxLeft left_at(int64_t row) const {
    if (left.data) return {left.at(row, k0), amx_row_bytes, amx_tile_bytes};
    return edges.at(row, k0, k0 + k == product.inner);
  }

  // Selects some of the 32 rows from `first` on for block `index` to prefetch, so that the first blocks prefetch all.
  void look_ahead(AmxBlock& block, int64_t first, int64_t index) const {
    const int64_t blocks = (n + 31) / 32, some = std::clamp<int64_t>(32 / blocks, 2, 4), next = index * some;
    const int64_t panel = first + next / 16 * 16;
    block.ahead = {};
    if (next >= 32 || panel + 16 > m0 + m) return;
    const AmxLeft at = left_at(panel);
    const int64_t step = left.data ? block.steps * amx_row_bytes : at.row_step;
    block.ahead = {at.data + next % 16 * step, some, step};
  }

  // Whole tiles of sums are written directly; partial ones, and those to be rounded, go through `beside`. The steps of
  // the next block round them; until then, the steps of this one prefetch where they will be stored.
  void run_block(AmxBlock& block, int64_t i, int64_t rows, int64_t j, int64_t columns, S* beside) const {
    const int64_t down = rows > 16 ? 2 : 1, across = (columns + 15) / 16, step = 16 * across;
    const bool rounds = product.bfloat16s && !hold.data && k == product.inner;
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
    Bfloat16Bits* rounded = nullptr;
    block.written = {};
    if (rounds && product.rows.is_regular()) {
      rounded = product.bfloat16s + product.rows.at(i) + product.columns.at(j);
      const int64_t each_step = (rows + block.steps - 1) / block.steps;
      block.written = {reinterpret_cast<const std::byte*>(rounded), each_step,
                       product.rows.stride() * static_cast<int64_t>(sizeof(Bfloat16Bits))};
    }
    function(down, across)(block);
    block.rounding = {};
    if constexpr (std::is_same_v<S, float>) {
      if (rounded) {
        block.rounding = {beside, rounded, rows, columns, step, product.rows.stride()};
        return;
      }
      if (rounds) {
        const int64_t column = product.columns.at(j);
        return each_row(
            [&](int64_t start, float* own) { round_amx_sums(own, product.bfloat16s + start + column, columns); });
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

#if defined(__x86_64__)

namespace capibara::cpu {

template <class K, class Tiles>
class AmxRun {
 public:
  using P = typename K::Packed;
  static constexpr int64_t depth = K::together, size = sizeof(P);  // k of a tile, bytes of an element

  explicit AmxRun(const Product<K>& product)
      : AmxRun(product, AmxBlocking::of(product.rows.extent(), product.columns.extent(), product.inner * size,
                                        product.right_stride == 1, product.finish != nullptr,
                                        in_parallel_region() ? 1 : thread_count())) {}
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
    // Limit for what is packed of an operand at once, however large it is.
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
    const int64_t items = thread_count() > 1 ? 256 : 1024, strip = 4 * depth;  // memory is read in long runs
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
      if (k0 + k == inner_ && (holds || (product_.bfloat16s && k0 > 0)))
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
