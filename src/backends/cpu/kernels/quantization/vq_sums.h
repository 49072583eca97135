// Reductions over the elements of a vector: exact dots and distances, approximate lengths, bfloat16 rounding errors.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "backends/cpu/kernels/gemm/gemm.h"

namespace capibara::cpu::vq {

template <class Sum, class Term>
Sum sum_of(int64_t dim, Term&& term) {
  Sum sums[8] = {};
  const int64_t whole = dim - dim % 8;
  for (int64_t i = 0; i < whole; i += 8) {
    for (int l = 0; l < 8; ++l) sums[l] += term(i + l);
  }
  for (int64_t i = whole; i < dim; ++i) sums[i % 8] += term(i);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

template <class T>
double dot(const T* a, const T* b, int64_t dim) {
  return sum_of<double>(dim, [=](int64_t i) { return static_cast<double>(a[i]) * static_cast<double>(b[i]); });
}

template <class T>
double squared_difference(const T* a, const T* b, int64_t dim) {
  return sum_of<double>(dim, [=](int64_t i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    return difference * difference;
  });
}

// The length of a vector, to a few digits.
template <class T>
double rough_length(const T* a, int64_t dim) {
  return std::sqrt(static_cast<double>(sum_of<T>(dim, [=](int64_t i) { return a[i] * a[i]; })));
}

// Rounds to the nearest bfloat16.
inline Bfloat16Bits to_bfloat16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  return {static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16)};
}
inline float to_float(Bfloat16Bits value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }

// The length of a vector's rounding error as bfloat16, to a few digits: the differences are exact.
template <class T>
double rounding_length(const T* exact, const Bfloat16Bits* rounded, int64_t dim) {
  return std::sqrt(static_cast<double>(sum_of<T>(dim, [=](int64_t i) {
    const T lost = exact[i] - static_cast<T>(to_float(rounded[i]));
    return lost * lost;
  })));
}

}  // namespace capibara::cpu::vq
