// Small and narrow matmuls straight from memory with AVX-512: six rows of left by four vectors of right.
#include "backends/cpu/kernels/gemm/gemm_unpacked.h"
#include "backends/cpu/kernels/targets.h"
#include "core/runtime/processor.h"

#if !defined(__aarch64__)

#include <algorithm>
#include <array>
#include <utility>

#if defined(__x86_64__)
#if !defined(__clang__)
// Spurious: g++ 12 warns about its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#endif

namespace capibara::cpu {

#if defined(__x86_64__)

namespace {

constexpr int max_rows = 6, max_vectors = 4;

#define CAPIBARA_AVX512_INLINE CAPIBARA_AVX512 inline __attribute__((always_inline))

template <class T>
struct Lanes;
template <>
struct Lanes<float> {
  using Vector = __m512;
  using Mask = __mmask16;
  static CAPIBARA_AVX512_INLINE Vector zero() { return _mm512_setzero_ps(); }
  static CAPIBARA_AVX512_INLINE Vector all(const float* from) { return _mm512_set1_ps(*from); }
  static CAPIBARA_AVX512_INLINE Vector load(Mask mask, const float* from) { return _mm512_maskz_loadu_ps(mask, from); }
  static CAPIBARA_AVX512_INLINE void store(float* to, Mask mask, Vector v) { _mm512_mask_storeu_ps(to, mask, v); }
  static CAPIBARA_AVX512_INLINE Vector add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
};
template <>
struct Lanes<double> {
  using Vector = __m512d;
  using Mask = __mmask8;
  static CAPIBARA_AVX512_INLINE Vector zero() { return _mm512_setzero_pd(); }
  static CAPIBARA_AVX512_INLINE Vector all(const double* from) { return _mm512_set1_pd(*from); }
  static CAPIBARA_AVX512_INLINE Vector load(Mask mask, const double* from) { return _mm512_maskz_loadu_pd(mask, from); }
  static CAPIBARA_AVX512_INLINE void store(double* to, Mask mask, Vector v) { _mm512_mask_storeu_pd(to, mask, v); }
  static CAPIBARA_AVX512_INLINE Vector add(Vector a, Vector b, Vector c) { return _mm512_fmadd_pd(a, b, c); }
};

// The part of the inner dimension that a tile covers: accumulates to the result unless it is the first.
struct Inner {
  int64_t first, count, ahead;  // ahead: distance of the next part in a row, in elements, if it is prefetched
};

// R rows by V vectors, of which the last has the lanes of `mask`.
template <class T, int R, int V>
CAPIBARA_AVX512 void tile(const SmallProduct<T>& p, int64_t i, int64_t j, unsigned mask, Inner inner) {
  using L = Lanes<T>;
  constexpr int64_t lanes = 64 / sizeof(T);
  const auto last = static_cast<typename L::Mask>(mask);
  const auto all = static_cast<typename L::Mask>((1u << lanes) - 1);
  typename L::Vector sums[R][V];
  if (inner.first == 0) {
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sums[r][v] = L::zero();
    }
  } else {
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sums[r][v] = L::load(v + 1 < V ? all : last, p.out + (i + r) * p.n + j + v * lanes);
    }
  }
  const T* rows[R];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    rows[r] = p.left + (i + r) * p.left_step + inner.first;
    for (int64_t k = 0; k < inner.ahead; k += lanes) __builtin_prefetch(rows[r] + inner.ahead + k);
  }
  const T* right = p.right + inner.first * p.right_step + j;
  for (int64_t k = 0; k < inner.count; ++k, right += p.right_step) {
    typename L::Vector b[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) b[v] = L::load(v + 1 < V ? all : last, right + v * lanes);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const typename L::Vector a = L::all(rows[r] + k);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sums[r][v] = L::add(a, b[v], sums[r][v]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {  // unrolled, or the sums would be kept in memory
    T* out = p.out + (i + r) * p.n + j;
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) L::store(out + v * lanes, v + 1 < V ? all : last, sums[r][v]);
  }
}

template <class T>
using TileOf = void (*)(const SmallProduct<T>&, int64_t, int64_t, unsigned, Inner);

// The function for `rows` by `vectors`, both from 1 on.
template <class T>
TileOf<T> tile_of(int64_t rows, int64_t vectors) {
  static constexpr auto table = []<int... I>(std::integer_sequence<int, I...>) {
    return std::array<TileOf<T>, sizeof...(I)>{tile<T, I / max_vectors + 1, I % max_vectors + 1>...};
  }
  (std::make_integer_sequence<int, max_rows * max_vectors>{});
  return table[static_cast<std::size_t>((rows - 1) * max_vectors + vectors - 1)];
}

}  // namespace

template <class T>
bool multiply_unpacked(const SmallProduct<T>& p) {
  constexpr int64_t lanes = 64 / static_cast<int64_t>(sizeof(T));
  if (!has_avx512() || 2 * p.n < lanes) return false;
  const int64_t vectors = (p.n + lanes - 1) / lanes, row_tiles = (p.m + max_rows - 1) / max_rows;
  const Coming<T> coming(p, (vectors + max_vectors - 1) / max_vectors * row_tiles);
  int64_t number = 0;
  for (int64_t v = 0; v < vectors; v += max_vectors) {
    const int64_t some = std::min<int64_t>(max_vectors, vectors - v), j = v * lanes;
    const unsigned mask = (1u << std::min(lanes, p.n - j - (some - 1) * lanes)) - 1;
    for (int64_t t = 0; t < row_tiles; ++t) {
      coming.prefetch(number++);
      // Rows are divided evenly: a tile of few rows is bound by the latency of its sums.
      const int64_t i = p.m * t / row_tiles, height = p.m * (t + 1) / row_tiles - i;
      tile_of<T>(height, some)(p, i, j, mask, {0, p.inner, 0});
    }
  }
  return true;
}

// Blocks of rows, and for each the parts of the inner dimension for which the right operand stays in the L1 cache.
template <class T>
bool multiply_narrow(const SmallProduct<T>& p, const Finish* finish) {
  constexpr int64_t lanes = 64 / static_cast<int64_t>(sizeof(T)), close_bytes = 24 * 1024, block_rows = 16 * max_rows;
  const int64_t vectors = (p.n + lanes - 1) / lanes;
  if (!has_avx512() || vectors > max_vectors || 4 * p.n < 3 * vectors * lanes) return false;
  const unsigned mask = (1u << (p.n - (vectors - 1) * lanes)) - 1;
  const int64_t part = std::max<int64_t>(lanes, close_bytes / (vectors * 64));
  const int64_t blocks = (p.m + block_rows - 1) / block_rows;
  const double products = static_cast<double>(block_rows) * static_cast<double>(p.inner) * static_cast<double>(p.n);
  parallel_for_cost(blocks, multiply_cost<typename KindOf<T>::type>(products), [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * block_rows, rows = std::min(block_rows, p.m - first);
      for (int64_t k = 0; k < p.inner; k += part) {
        const int64_t count = std::min(part, p.inner - k), ahead = p.inner - k > part ? part : 0;
        for (int64_t i = 0; i < rows; i += max_rows) {
          tile_of<T>(std::min<int64_t>(max_rows, rows - i), vectors)(p, first + i, 0, mask, {k, count, ahead});
        }
      }
      if (finish) (*finish)(first, rows, 0, p.n);
    }
    return 0;
  });
  return true;
}

#else

template <class T>
bool multiply_narrow(const SmallProduct<T>&, const Finish*) {
  return false;
}

template <class T>
bool multiply_unpacked(const SmallProduct<T>&) {
  return false;
}

#endif

template bool multiply_unpacked<float>(const SmallProduct<float>&);
template bool multiply_unpacked<double>(const SmallProduct<double>&);
template bool multiply_narrow<float>(const SmallProduct<float>&, const Finish*);
template bool multiply_narrow<double>(const SmallProduct<double>&, const Finish*);

}  // namespace capibara::cpu

#endif
