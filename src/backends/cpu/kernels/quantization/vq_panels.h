// A codebook packed for GEMM tiles, and the scores of a block of vectors against it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>

#include "backends/cpu/kernels/gemm/gemm_pack.h"
#include "backends/cpu/kernels/gemm/gemm_tile.h"
#include "backends/cpu/kernels/scratch.h"
#include "core/array/element.h"

// For each vector, the codes whose score may be the greatest: the result of filtering a chunk of scores.
//
// score = vector . code + offset of the code. Scores are rounded, with an error bound for each vector: all codes
// within twice that bound of the greatest score stay candidates, and the exact score decides among them. The scores of
// a chunk of codes stay in the L1 cache, where their maximum is computed; they are scanned again only if it comes near
// the greatest so far.

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace capibara::cpu::vq {

#define CAPIBARA_INLINE inline __attribute__((always_inline))
#pragma GCC diagnostic ignored "-Wpsabi"  // wide vectors are passed only to functions that are inlined

inline constexpr int max_rows = 32;            // of one block of vectors
inline constexpr int64_t chunk_bytes = 32768;  // scores of a block against a chunk of codes
inline constexpr int64_t widest_vector = 64;   // bytes; chunks are whole vectors
inline constexpr int64_t group_bytes = 128;    // scores whose maximum is kept until the next chunk
inline constexpr int max_groups = 16;          // of a chunk
inline constexpr int max_candidates = 48;      // of one vector

// ---- vectors of scores -------------------------------------------------------------------------------------------

template <class S, int Bytes>
struct Scores {
  typedef S V __attribute__((vector_size(Bytes)));
  static constexpr int count = Bytes / static_cast<int>(sizeof(S));

  static CAPIBARA_INLINE V load(const S* from) {
    V value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  static CAPIBARA_INLINE V greater(V a, V b) {
#if defined(__aarch64__)
    if constexpr (std::is_same_v<S, float>)
      return vmaxq_f32(a, b);
    else
      return vmaxq_f64(a, b);
#else
    return a > b ? a : b;
#endif
  }
  static CAPIBARA_INLINE S greatest(V v) {
#if defined(__aarch64__)
    if constexpr (std::is_same_v<S, float>)
      return vmaxvq_f32(v);
    else
      return vmaxvq_f64(v);
#else
    S most = v[0];
    for (int i = 1; i < count; ++i) most = std::max<S>(most, v[i]);
    return most;
#endif
  }
};

// For each of four rows and each group of columns, the lanewise maximum of scores + offsets; `columns` are whole
// vectors. Returns the lanewise maximum of each row in `most`.
template <class S, int Bytes>
CAPIBARA_INLINE void group_maxima(const S* scores, int64_t step, const S* offsets, int64_t columns,
                                  typename Scores<S, Bytes>::V (&groups)[4][max_groups],
                                  typename Scores<S, Bytes>::V (&most)[4]) {
  using L = Scores<S, Bytes>;
  using V = typename L::V;
  constexpr int64_t size = group_bytes / static_cast<int64_t>(sizeof(S));
  for (int64_t g = 0, begin = 0; begin < columns; ++g, begin += size) {
    const int64_t end = std::min(columns, begin + size);
    const V first = L::load(offsets + begin);
    V own[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) own[i] = L::load(scores + i * step + begin) + first;
    for (int64_t j = begin + L::count; j < end; j += L::count) {
      const V offset = L::load(offsets + j);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) own[i] = L::greater(own[i], L::load(scores + i * step + j) + offset);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      groups[i][g] = own[i];
      most[i] = g == 0 ? own[i] : L::greater(most[i], own[i]);
    }
  }
}

// Calls visit(column, score) for scores + offsets that are not below a limit, in increasing order of columns.
template <class S, int Bytes, class Visit>
CAPIBARA_INLINE void visit_high(const S* scores, const S* offsets, int64_t columns,
                                const typename Scores<S, Bytes>::V* groups, S limit, Visit&& visit) {
  using L = Scores<S, Bytes>;
  constexpr int64_t size = group_bytes / static_cast<int64_t>(sizeof(S));
  for (int64_t g = 0, begin = 0; begin < columns; ++g, begin += size) {
    if (L::greatest(groups[g]) < limit) continue;
    const int64_t end = std::min(columns, begin + size);
    for (int64_t j = begin; j < end; ++j) {
      const S sum = scores[j] + offsets[j];
      if (sum >= limit) visit(j, sum);
    }
  }
}

// ---- candidates of one vector ------------------------------------------------------------------------------------

template <class S>
struct Candidates {
  S best, slack;  // slack: how far candidates may be below the best
  int count;
  bool closed;  // accepts no more candidates: the vector is answered otherwise
  int32_t index[max_candidates];
  S score[max_candidates];

  void start(S allowed, bool is_closed) {
    best = -std::numeric_limits<S>::infinity();
    slack = allowed;
    count = 0;
    closed = is_closed;
  }
  void drop_low() {
    int kept = 0;
    for (int i = 0; i < count; ++i) {
      if (score[i] < best - slack) continue;
      index[kept] = index[i];
      score[kept++] = score[i];
    }
    count = kept;
  }
  // False: no room.
  bool add(int32_t at, S value) {
    if (count == max_candidates) drop_low();
    if (count == max_candidates) return false;
    index[count] = at;
    score[count++] = value;
    return true;
  }
};

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

  // Rows of `dim` elements, one for each code. Offsets of absent codes are -infinity, so that they never win.
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

  // Rows of a block of vectors.
  static int rows() { return max_rows / best_tile<K>().rows * best_tile<K>().rows; }
  // Codes in one chunk, whose scores against a block of vectors stay in the L1 cache.
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

  // Scores of packed vectors against codes [begin, end): rows of chunk() numbers.
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
