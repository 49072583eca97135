// Vectors of the accumulator type, with exponentials and logarithms, for the recurrence kernels.
//
// Everything is inlined into functions for one instruction set; a vector never crosses a call.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#define CAPIBARA_INLINE inline __attribute__((always_inline))
#pragma GCC diagnostic ignored "-Wpsabi"  // wide vectors are passed only to functions that are inlined

namespace capibara::cpu {

// Vectors of float or double, `Bytes` wide.
template <class C, int Bytes>
struct SumLanes {
  using Bits = std::conditional_t<std::is_same_v<C, double>, std::uint64_t, std::uint32_t>;
  typedef C V __attribute__((vector_size(Bytes)));
  typedef Bits B __attribute__((vector_size(Bytes)));
  static constexpr int count = Bytes / static_cast<int>(sizeof(C));
  static constexpr bool is_double = std::is_same_v<C, double>;

  static CAPIBARA_INLINE V load(const C* from) {
    V value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  static CAPIBARA_INLINE void store(C* to, V value) { std::memcpy(to, &value, sizeof value); }
  static CAPIBARA_INLINE V all(C value) { return V{} + value; }
  static CAPIBARA_INLINE C total(V value) {
    C sum = 0;
    for (int i = 0; i < count; ++i) sum += value[i];
    return sum;
  }
  // The greater or lesser of two; a NaN in x is kept.
  static CAPIBARA_INLINE V at_least(C limit, V x) {
#if defined(__aarch64__)
    if constexpr (!is_double && Bytes == 16) return vmaxq_f32(x, vdupq_n_f32(limit));
#endif
    const V bound = all(limit);
    return bound > x ? bound : x;
  }
  static CAPIBARA_INLINE V at_most(C limit, V x) {
#if defined(__aarch64__)
    if constexpr (!is_double && Bytes == 16) return vminq_f32(x, vdupq_n_f32(limit));
#endif
    const V bound = all(limit);
    return bound < x ? bound : x;
  }

  // 2^x of K vectors, with relative errors of 1.6e-7 and 4e-16; 0 below the normal numbers. Adding 1.5 * 2^23 rounds x
  // to an integer, which is left, biased, in the low bits: shifted, it is the power of two. Minimax polynomials for 2^f
  // on [-1/2, 1/2]. Each operation is written for all K vectors: processors do not look ahead far enough to find them.
  template <int K>
  static CAPIBARA_INLINE void exp2(V (&x)[K]) {
    constexpr int digits = is_double ? 52 : 23, bias = is_double ? 1023 : 127;
    constexpr C shift = is_double ? 6755399441055744.0 + bias : 12582912.0f + bias;
    V moved[K], power[K];
    auto each = [](auto&& f) __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (int k = 0; k < K; ++k) f(k);
    };
    each([&](int k) __attribute__((always_inline)) { x[k] = at_least(-bias, x[k]); });
    each([&](int k) __attribute__((always_inline)) { x[k] = at_most(bias + 1, x[k]); });
    each([&](int k) __attribute__((always_inline)) { moved[k] = x[k] + shift; });
    each([&](int k) __attribute__((always_inline)) { power[k] = moved[k] - shift; });
    each([&](int k) __attribute__((always_inline)) { x[k] = x[k] - power[k]; });
    if constexpr (is_double) {
      each([&](int k) __attribute__((always_inline)) { power[k] = all(2.9861239034458833e-11); });
      for (double c : {4.46308917625670337e-10, 7.05175997041913915e-9, 1.01780040726533717e-7, 1.32154957517895703e-6,
                       0.0000152527339850856066, 0.000154035303816325681, 0.00133335581462304261,
                       0.00961812910763536865, 0.0555041086648225683, 0.240226506959100575, 0.693147180559945293, 1.0})
        each([&](int k) __attribute__((always_inline)) { power[k] = power[k] * x[k] + c; });
    } else {
      V square[K], middle[K];
      each([&](int k)
               __attribute__((always_inline)) { power[k] = x[k] * 0.001326473313383758f + 0.009671512991189957f; });
      each([&](int k) __attribute__((always_inline)) { square[k] = x[k] * x[k]; });
      each([&](int k)
               __attribute__((always_inline)) { middle[k] = x[k] * 0.05550733581185341f + 0.24022242426872253f; });
      each([&](int k) __attribute__((always_inline)) { x[k] = x[k] * 0.6931470036506653f + 1.0f; });
      each([&](int k) __attribute__((always_inline)) { power[k] = power[k] * square[k] + middle[k]; });
      each([&](int k) __attribute__((always_inline)) { power[k] = power[k] * square[k] + x[k]; });
    }
    each([&](int k) __attribute__((always_inline)) {
      B bits;
      std::memcpy(&bits, &moved[k], sizeof bits);
      bits = bits << digits;
      V scale;
      std::memcpy(&scale, &bits, sizeof scale);
      x[k] = power[k] * scale;
    });
  }
  // 1 / (1 + exp(-x))
  template <int K>
  static CAPIBARA_INLINE void sigmoid(V (&x)[K]) {
    for (V& one : x) one = one * static_cast<C>(-1.4426950408889634);
    exp2(x);
    for (V& one : x) one = C(1) / (one + C(1));
  }
  // log(1 + exp(x)) = max(x, 0) + 2 atanh(e / (2 + e)) with e = exp(-|x|), by the series of atanh up to 1/3.
  template <int K>
  static CAPIBARA_INLINE void softplus(V (&x)[K]) {
    constexpr int terms = is_double ? 17 : 8;
    V e[K], square[K], sum[K];
#pragma GCC unroll 4
    for (int k = 0; k < K; ++k) e[k] = (x[k] < -x[k] ? x[k] : -x[k]) * static_cast<C>(1.4426950408889634);
    exp2(e);
#pragma GCC unroll 4
    for (int k = 0; k < K; ++k) {
      e[k] = e[k] / (e[k] + C(2));
      square[k] = e[k] * e[k];
      sum[k] = all(C(1) / C(2 * terms - 1));
    }
#pragma GCC unroll 17
    for (int i = terms - 2; i >= 0; --i) {
#pragma GCC unroll 4
      for (int k = 0; k < K; ++k) sum[k] = sum[k] * square[k] + C(1) / C(2 * i + 1);
    }
#pragma GCC unroll 4
    for (int k = 0; k < K; ++k) x[k] = at_least(0, x[k]) + C(2) * e[k] * sum[k];
  }
};

}  // namespace capibara::cpu
