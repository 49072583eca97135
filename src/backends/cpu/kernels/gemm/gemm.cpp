// The loops around the tile: blocks that fit the caches, packed once, distributed to threads.
//
// Three variants with identical bits, since the shape alone decides how k is cut. Few rows: all of the left operand is
// packed at once, and columns are split, each group packing its own part of the right operand. Many rows on x86: the
// result is cut into as many parts as there are threads, and each is computed by one thread alone, so that none waits
// for another and no packed block moves from core to core. Elsewhere all threads pack blocks of the right operand
// together, and rows are split. Few rows and columns but a long inner dimension: fixed parts of it are summed
// separately.
#include "backends/cpu/kernels/gemm/gemm.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/kernels/gemm/gemm_pack.h"
#include "backends/cpu/kernels/gemm/gemm_parts.h"
#include "backends/cpu/kernels/gemm/gemm_tile.h"
#include "backends/cpu/kernels/scratch.h"
#include "core/runtime/interrupt.h"

// How a matmul is partitioned: blocks that fit the caches, panels of tiles, parts for threads.

namespace capibara::cpu {

// The size of about equal parts, at most `limit` each.
inline int64_t even_part(int64_t whole, int64_t limit, int64_t step) {
  const int64_t parts = (whole + limit - 1) / limit;
  return parts <= 1 ? whole : rounded((whole + parts - 1) / parts, step);
}

// Splits columns into panels of up to `max_width` vectors; a last one of one vector would run at a third of the speed.
struct Panels {
  int64_t vectors, max_width;
  int64_t count() const { return (vectors + max_width - 1) / max_width; }
  int64_t start(int64_t panel) const {
    return panel * max_width - (panel > 0 && panel == count() - 1 && shared() ? 1 : 0);
  }
  int64_t width(int64_t panel) const { return (panel + 1 == count() ? vectors : start(panel + 1)) - start(panel); }
  bool shared() const { return max_width == 3 && vectors % 3 == 1 && vectors > 3; }
};

// Splits rows into tasks of about equally many panels, so that no thread waits for another: at most about `limit` rows
// each, and equally many tasks for every thread.
class RowTasks {
 public:
  RowTasks(int64_t rows, int64_t limit, int64_t panel, int threads)
      : rows_(rows), panel_(panel), panels_((rows + panel - 1) / panel), count_((rows + limit - 1) / limit) {
    if (count_ >= threads) count_ = std::min(panels_, rounded(count_, threads));
  }
  int64_t count() const { return count_; }
  int64_t most() const { return (panels_ + count_ - 1) / count_ * panel_; }
  // First row and number of rows.
  std::pair<int64_t, int64_t> rows(int64_t task) const {
    const int64_t first = panels_ * task / count_ * panel_, last = panels_ * (task + 1) / count_ * panel_;
    return {first, std::min(last, rows_) - first};
  }

 private:
  int64_t rows_, panel_, panels_, count_;
};

// Rows or columns that are cut at panels, into parts of about equal size.
struct Span {
  int64_t extent, panel;
  int64_t panels() const { return (extent + panel - 1) / panel; }
  int64_t most(int64_t parts) const { return (panels() + parts - 1) / parts * panel; }
  // [first, last) of a part.
  std::pair<int64_t, int64_t> part(int64_t i, int64_t parts) const {
    return {panels() * i / parts * panel, std::min(extent, panels() * (i + 1) / parts * panel)};
  }
};

// The grid of parts of a result.
struct Grid {
  int64_t rows, columns;
};

// The cheapest grid with one part for each thread: parts in one row of the grid pack the same rows, parts in one
// column the same columns.
inline Grid grid_of(int64_t row_panels, int64_t column_panels, int64_t threads) {
  constexpr double packing = 0.3, reading = 0.5;  // per row panel, per column panel; a tile takes 1
  Grid best{1, 1};
  double least = -1;
  for (int64_t rows = 1; rows <= std::min(threads, row_panels); ++rows) {
    const int64_t columns = std::min(threads / rows, column_panels);
    const auto m = static_cast<double>((row_panels + rows - 1) / rows),
               n = static_cast<double>((column_panels + columns - 1) / columns);
    const double time = m * n + packing * m + reading * n;
    if (least < 0 || time < least) best = {rows, columns}, least = time;
  }
  return best;
}

// Limits for what a part packs at once: its rows stay in the L2 cache.
inline constexpr int64_t max_packed_rows = 128, max_packed_columns = 2048;

// How a matmul is cut into blocks.
struct Blocks {
  bool by_columns;  // few rows
  int64_t inner, rows, columns;
};

template <class K>
Blocks blocks_of(int64_t m, int64_t n, int64_t inner) {
  constexpr int64_t size = sizeof(typename K::Packed);
  const Tile<K>& tile = best_tile<K>();
  Blocks blocks;
  blocks.by_columns = m <= 160 && rounded(m, tile.rows) * inner * size <= 640 * 1024;
  blocks.inner = even_part(inner, max_inner_bytes / size, 8);
  if (blocks.by_columns) {
    // Rows of the right operand are read in long runs; a block of it stays in the L2 cache.
    blocks.rows = m;
    blocks.columns = rounded(std::clamp<int64_t>(n / 8, 48, 512), tile.lanes * tile.vectors);
  } else {
    blocks.rows = rounded(std::clamp<int64_t>(m / 8, 64, 128), tile.rows);
    blocks.columns = even_part(n, 2048, tile.lanes * tile.vectors);
  }
  return blocks;
}

Axis::Axis(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  // Drops dimensions of one element and merges contiguous ones.
  std::vector<int64_t> merged_sizes, merged_strides;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    extent_ *= sizes[d];
    if (sizes[d] == 1) continue;
    if (!merged_sizes.empty() && merged_strides.back() == strides[d] * sizes[d]) {
      merged_sizes.back() *= sizes[d];
      merged_strides.back() = strides[d];
    } else {
      merged_sizes.push_back(sizes[d]);
      merged_strides.push_back(strides[d]);
    }
  }
  if (merged_sizes.size() <= 1 || extent_ == 0) {
    stride_ = merged_sizes.empty() ? 1 : merged_strides[0];
    return;
  }
  offsets_.reserve(static_cast<std::size_t>(extent_));
  std::vector<int64_t> index(merged_sizes.size(), 0);
  for (int64_t i = 0; i < extent_; ++i) {
    int64_t offset = 0;
    for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * merged_strides[d];
    offsets_.push_back(offset);
    for (std::size_t d = index.size(); d-- > 0;) {
      if (++index[d] < merged_sizes[d]) break;
      index[d] = 0;
    }
  }
  runs_.assign(offsets_.size(), 1);
  for (std::size_t i = offsets_.size() - 1; i-- > 0;) {
    if (offsets_[i + 1] == offsets_[i] + 1) runs_[i] = runs_[i + 1] + 1;
  }
}

Axis Axis::regular(int64_t extent, int64_t stride) {
  Axis axis;
  axis.extent_ = extent;
  axis.stride_ = stride;
  return axis;
}

namespace {

template <class K>
class Run {
 public:
  using P = typename K::Packed;
  using S = typename K::Sum;
  static constexpr int64_t together = K::together;

  explicit Run(const Product<K>& product)
      : product_(product),
        tile_(best_tile<K>()),
        m_(product.rows.extent()),
        n_(product.columns.extent()),
        inner_(product.inner),
        blocks_(blocks_of<K>(m_, n_, inner_)) {}

  void run() {
    if (blocks_.by_columns)
      by_columns();
    else if (in_parts())
      by_parts();
    else
      by_rows();
  }

  Panels panels(int64_t columns) const { return {(columns + tile_.lanes - 1) / tile_.lanes, tile_.vectors}; }
  int64_t panel_height(int64_t left) const { return tile_.height(left); }
  int64_t packed_rows(int64_t rows) const {
    const int64_t whole = rows / tile_.rows * tile_.rows;
    return whole == rows ? rows : whole + panel_height(rows - whole);
  }

  // Sizes of operands that are packed as a whole, and offsets of blocks in them.
  int64_t right_size() const { return rounded(n_, tile_.lanes) * rounded(inner_, together); }
  int64_t left_size() const { return packed_rows(m_) * rounded(inner_, together); }
  int64_t right_place(int64_t n0, int64_t n, int64_t k0) const {
    return n0 * rounded(inner_, together) + rounded(n, tile_.lanes) * k0;
  }
  int64_t left_place(int64_t m0, int64_t k0, int64_t k) const {
    return packed_rows(m_) * k0 + m0 * rounded(k, together);
  }

  void pack_whole_right(P* out) const {
    const int64_t column_blocks = (n_ + blocks_.columns - 1) / blocks_.columns,
                  inner_blocks = (inner_ + blocks_.inner - 1) / blocks_.inner;
    parallel_for_cost(column_blocks * inner_blocks, static_cast<double>(blocks_.columns * blocks_.inner) * 0.2,
                      [&](int64_t begin, int64_t end) {
                        for (int64_t t = begin; t < end; ++t) {
                          const int64_t n0 = t / inner_blocks * blocks_.columns, n = std::min(blocks_.columns, n_ - n0);
                          const int64_t k0 = t % inner_blocks * blocks_.inner, k = std::min(blocks_.inner, inner_ - k0);
                          pack_right(product_.right, n0, n, k0, k, out + right_place(n0, n, k0), 0, panels(n).count());
                        }
                        return 0;
                      });
  }

  void pack_whole_left(P* out) const {
    parallel_for_cost((m_ + tile_.rows - 1) / tile_.rows, static_cast<double>(tile_.rows * inner_) * 0.3,
                      [&](int64_t begin, int64_t end) {
                        for (int64_t k0 = 0; k0 < inner_; k0 += blocks_.inner) {
                          const int64_t k = std::min(blocks_.inner, inner_ - k0);
                          pack_left(0, m_, k0, k, out + left_place(0, k0, k), begin, end);
                        }
                        return 0;
                      });
  }

  // Panels [first, last) of the `columns` columns from n0 on.
  void pack_right(Pack<P> pack, int64_t n0, int64_t columns, int64_t k0, int64_t k, P* out, int64_t first,
                  int64_t last) const {
    const Panels all = panels(columns);
    const int64_t padded = rounded(k, together);
    for (int64_t p = first; p < last;) {
      const int64_t start = all.start(p) * tile_.lanes, width = all.width(p) * tile_.lanes;
      int64_t end = start;
      for (; p < last && all.width(p) * tile_.lanes == width; ++p) end += width;
      pack(n0 + start, std::min(end, columns) - start, k0, k, width, out + start * padded);
    }
  }

 private:
  double cost(int64_t m, int64_t n, int64_t k) const {
    return multiply_cost<K>(static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
  }
  void finish(int64_t m0, int64_t m, int64_t n0, int64_t n) const {
    if (product_.finish) (*product_.finish)(m0, m, n0, n);
  }

  void pack_left(int64_t m0, int64_t m, int64_t k0, int64_t k, P* out, int64_t first, int64_t last) const {
    const int64_t padded = rounded(k, together);
    for (int64_t p = first; p < last; ++p) {
      const int64_t i = p * tile_.rows;
      product_.left(m0 + i, std::min<int64_t>(tile_.rows, m - i), k0, k, panel_height(m - i), out + i * padded);
    }
  }

  // Rows [m0, m0 + m) by columns [n0, n0 + n) for k [k0, k0 + k), from packed panels; `right` null: read in place.
  void tiles(const P* left, int64_t m0, int64_t m, const P* right, int64_t n0, int64_t n, int64_t k0, int64_t k) const {
    const int64_t padded = rounded(k, together), steps = padded / together;
    const bool accumulate = k0 != 0;
    const Panels all = panels(n);
    const int64_t row_bytes = product_.rows.stride() * static_cast<int64_t>(sizeof(S));
    alignas(64) S edge[max_tile_rows * max_tile_columns];
    for (int64_t p = 0; p < all.count(); ++p) {
      const int64_t vectors = all.width(p), j = all.start(p) * tile_.lanes, panel = vectors * tile_.lanes,
                    width = std::min(panel, n - j);
      const P* b = right ? right + j * padded : product_.right_in_place + k0 * product_.right_stride + n0 + j;
      const int64_t b_step = static_cast<int64_t>(sizeof(P)) * (right ? panel * together : product_.right_stride);
      const bool straight = width == panel && product_.columns.contiguous(n0 + j, width) && product_.rows.is_regular();
      S* column = product_.out + product_.columns.at(n0 + j);
      for (int64_t i = 0; i < m; i += tile_.rows) {
        const P* a = left + i * padded;
        const int64_t height = std::min<int64_t>(tile_.rows, m - i), whole = panel_height(m - i);
        const TileFunction<K> run = tile_.function(whole, vectors);
        if (straight && height == whole) {
          run(steps, a, b, b_step, column + product_.rows.at(m0 + i), row_bytes, accumulate);
          continue;
        }
        run(steps, a, b, b_step, edge, panel * static_cast<int64_t>(sizeof(S)), 0);
        const bool neighbours = product_.columns.contiguous(n0 + j, width);
        for (int64_t r = 0; r < height; ++r) {
          S* target = product_.out + product_.rows.at(m0 + i + r);
          const S* value = edge + r * panel;
          if (neighbours) {
            target += product_.columns.at(n0 + j);
            if (accumulate) {
              for (int64_t c = 0; c < width; ++c) target[c] += value[c];
            } else {
              for (int64_t c = 0; c < width; ++c) target[c] = value[c];
            }
          } else {
            for (int64_t c = 0; c < width; ++c) {
              S& place = target[product_.columns.at(n0 + j + c)];
              place = accumulate ? place + value[c] : value[c];
            }
          }
        }
      }
    }
  }

  bool in_parts() const {
#if defined(__x86_64__)
    return thread_count() > 1 && !in_parallel_region() && !product_.packed_right;
#else
    return false;
#endif
  }

  void by_parts() {
    const int64_t threads = thread_count(), step = tile_.lanes * tile_.vectors;
    const Span all_rows{m_, tile_.rows}, all_columns{n_, step};
    // Large matmuls get twice as many parts: slower threads take fewer of them.
    const bool large = cost(m_, n_, inner_) > 16e6 * static_cast<double>(threads);
    const Grid grid = grid_of(all_rows.panels(), all_columns.panels(), large ? 2 * threads : threads);
    const int64_t max_inner = rounded(std::min(inner_, blocks_.inner), together);
    const int64_t most_rows = all_rows.most(grid.rows), most_columns = all_columns.most(grid.columns);
    const int64_t column_step = even_part(most_columns, max_packed_columns, step);
    const int64_t row_step = std::min<int64_t>(most_rows, max_packed_rows / tile_.rows * tile_.rows);
    parallel_for_cost(grid.rows * grid.columns, cost(most_rows, most_columns, inner_), [&](int64_t begin, int64_t end) {
      Scratch<P> left, right(rounded(column_step, step) * max_inner, "packing of a matrix");
      if (!product_.packed_left) left = Scratch<P>(row_step * max_inner, "packing of a matrix");
      for (int64_t t = begin; t < end; ++t) {
        const auto [first_row, end_row] = all_rows.part(t / grid.columns, grid.rows);
        const auto [first_column, end_column] = all_columns.part(t % grid.columns, grid.columns);
        for (int64_t n0 = first_column; n0 < end_column; n0 += column_step) {
          const int64_t n = std::min(column_step, end_column - n0);
          for (int64_t k0 = 0; k0 < inner_; k0 += blocks_.inner) {
            const int64_t k = std::min(blocks_.inner, inner_ - k0);
            pack_right(product_.right, n0, n, k0, k, right.data(), 0, panels(n).count());
            for (int64_t m0 = first_row; m0 < end_row; m0 += row_step) {
              const int64_t m = std::min(row_step, end_row - m0);
              const P* rows = left.data();
              if (product_.packed_left)
                rows = product_.packed_left + left_place(m0, k0, k);
              else
                pack_left(m0, m, k0, k, left.data(), 0, (m + tile_.rows - 1) / tile_.rows);
              tiles(rows, m0, m, right.data(), n0, n, k0, k);
              if (k0 + k == inner_) finish(m0, m, n0, n);
              poll_stop();
            }
          }
        }
      }
      return 0;
    });
  }

  void by_columns() {
    Scratch<P> left_block;
    const P* left = product_.packed_left;
    if (!left) {
      left_block = Scratch<P>(left_size(), "packing of a matrix");
      pack_whole_left(left_block.data());
      left = left_block.data();
    }
    const int64_t groups = (n_ + blocks_.columns - 1) / blocks_.columns;
    const bool packs = !product_.right_in_place && !product_.packed_right;
    const double each = cost(m_, std::min(n_, blocks_.columns), inner_) +
                        (packs ? static_cast<double>(blocks_.columns * inner_) * 0.2 : 0);
    parallel_for_cost(groups, each, [&](int64_t begin, int64_t end) {
      Scratch<P> block;
      if (packs)
        block = Scratch<P>(
            rounded(std::min(n_, blocks_.columns), tile_.lanes) * rounded(std::min(inner_, blocks_.inner), together),
            "packing of a matrix");
      for (int64_t g = begin; g < end; ++g) {
        const int64_t n0 = g * blocks_.columns, n = std::min(blocks_.columns, n_ - n0);
        for (int64_t k0 = 0; k0 < inner_; k0 += blocks_.inner) {
          const int64_t k = std::min(blocks_.inner, inner_ - k0);
          const P* right = product_.packed_right ? product_.packed_right + right_place(n0, n, k0) : nullptr;
          if (packs) {
            pack_right(product_.right, n0, n, k0, k, block.data(), 0, panels(n).count());
            right = block.data();
          }
          tiles(left + left_place(0, k0, k), 0, m_, right, n0, n, k0, k);
        }
        finish(0, m_, n0, n);
        poll_stop();
      }
      return 0;
    });
  }

  void by_rows() {
    const RowTasks tasks_of_rows(m_, blocks_.rows, tile_.rows, in_parallel_region() ? 1 : thread_count());
    const int64_t row_step = tasks_of_rows.most(), row_tasks = tasks_of_rows.count();
    const int64_t max_inner = rounded(std::min(inner_, blocks_.inner), together);
    const int64_t max_columns = rounded(std::min(n_, blocks_.columns), tile_.lanes);
    // With more threads than blocks of rows, columns are split as well and all rows are packed first.
    const bool grid = thread_count() > row_tasks && !in_parallel_region();
    Scratch<P> right_block, left_block;
    if (!product_.packed_right) right_block = Scratch<P>(max_columns * max_inner, "packing of a matrix");
    if (grid && !product_.packed_left) left_block = Scratch<P>(packed_rows(m_) * max_inner, "packing of a matrix");
    for (int64_t n0 = 0; n0 < n_; n0 += blocks_.columns) {
      const int64_t n = std::min(blocks_.columns, n_ - n0);
      for (int64_t k0 = 0; k0 < inner_; k0 += blocks_.inner) {
        const int64_t k = std::min(blocks_.inner, inner_ - k0), padded = rounded(k, together);
        const bool last = k0 + k == inner_;
        poll_stop();
        const P* right = product_.packed_right ? product_.packed_right + right_place(n0, n, k0) : right_block.data();
        const double each = static_cast<double>(tile_.lanes * tile_.vectors * k) * 0.2;
        if (!product_.packed_right) {
          parallel_for_cost(panels(n).count(), each, [&](int64_t begin, int64_t end) {
            pack_right(product_.right, n0, n, k0, k, right_block.data(), begin, end);
            return 0;
          });
        }
        const P* left = product_.packed_left ? product_.packed_left + left_place(0, k0, k) : left_block.data();
        if (grid) {
          if (!product_.packed_left)
            parallel_for_cost((m_ + tile_.rows - 1) / tile_.rows, static_cast<double>(tile_.rows * k) * 0.3,
                              [&](int64_t begin, int64_t end) {
                                pack_left(0, m_, k0, k, left_block.data(), begin, end);
                                return 0;
                              });
          // Groups of columns that start at panels of the block: all panels but the last two have the same width.
          const Panels all = panels(n);
          const int64_t tasks = std::clamp<int64_t>(2 * thread_count() / row_tasks, 1, all.count());
          const int64_t group = (all.count() + tasks - 1) / tasks, groups = (all.count() + group - 1) / group;
          parallel_for_cost(row_tasks * groups, cost(row_step, group * tile_.lanes * tile_.vectors, k),
                            [&](int64_t begin, int64_t end) {
                              for (int64_t t = begin; t < end; ++t) {
                                const auto [m0, m] = tasks_of_rows.rows(t % row_tasks);
                                const int64_t first = t / row_tasks * group;
                                const int64_t from = all.start(first) * tile_.lanes;
                                const int64_t to =
                                    first + group < all.count() ? all.start(first + group) * tile_.lanes : n;
                                tiles(left + m0 * padded, m0, m, right + from * padded, n0 + from, to - from, k0, k);
                                if (last) finish(m0, m, n0 + from, to - from);
                                poll_stop();
                              }
                              return 0;
                            });
        } else {
          parallel_for_cost(row_tasks, cost(row_step, n, k), [&](int64_t begin, int64_t end) {
            Scratch<P> block;
            if (!left) block = Scratch<P>(packed_rows(row_step) * max_inner, "packing of a matrix");
            for (int64_t t = begin; t < end; ++t) {
              const auto [m0, m] = tasks_of_rows.rows(t);
              if (!left) pack_left(m0, m, k0, k, block.data(), 0, (m + tile_.rows - 1) / tile_.rows);
              tiles(left ? left + m0 * padded : block.data(), m0, m, right, n0, n, k0, k);
              if (last) finish(m0, m, n0, n);
              poll_stop();
            }
            return 0;
          });
        }
      }
    }
  }

  const Product<K>& product_;
  const Tile<K>& tile_;
  const int64_t m_, n_, inner_;
  const Blocks blocks_;
};

}  // namespace

template <class K>
int64_t Product<K>::packed_left_size() const {
  return inner_parts(rows.extent(), columns.extent(), inner) == 1 ? Run<K>(*this).left_size() : 0;
}
template <class K>
int64_t Product<K>::packed_right_size() const {
  return inner_parts(rows.extent(), columns.extent(), inner) == 1 ? Run<K>(*this).right_size() : 0;
}
template <class K>
void Product<K>::pack_left(P* to) const {
  Run<K>(*this).pack_whole_left(to);
}
template <class K>
void Product<K>::pack_right(P* to) const {
  Run<K>(*this).pack_whole_right(to);
}

template <class K>
void Product<K>::run() const {
  run_in_parts<Run<K>>(*this);
}

#define CAPIBARA_INSTANTIATE(KIND) template struct Product<KIND>;
CAPIBARA_INSTANTIATE(Singles)
CAPIBARA_INSTANTIATE(Doubles)
CAPIBARA_INSTANTIATE(Words)
CAPIBARA_INSTANTIATE(Longs)
CAPIBARA_INSTANTIATE(Bfloat16)
CAPIBARA_INSTANTIATE(SignedBytes)
CAPIBARA_INSTANTIATE(UnsignedBytes)
CAPIBARA_INSTANTIATE(SignedByUnsigned)
CAPIBARA_INSTANTIATE(UnsignedBySigned)
#undef CAPIBARA_INSTANTIATE

}  // namespace capibara::cpu
