// A codebook as the tiles of matrix products read it, and the scores of a block of vectors by it.
#pragma once

#include <algorithm>
#include <numeric>

#include "core/array/element.h"
#include "backends/cpu/kernels/gemm/gemm_pack.h"
#include "backends/cpu/kernels/gemm/gemm_tile.h"
#include "backends/cpu/kernels/scratch.h"
#include "backends/cpu/kernels/quantization/vq_candidates.h"

namespace capibara::cpu::vq {

enum class Metric { euclidean, cosine, dot_product };

struct Sizes {
  int64_t batch, rows, codes, dim;
  Metric metric;
};

inline int64_t rounded_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

template <class K>
class Panels {
 public:
  using P = typename K::Packed;
  using S = typename K::Sum;

  // Rows of `dim` elements, one for each code. Offsets of absent codes are -infinity, which no maximum is.
  Panels(const P* codes, const S* offsets, int64_t count, int64_t dim)
      : tile_(best_tile<K>()),
        dim_(dim),
        width_(tile_.lanes * tile_.vectors),
        padded_(rounded_up(rounded_up(count, tile_.lanes), widest_vector / static_cast<int64_t>(sizeof(S)))),
        count_(rounded_up(count, tile_.lanes)),
        block_(std::min<int64_t>(dim, max_inner_bytes / static_cast<int64_t>(sizeof(P)))),
        data_(count_ * rounded_up(dim, K::together), "packed codes"),
        offsets_(padded_, "offsets of codes") {
    const int64_t step = std::lcm<int64_t>(width_, widest_vector / static_cast<int64_t>(sizeof(S)));
    const int64_t most = std::min(chunk_bytes / rows_, max_groups * group_bytes) / static_cast<int64_t>(sizeof(S));
    chunk_ = std::max(step, most / step * step);
    std::copy_n(offsets, count, offsets_.data());
    std::fill(offsets_.data() + count, offsets_.data() + padded_, -std::numeric_limits<S>::infinity());
    const Axis rows = Axis::regular(count, dim), inner = Axis::regular(dim, 1);
    for (int64_t k0 = 0; k0 < dim; k0 += block_) {
      const int64_t k = std::min(block_, dim - k0);
      for (int64_t first = 0; first < count_; first += width_) {
        const int64_t width = std::min<int64_t>(width_, count_ - first);
        pack_matrix<K, P>(codes, rows, inner, first, std::min(width, count - first), k0, k, width,
                          data_.data() + place(first, k0, k));
      }
    }
  }

  // Of a block of vectors.
  static int rows() { return max_rows / best_tile<K>().rows * best_tile<K>().rows; }
  // Codes of one chunk, whose scores by a block of vectors stay in the first cache.
  int64_t chunk() const { return chunk_; }
  int64_t count() const { return padded_; }
  const S* offsets() const { return offsets_.data(); }
  int64_t left_size() const { return rows_ * rounded_up(dim_, K::together); }

  // Packs `count` vectors of `dim` elements, up to rows() of them; the rest are zeros.
  void pack_vectors(const P* vectors, int64_t count, P* out) const {
    const Axis rows = Axis::regular(count, dim_), inner = Axis::regular(dim_, 1);
    for (int64_t k0 = 0; k0 < dim_; k0 += block_) {
      const int64_t k = std::min(block_, dim_ - k0);
      for (int64_t first = 0; first < count; first += tile_.rows) {
        pack_matrix<K, P>(vectors, rows, inner, first, std::min<int64_t>(tile_.rows, count - first), k0, k, tile_.rows,
                          out + left_place(first, k0, k));
      }
    }
  }

  // Scores of packed vectors by codes [begin, end): rows of chunk() numbers.
  void score(const P* vectors, int64_t count, int64_t begin, int64_t end, S* out) const {
    const int64_t step = chunk_ * static_cast<int64_t>(sizeof(S));
    for (int64_t k0 = 0; k0 < dim_; k0 += block_) {
      const int64_t k = std::min(block_, dim_ - k0), steps = rounded_up(k, K::together) / K::together;
      for (int64_t first = begin; first < std::min(end, count_); first += width_) {
        const int64_t width = std::min<int64_t>(width_, count_ - first);
        const P* right = data_.data() + place(first, k0, k);
        const TileFunction<K> run = tile_.run[0][width / tile_.lanes - 1];
        for (int64_t row = 0; row < count; row += tile_.rows) {
          run(steps, vectors + left_place(row, k0, k), right, width * K::together * static_cast<int64_t>(sizeof(P)),
              out + row * chunk_ + (first - begin), step, k0 != 0);
        }
      }
    }
  }

 private:
  int64_t place(int64_t first, int64_t k0, int64_t k) const {
    return count_ * rounded_up(k0, K::together) + first * rounded_up(k, K::together);
  }
  int64_t left_place(int64_t row, int64_t k0, int64_t k) const {
    return rows_ * rounded_up(k0, K::together) + row * rounded_up(k, K::together);
  }

  const Tile<K>& tile_;
  int64_t dim_, width_, padded_, count_, block_, rows_ = rows(), chunk_;
  Scratch<P> data_;
  Scratch<S> offsets_;
};

}  // namespace capibara::cpu::vq
