// Vectors of 16 bytes as packing shuffles them: transposes of a few rows in registers.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace capibara::cpu {

// Zips a list of vectors until row-major [rows][lanes] has become [lanes][rows].
template <class P>
struct Shuffle {
  using Bits = std::conditional_t<sizeof(P) == 1, std::uint8_t,
                                  std::conditional_t<sizeof(P) == 2, std::uint16_t,
                                                     std::conditional_t<sizeof(P) == 4, std::uint32_t, std::uint64_t>>>;
  typedef Bits V __attribute__((vector_size(16)));
  static constexpr int lanes = 16 / static_cast<int>(sizeof(P));

  static inline __attribute__((always_inline)) V low(V x, V y) {
    if constexpr (lanes == 2)
      return __builtin_shufflevector(x, y, 0, 2);
    else if constexpr (lanes == 4)
      return __builtin_shufflevector(x, y, 0, 4, 1, 5);
    else if constexpr (lanes == 8)
      return __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11);
    else
      return __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  }
  static inline __attribute__((always_inline)) V high(V x, V y) {
    if constexpr (lanes == 2)
      return __builtin_shufflevector(x, y, 1, 3);
    else if constexpr (lanes == 4)
      return __builtin_shufflevector(x, y, 2, 6, 3, 7);
    else if constexpr (lanes == 8)
      return __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15);
    else
      return __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
  // A recursion rather than a loop: compilers keep the vectors in registers.
  template <int Rows, int Stage = 1>
  static inline __attribute__((always_inline)) void transpose(V (&v)[Rows]) {
    if constexpr (Stage < Rows) {
      V next[Rows];
#pragma GCC unroll 8
      for (int i = 0; i < Rows / 2; ++i) {
        next[2 * i] = low(v[i], v[i + Rows / 2]);
        next[2 * i + 1] = high(v[i], v[i + Rows / 2]);
      }
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i) v[i] = next[i];
      transpose<Rows, Stage * 2>(v);
    }
  }
  // The first `count` lanes from memory, the others zero.
  static inline __attribute__((always_inline)) V load(const P* from, int64_t count) {
    V v = {};
    if (count >= lanes) {
      std::memcpy(&v, from, 16);
    } else {
      const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(P);
      if (bytes == 8)
        std::memcpy(&v, from, 8);
      else if (bytes == 12)
        std::memcpy(&v, from, 12);
      else if (bytes == 4)
        std::memcpy(&v, from, 4);
      else
        std::memcpy(&v, from, bytes);
    }
    return v;
  }
};

}  // namespace capibara::cpu
