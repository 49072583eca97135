// Conversions between stored elements and the accumulator type, for the recurrence kernels.
#pragma once

#include <bit>
#include <cstring>
#include <type_traits>

#include "backends/cpu/kernels/kernels.h"
#include "core/array/element.h"

namespace capibara::cpu {

template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class C, class T>
inline C as_sum(T value) {
#if defined(__aarch64__)
  if constexpr (std::is_same_v<T, Half>) return static_cast<C>(std::bit_cast<__fp16>(value.bits));
#endif
  return static_cast<C>(value);
}
template <class T, class C>
inline T from_sum(C value) {
#if defined(__aarch64__)
  if constexpr (std::is_same_v<T, Half>) return std::bit_cast<Half>(static_cast<__fp16>(value));
#endif
  return static_cast<T>(value);
}

// Converts elements of type T to the accumulator type, and back.
template <class T, class C>
inline void widen(const T* from, int64_t count, C* to) {
  if constexpr (std::is_same_v<T, C>)
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(C));
  else
    for (int64_t i = 0; i < count; ++i) to[i] = as_sum<C>(from[i]);
}
template <class T, class C>
inline void narrow(const C* from, int64_t count, T* to) {
  if constexpr (std::is_same_v<T, C>)
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(C));
  else
    for (int64_t i = 0; i < count; ++i) to[i] = from_sum<T>(from[i]);
}

// Calls make(Type<T>{}) for the element types that the kernels support; returns no kernel for others.
template <class Make>
HostKernel make_for_float(DType dtype, Make&& make) {
  switch (dtype) {
    case DType::float32:
      return make(Type<float>{});
    case DType::float64:
      return make(Type<double>{});
    case DType::bfloat16:
      return make(Type<BFloat16>{});
#if defined(__aarch64__)  // which has instructions for halves
    case DType::float16:
      return make(Type<Half>{});
#endif
    default:
      return {};
  }
}

}  // namespace capibara::cpu
