// Rows of a matrix as panels of the heights that tiles have, so that few rows are computed for nothing.
#pragma once

#include <algorithm>
#include <cstdint>

namespace capibara::cpu {

class TileHeights {
 public:
  // heights: three, the greatest first.
  TileHeights(int64_t rows, const int* heights) : heights_{heights[0], heights[1], heights[2]} {
    // Some panels of the first height less than would fit, where smaller ones fill the rest better.
    const int64_t most = (rows + heights_[0] - 1) / heights_[0];
    double best = -1;
    for (int64_t first = std::max<int64_t>(0, most - 3); first <= most; ++first) {
      const int64_t rest = std::max<int64_t>(0, rows - first * heights_[0]);
      int64_t second = rest / heights_[1], third = (rest - second * heights_[1] + heights_[2] - 1) / heights_[2];
      if (third * heights_[2] >= heights_[1]) {
        ++second;
        third = 0;
      }
      // Small tiles load more for each of their sums.
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
  int64_t rows() const { return start(count()); }  // with those that are computed for nothing

 private:
  int64_t heights_[3], counts_[3] = {};
};

}  // namespace capibara::cpu
