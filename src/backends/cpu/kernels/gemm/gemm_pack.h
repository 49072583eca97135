// Packing: elements of an operand copied into the panels that tiles read, in vectors where they are contiguous.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "backends/cpu/kernels/gemm/gemm.h"

namespace capibara::cpu {

inline constexpr int64_t max_inner_bytes = 2048;  // per row of a panel: the k of one block
inline constexpr int max_panel_width = 32;

template <class P, class S>
inline __attribute__((always_inline)) P packed_element(const S& value) {
  if constexpr (std::is_same_v<P, S>) {
    return value;
  } else if constexpr (std::is_same_v<S, Bfloat16Bits>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
  } else {
    static_assert(std::is_same_v<S, HalfBits>);
#if defined(__aarch64__)
    return static_cast<float>(std::bit_cast<__fp16>(value.bits));
#else
    // Exact for every half: shifted into a float 2^112 times too small; infinities and NaN are handled separately, and
    // denormals as integer multiples of the smallest one, since as floats they would be flushed to zero here.
    const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000u) << 16, rest = value.bits & 0x7fffu;
    const float units = static_cast<float>(static_cast<std::int32_t>(rest)) * 0x1p-24f;
    const float normal =
        rest >= 0x7c00u ? std::bit_cast<float>(rest << 13 | 0x7f800000u) : std::bit_cast<float>(rest << 13) * 0x1p112f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(rest < 0x400u ? units : normal) | sign);
#endif
  }
}

// Zeros that stand in for the absent rows of a block.
template <class S>
inline const S* absent_row() {
  alignas(64) static const std::byte zeros[2 * max_inner_bytes] = {};
  return reinterpret_cast<const S*>(zeros);
}

// Contiguous rows: from[k * stride + row].
template <class K, class S>
void pack_across(const S* from, int64_t stride, int64_t count, int64_t k, int64_t width, typename K::Packed* out);

// Rows whose k are contiguous: from[row][k].
template <class K, class S>
void pack_transposed(const S* const* from, int64_t k, int64_t width, typename K::Packed* out);

// Rows with a constant stride between their k; null rows are absent.
template <class K, class S>
void pack_rows(const S** from, int64_t count, int64_t step, int64_t k, int64_t width, typename K::Packed* out);

// Packs a matrix in memory.
template <class K, class S>
void pack_matrix(const S* data, const Axis& rows, const Axis& inner, int64_t first, int64_t count, int64_t k0,
                 int64_t k, int64_t width, typename K::Packed* out);

// A complex right operand for a real matmul; first, count, k0, k and width count real columns and real k.
template <class R>
void pack_spread(const std::complex<R>* data, const Axis& columns, const Axis& inner, int64_t first, int64_t count,
                 int64_t k0, int64_t k, int64_t width, R* out) {
  const int64_t begin = first / 2, some = count / 2;
  const bool neighbours = columns.contiguous(begin, some);
  for (int64_t p = 0; p < k / 2; ++p) {
    const std::complex<R>* from = data + inner.at(k0 / 2 + p);
    R *upper = out + 2 * p * width, *lower = upper + width;
    for (int64_t j = 0; j < some; ++j) {
      const std::complex<R> value = neighbours ? from[columns.at(begin) + j] : from[columns.at(begin + j)];
      upper[2 * j] = value.real();
      upper[2 * j + 1] = value.imag();
      lower[2 * j] = -value.imag();
      lower[2 * j + 1] = value.real();
    }
    for (int64_t j = count; j < width; ++j) upper[j] = lower[j] = R(0);
  }
}

}  // namespace capibara::cpu
