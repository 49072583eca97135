// How a matmul is cut up: blocks that fit the caches, panels of tiles, parts for threads.
#pragma once

#include <algorithm>
#include <utility>

#include "backends/cpu/kernels/gemm/gemm_pack.h"
#include "backends/cpu/kernels/gemm/gemm_parts.h"
#include "backends/cpu/kernels/gemm/gemm_tile.h"

namespace capibara::cpu {

// Parts of about equal size, at most `limit` each.
inline int64_t even_part(int64_t whole, int64_t limit, int64_t step) {
  const int64_t parts = (whole + limit - 1) / limit;
  return parts <= 1 ? whole : rounded((whole + parts - 1) / parts, step);
}

// Columns as panels of up to `max_width` vectors; a last one of a single vector would run at a third of the speed.
struct Panels {
  int64_t vectors, max_width;
  int64_t count() const { return (vectors + max_width - 1) / max_width; }
  int64_t start(int64_t panel) const {
    return panel * max_width - (panel > 0 && panel == count() - 1 && shared() ? 1 : 0);
  }
  int64_t width(int64_t panel) const { return (panel + 1 == count() ? vectors : start(panel + 1)) - start(panel); }
  bool shared() const { return max_width == 3 && vectors % 3 == 1 && vectors > 3; }
};

// Rows as tasks of about equal numbers of panels, so that no thread waits for another: at most about `limit` rows each,
// and as many for every thread.
class RowTasks {
 public:
  RowTasks(int64_t rows, int64_t limit, int64_t panel, int threads)
      : rows_(rows), panel_(panel), panels_((rows + panel - 1) / panel), count_((rows + limit - 1) / limit) {
    if (count_ >= threads) count_ = std::min(panels_, rounded(count_, threads));
  }
  int64_t count() const { return count_; }
  int64_t most() const { return (panels_ + count_ - 1) / count_ * panel_; }
  // The first row and how many.
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
  // The first of a part and the first after it.
  std::pair<int64_t, int64_t> part(int64_t i, int64_t parts) const {
    return {panels() * i / parts * panel, std::min(extent, panels() * (i + 1) / parts * panel)};
  }
};

// Parts of a result.
struct Grid {
  int64_t rows, columns;
};

// The parts that cost least, one for each thread: those beside each other pack the same rows, those above each other
// the same columns.
inline Grid grid_of(int64_t row_panels, int64_t column_panels, int64_t threads) {
  constexpr double packing = 0.3, reading = 0.5;  // of a panel of rows and of one of columns, in the time of a tile
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

// What a part packs at once: rows stay in the second cache.
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
    // Rows of the right operand are read in long pieces; a block of it stays in the second cache.
    blocks.rows = m;
    blocks.columns = rounded(std::clamp<int64_t>(n / 8, 48, 512), tile.lanes * tile.vectors);
  } else {
    blocks.rows = rounded(std::clamp<int64_t>(m / 8, 64, 128), tile.rows);
    blocks.columns = even_part(n, 2048, tile.lanes * tile.vectors);
  }
  return blocks;
}

}  // namespace capibara::cpu
