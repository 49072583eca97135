// Small matrices, one in each lane, stored column by column: testing, scaling and moving lanes.
#pragma once

#include "backends/cpu/kernels/linalg/small_matrices_lanes.h"

namespace capibara::cpu::small_matrices {

template <int Bytes>
struct MaskWords {
  typedef std::int64_t Words __attribute__((vector_size(Bytes)));
};

template <class R, int Bytes>
struct Columns : Lanes<R, Bytes> {
  using Own = Lanes<R, Bytes>;
  using V = typename Own::V;
  using M = decltype(V{} < V{});
  using Own::count;
  using Own::take_root;

  static CAPIBARA_FFT_INLINE V size_of(const V& x) { return x < V{} ? -x : x; }
  // A nonnegative magnitude with the sign of another number.
  static CAPIBARA_FFT_INLINE V signed_as(const V& size, const V& from) { return from < V{} ? -size : size; }
  static CAPIBARA_FFT_INLINE V root(const V& x) {
    V result = x;
    take_root(result);
    return result;
  }
  static CAPIBARA_FFT_INLINE bool any(const M& mask) {
    const auto words = reinterpret_cast<typename MaskWords<Bytes>::Words>(mask);
    std::int64_t found = 0;
#pragma GCC unroll 8
    for (int i = 0; i < Bytes / 8; ++i) found |= words[i];
    return found != 0;
  }

  // Powers of two that bring the largest number of each lane near 2^exponent: one for all if numbers are ordinary.
  static CAPIBARA_FFT_INLINE V scale_of(const V& largest, int exponent) {
    V scale = V{} + std::ldexp(R(1), exponent);
    const M usual = (largest > R(0x1p-8)) & (largest < R(0x1p8));
    if (!any(~usual)) return scale;
    constexpr int most = std::numeric_limits<R>::max_exponent - 2;
    for (int lane = 0; lane < count; ++lane) {
      if (usual[lane] || !(largest[lane] > 0)) continue;
      int own = 0;
      std::frexp(largest[lane], &own);
      scale[lane] = std::ldexp(R(1), std::clamp(exponent - own, -most, most));
    }
    return scale;
  }

  // Converts rows x cols, row-major, to columns that are `stride` apart; and back.
  static CAPIBARA_FFT_INLINE void to_columns(const V* from, int64_t rows, int64_t cols, V* to, int64_t stride) {
    for (int64_t j = 0; j < cols; ++j) {
      for (int64_t i = 0; i < rows; ++i) to[j * stride + i] = from[i * cols + j];
    }
  }
  static CAPIBARA_FFT_INLINE void to_rows(const V* from, int64_t stride, int64_t rows, int64_t cols, V* to) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < cols; ++j) to[i * cols + j] = from[j * stride + i];
    }
  }
};

}  // namespace capibara::cpu::small_matrices
