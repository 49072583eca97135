// Vectors of the lanes of Fourier transforms, and moves between lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace capibara::cpu::fft {

// Inlined into functions for one processor, whatever the flags of the file.
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
  template <std::size_t... i>
  static CAPIBARA_FFT_INLINE V reverse(const V& a, std::index_sequence<i...>) {
    return __builtin_shufflevector(a, a, (count - 1 - i)...);
  }
  static CAPIBARA_FFT_INLINE V reverse(const V& a) {
    return reverse(a, std::make_index_sequence<static_cast<std::size_t>(count)>());
  }

  // ---- transposes of count x count numbers -------------------------------------------------------------------------

  // A vector consists of parts of 16 bytes. Shuffles within parts are cheapest, and whole parts also move in one.
  static constexpr int part = 16 / static_cast<int>(sizeof(R)), parts = count / part;

  // Alternates `width` numbers of a and of b, from the low or high half of each part.
  template <int width, int half, std::size_t... i>
  static CAPIBARA_FFT_INLINE V zip_parts(const V& a, const V& b, std::index_sequence<i...>) {
    constexpr auto from = [](int lane) {
      const int first = lane / part * part, at = lane % part;
      return first + half * part / 2 + at / (2 * width) * width + at % width + (at / width % 2) * count;
    };
    return __builtin_shufflevector(a, b, from(static_cast<int>(i))...);
  }
  template <int width, int half>
  static CAPIBARA_FFT_INLINE V zip_parts(const V& a, const V& b) {
    return zip_parts<width, half>(a, b, std::make_index_sequence<static_cast<std::size_t>(count)>());
  }
  // The parts first, first + step, ... of a, then those of b.
  template <int first, int step, std::size_t... i>
  static CAPIBARA_FFT_INLINE V take_parts(const V& a, const V& b, std::index_sequence<i...>) {
    constexpr auto from = [](int lane) {
      const int p = lane / part, each = parts / 2;
      return p / each * count + (first + p % each * step) * part + lane % part;
    };
    return __builtin_shufflevector(a, b, from(static_cast<int>(i))...);
  }
  template <int first, int step>
  static CAPIBARA_FFT_INLINE V take_parts(const V& a, const V& b) {
    return take_parts<first, step>(a, b, std::make_index_sequence<static_cast<std::size_t>(count)>());
  }

  // Transposes squares of part x part numbers, in each part of `part` rows.
  static CAPIBARA_FFT_INLINE void turn_within_parts(V* rows) {
    if constexpr (part == 2) {
      const V a = rows[0], b = rows[1];
      rows[0] = zip_parts<1, 0>(a, b);
      rows[1] = zip_parts<1, 1>(a, b);
    } else {
      static_assert(part == 4);
      const V a = zip_parts<1, 0>(rows[0], rows[1]), b = zip_parts<1, 1>(rows[0], rows[1]);
      const V c = zip_parts<1, 0>(rows[2], rows[3]), d = zip_parts<1, 1>(rows[2], rows[3]);
      rows[0] = zip_parts<2, 0>(a, c);
      rows[1] = zip_parts<2, 1>(a, c);
      rows[2] = zip_parts<2, 0>(b, d);
      rows[3] = zip_parts<2, 1>(b, d);
    }
  }
  // Transposes a square of whole parts, in `parts` rows.
  static CAPIBARA_FFT_INLINE void turn_parts(V* rows) {
    if constexpr (parts == 2) {
      const V a = rows[0], b = rows[1];
      rows[0] = take_parts<0, 1>(a, b);
      rows[1] = take_parts<1, 1>(a, b);
    } else if constexpr (parts == 4) {
      const V a = take_parts<0, 1>(rows[0], rows[1]), b = take_parts<2, 1>(rows[0], rows[1]);
      const V c = take_parts<0, 1>(rows[2], rows[3]), d = take_parts<2, 1>(rows[2], rows[3]);
      rows[0] = take_parts<0, 2>(a, c);
      rows[1] = take_parts<1, 2>(a, c);
      rows[2] = take_parts<0, 2>(b, d);
      rows[3] = take_parts<1, 2>(b, d);
    }
  }
  static CAPIBARA_FFT_INLINE void turn(V* rows) {
#pragma GCC unroll 4
    for (int p = 0; p < parts; ++p) turn_within_parts(rows + p * part);
#pragma GCC unroll 4
    for (int i = 0; i < part; ++i) {
      V same[parts];
#pragma GCC unroll 4
      for (int p = 0; p < parts; ++p) same[p] = rows[p * part + i];
      turn_parts(same);
#pragma GCC unroll 4
      for (int p = 0; p < parts; ++p) rows[p * part + i] = same[p];
    }
  }
};

}  // namespace capibara::cpu::fft
