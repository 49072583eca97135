// The loops around the tile: blocks that fit the caches, packed once, shared out among threads.
#include "backends/cpu/kernels/gemm.h"

#include <algorithm>
#include <thread>

#include "backends/cpu/kernels/gemm_tile.h"
#include "backends/cpu/kernels/scratch.h"
#include "runtime/interrupt.h"

namespace capibara::cpu {

Axis::Axis(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  // Dimensions of one element say nothing; those that continue each other are one.
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

// Bytes of one packed block of the left operand stay in the second-level cache, of the right one in the last.
constexpr int64_t inner_block = 384, row_block = 128, column_block = 1536;

// Panels of a fixed number of rows: the compiler knows the inner loop's length.
template <int Width, class T>
void pack_panel(const T* data, const Axis& rows, const Axis& inner, int64_t first, int64_t count, int64_t k0, int64_t k, Real<T>* out) {
  constexpr int64_t step = Width * Parts<T>::count;
  if (inner.is_regular() && count == Width) {
    const int64_t stride = inner.stride();
    const T* start[Width];
    for (int64_t i = 0; i < Width; ++i) start[i] = data + rows.at(first + i) + k0 * stride;
    if (stride == 1) {
      for (int64_t p = 0; p < k; ++p) {
        for (int64_t i = 0; i < Width; ++i) put_packed<T>(out + p * step, i, Width, start[i][p]);
      }
      return;
    }
    if (rows.contiguous(first, count)) {
      for (int64_t p = 0; p < k; ++p) {
        const T* from = start[0] + p * stride;
        for (int64_t i = 0; i < Width; ++i) put_packed<T>(out + p * step, i, Width, from[i]);
      }
      return;
    }
  }
  for (int64_t p = 0; p < k; ++p) {
    const T* from = data + inner.at(k0 + p);
    for (int64_t i = 0; i < Width; ++i) put_packed<T>(out + p * step, i, Width, i < count ? from[rows.at(first + i)] : T(0));
  }
}

template <class T>
struct Task {
  Tile<T> tile;
  T* out;
  const Axis &rows, &columns;
  int64_t k;
  bool accumulate;

  // Rows [m0, m0 + m) by columns [n0, n0 + n) from their packed panels.
  void run(const Real<T>* left, int64_t m0, int64_t m, const Real<T>* right, int64_t n0, int64_t n) const {
    constexpr int parts = Parts<T>::count;
    alignas(64) T edge[14 * 64];
    for (int64_t j = 0; j < n; j += tile.columns) {
      const Real<T>* b = right + j * k * parts;
      const int64_t width = std::min<int64_t>(tile.columns, n - j);
      const bool straight = width == tile.columns && columns.contiguous(n0 + j, width) && rows.is_regular();
      for (int64_t i = 0; i < m; i += tile.rows) {
        const Real<T>* a = left + i * k * parts;
        const int64_t height = std::min<int64_t>(tile.rows, m - i);
        if (straight && height == tile.rows) {
          tile.run(k, a, b, out + rows.at(m0 + i) + columns.at(n0 + j), rows.stride(), accumulate);
          continue;
        }
        tile.run(k, a, b, edge, tile.columns, false);
        for (int64_t r = 0; r < height; ++r) {
          T* target = out + rows.at(m0 + i + r);
          for (int64_t c = 0; c < width; ++c) {
            T& place = target[columns.at(n0 + j + c)];
            const T& value = edge[r * tile.columns + c];
            place = accumulate ? place + value : value;
          }
        }
      }
    }
  }
};

int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

}  // namespace

template <class T>
void pack_matrix(const T* data, const Axis& rows, const Axis& inner, int64_t first, int64_t count, int64_t k0, int64_t k, int64_t width,
                 Real<T>* out) {
  with_width(width, [&]<int Width>() {
    for (int64_t i = 0; i < count; i += Width) {
      pack_panel<Width, T>(data, rows, inner, first + i, std::min<int64_t>(Width, count - i), k0, k, out + i * k * Parts<T>::count);
    }
  });
}

template <class T>
void multiply_packed(int64_t inner, Pack<T> left, Pack<T> right, T* out, const Axis& rows, const Axis& columns) {
  constexpr int parts = Parts<T>::count;
  const int64_t m = rows.extent(), n = columns.extent();
  const Tile<T> tile = best_tile<T>();
  const int64_t row_step = round_up(row_block, tile.rows), column_step = round_up(column_block, tile.columns);
  const int64_t inner_most = std::min(inner, inner_block), column_most = round_up(std::min(n, column_step), tile.columns);
  // All rows are packed at once where they are few: then columns are shared out as well.
  const bool rows_at_once = m <= 4 * row_step;
  const int64_t rows_most = round_up(rows_at_once ? m : row_step, tile.rows);
  Scratch<Real<T>> right_block(column_most * inner_most * parts, "packing of a matrix");
  Scratch<Real<T>> left_block;
  if (rows_at_once) left_block = Scratch<Real<T>>(rows_most * inner_most * parts, "packing of a matrix");
  const std::thread::id caller = std::this_thread::get_id();
  auto poll = [caller] {
    if (std::this_thread::get_id() == caller) poll_interrupt();
  };

  for (int64_t n0 = 0; n0 < n; n0 += column_step) {
    const int64_t n_count = std::min(column_step, n - n0), column_panels = (n_count + tile.columns - 1) / tile.columns;
    for (int64_t k0 = 0; k0 < inner; k0 += inner_block) {
      const int64_t k = std::min(inner_block, inner - k0);
      const Task<T> task{tile, out, rows, columns, k, k0 != 0};
      poll_interrupt();
      auto pack_panels = [&](Pack<T> pack, int64_t first, int64_t count, int64_t width, Real<T>* block) {
        parallel_for_cost((count + width - 1) / width, static_cast<double>(width * k * parts) * 0.5, [&](int64_t begin, int64_t end) {
          pack(first + begin * width, std::min(end * width, count) - begin * width, k0, k, width, block + begin * width * k * parts);
          return 0;
        });
      };
      pack_panels(right, n0, n_count, tile.columns, right_block.data());
      const double panel_cost = multiply_cost<T>(static_cast<double>(k) * static_cast<double>(tile.columns));
      if (rows_at_once) {
        pack_panels(left, 0, m, tile.rows, left_block.data());
        // A grid of tasks: blocks of rows by groups of column panels, worth about 20 microseconds each.
        const int64_t row_tasks = (m + row_step - 1) / row_step;
        const double strip = panel_cost * static_cast<double>(std::min(m, row_step));
        const int64_t group = std::clamp<int64_t>(static_cast<int64_t>(20000 / strip), 1, column_panels);
        const int64_t column_tasks = (column_panels + group - 1) / group;
        parallel_for_cost(row_tasks * column_tasks, strip * static_cast<double>(group), [&](int64_t begin, int64_t end) {
          for (int64_t t = begin; t < end; ++t) {
            const int64_t m0 = t % row_tasks * row_step, first = t / row_tasks * group * tile.columns;
            task.run(left_block.data() + m0 * k * parts, m0, std::min(row_step, m - m0), right_block.data() + first * k * parts,
                     n0 + first, std::min(group * tile.columns, n_count - first));
            poll();
          }
          return 0;
        });
      } else {
        const double cost = panel_cost * static_cast<double>(row_step * column_panels);
        parallel_for_cost((m + row_step - 1) / row_step, cost, [&](int64_t begin, int64_t end) {
          Scratch<Real<T>> block(rows_most * inner_most * parts, "packing of a matrix");
          for (int64_t t = begin; t < end; ++t) {
            const int64_t m0 = t * row_step, m_count = std::min(row_step, m - m0);
            left(m0, m_count, k0, k, tile.rows, block.data());
            task.run(block.data(), m0, m_count, right_block.data(), n0, n_count);
            poll();
          }
          return 0;
        });
      }
    }
  }
}

#define CAPIBARA_INSTANTIATE(T)                                                                                                    \
  template void pack_matrix<T>(const T*, const Axis&, const Axis&, int64_t, int64_t, int64_t, int64_t, int64_t, Real<T>*);        \
  template void multiply_packed<T>(int64_t, Pack<T>, Pack<T>, T*, const Axis&, const Axis&);
CAPIBARA_INSTANTIATE(float)
CAPIBARA_INSTANTIATE(double)
CAPIBARA_INSTANTIATE(std::uint32_t)
CAPIBARA_INSTANTIATE(std::uint64_t)
CAPIBARA_INSTANTIATE(std::complex<float>)
CAPIBARA_INSTANTIATE(std::complex<double>)
#undef CAPIBARA_INSTANTIATE

}  // namespace capibara::cpu
