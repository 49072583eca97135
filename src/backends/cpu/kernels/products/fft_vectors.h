// Vectors of the lanes of Fourier transforms, and how numbers move between lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace capibara::cpu::fft {

// Into functions for one processor, whatever the flags of the file.
#define CAPIBARA_FFT_INLINE inline __attribute__((always_inline))

// A vector for each element of as many lines as it has lanes.
template <class R, int Bytes>
struct Vectors {
  typedef R V __attribute__((vector_size(Bytes)));
  typedef R U __attribute__((vector_size(Bytes), aligned(alignof(R)), may_alias));
  static constexpr int count = Bytes / static_cast<int>(sizeof(R));
  struct C {
    V re, im;
  };

  static CAPIBARA_FFT_INLINE V read(const R* at) { return *reinterpret_cast<const U*>(at); }
  static CAPIBARA_FFT_INLINE void write(R* at, const V& value) { *reinterpret_cast<U*>(at) = value; }

  // ---- moving numbers between lanes --------------------------------------------------------------------------------

  template <std::size_t... i>
  static CAPIBARA_FFT_INLINE void zip(const V& a, const V& b, V& low, V& high, std::index_sequence<i...>) {
    low = __builtin_shufflevector(a, b, (i % 2 * count + i / 2)...);
    high = __builtin_shufflevector(a, b, (i % 2 * count + i / 2 + count / 2)...);
  }
  static CAPIBARA_FFT_INLINE void zip(const V& a, const V& b, V& low, V& high) {
    zip(a, b, low, high, std::make_index_sequence<static_cast<std::size_t>(count)>());
  }
  template <std::size_t... i>
  static CAPIBARA_FFT_INLINE void unzip(const V& a, const V& b, V& even, V& odd, std::index_sequence<i...>) {
    even = __builtin_shufflevector(a, b, (2 * i)...);
    odd = __builtin_shufflevector(a, b, (2 * i + 1)...);
  }
  static CAPIBARA_FFT_INLINE void unzip(const V& a, const V& b, V& even, V& odd) {
    unzip(a, b, even, odd, std::make_index_sequence<static_cast<std::size_t>(count)>());
  }
  // A square of count x count numbers, turned over its diagonal.
  static CAPIBARA_FFT_INLINE void turn(V* rows) {
    for (int step = 1; step < count; step *= 2) {
      V next[count];
#pragma GCC unroll 8
      for (int i = 0; i < count / 2; ++i) zip(rows[i], rows[i + count / 2], next[2 * i], next[2 * i + 1]);
#pragma GCC unroll 16
      for (int i = 0; i < count; ++i) rows[i] = next[i];
    }
  }
};

}  // namespace capibara::cpu::fft
