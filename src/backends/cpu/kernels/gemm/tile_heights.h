// Splits the rows of a matrix into panels of a tile's heights, so that few rows are computed in vain.
#pragma once

#include <algorithm>
#include <cstdint>

namespace capibara::cpu {

class TileHeights {
 public:
  // heights: three, in decreasing order.
  TileHeights(int64_t rows, const int* heights) : heights_{heights[0], heights[1], heights[2]} {
    // Up to three fewer panels of the first height than would fit, if smaller ones cover the rest better.
    const int64_t most = (rows + heights_[0] - 1) / heights_[0];
    double best = -1;
    for (int64_t first = std::max<int64_t>(0, most - 3); first <= most; ++first) {
      const int64_t rest = std::max<int64_t>(0, rows - first * heights_[0]);
      int64_t second = rest / heights_[1], third = (rest - second * heights_[1] + heights_[2] - 1) / heights_[2];
      if (third * heights_[2] >= heights_[1]) {
        ++second;
        third = 0;
      }
      // Small tiles load more per sum.
      const double cost = static_cast<double>(first * heights_[0]) + 1.04 * static_cast<double>(second * heights_[1]) +
                          1.25 * static_cast<double>(third * heights_[2]);
      if (best >= 0 && cost >= best) continue;
      best = cost;
      counts_[0] = first;
      counts_[1] = second;
      counts_[2] = third;
    }
  }

  int64_t count() const { return counts_[0] + counts_[1] + counts_[2]; }
  int kind(int64_t panel) const { return panel < counts_[0] ? 0 : panel < counts_[0] + counts_[1] ? 1 : 2; }
  int64_t height(int64_t panel) const { return heights_[kind(panel)]; }
  int64_t start(int64_t panel) const {
    const int64_t first = std::min(panel, counts_[0]), second = std::clamp<int64_t>(panel - counts_[0], 0, counts_[1]);
    return first * heights_[0] + second * heights_[1] + (panel - first - second) * heights_[2];
  }
  int64_t rows() const { return start(count()); }  // including those computed in vain

 private:
  int64_t heights_[3], counts_[3] = {};
};

}  // namespace capibara::cpu
