// The operations of scatters, and their loops over elements of windows of any form: what is compiled for each operation
// and type stands behind plain pointers.
#pragma once

#include <complex>
#include <type_traits>

#include "core/array/element.h"

namespace capibara::cpu::scatters {

enum class Combine { replace, add, sub, mul, min, max, bit_and, bit_or, bit_xor };

template <class C>
inline bool less(const C& a, const C& b) {
  if constexpr (is_complex_number<C>)
    return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag());
  else
    return a < b;
}

template <Combine O, class C>
inline C combined(C a, C b) {
  if constexpr ((O == Combine::min || O == Combine::max) && std::is_floating_point_v<C>) {
    const bool second = (a == a) & !(O == Combine::min ? a <= b : a >= b);  // NaN wins
    return second ? b : a;
  } else if constexpr (O == Combine::min)
    return a != a || (b == b && !less(b, a)) ? a : b;
  else if constexpr (O == Combine::max)
    return a != a || (b == b && !less(a, b)) ? a : b;
  else if constexpr (std::is_same_v<C, bool>) {
    if constexpr (O == Combine::bit_and || O == Combine::mul)
      return a && b;
    else if constexpr (O == Combine::bit_xor || O == Combine::sub)
      return a != b;
    else
      return a || b;
  } else if constexpr (std::is_integral_v<C>) {
    auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);  // integers wrap
    if constexpr (O == Combine::sub)
      return static_cast<C>(x - y);
    else if constexpr (O == Combine::mul)
      return static_cast<C>(x * y);
    else if constexpr (O == Combine::bit_and)
      return static_cast<C>(x & y);
    else if constexpr (O == Combine::bit_or)
      return static_cast<C>(x | y);
    else if constexpr (O == Combine::bit_xor)
      return static_cast<C>(x ^ y);
    else
      return static_cast<C>(x + y);
  } else {
    if constexpr (O == Combine::sub)
      return a - b;
    else if constexpr (O == Combine::mul)
      return a * b;
    else
      return a + b;
  }
}

// ---- windows of any form ------------------------------------------------------------------------------------------

// On elements of a compute type C.
struct AnyLoops {
  int64_t size;  // bytes of an element
  // to[i * to_step] op= from[i * from_step].
  void (*run)(void* to, int64_t to_step, const void* from, int64_t from_step, int64_t count);
  // to[places[i]] op= from[sources[i]].
  void (*elements)(void* to, const int64_t* places, const void* from, const int64_t* sources, int64_t count);
  void (*load)(DType dtype, const void* data, int64_t count, void* out);
  void (*store)(DType dtype, void* data, int64_t count, const void* values);
};

template <Combine O, class C>
void combine_run(void* to, int64_t to_step, const void* from, int64_t from_step, int64_t count) {
  if (to_step == 1 && from_step == 1) {
    C* __restrict target = static_cast<C*>(to);
    const C* __restrict source = static_cast<const C*>(from);
    for (int64_t i = 0; i < count; ++i) target[i] = combined<O>(target[i], source[i]);
  } else {
    C* target = static_cast<C*>(to);
    const C* source = static_cast<const C*>(from);
    for (int64_t i = 0; i < count; ++i) target[i * to_step] = combined<O>(target[i * to_step], source[i * from_step]);
  }
}

template <Combine O, class C>
void combine_any_elements(void* to, const int64_t* places, const void* from, const int64_t* sources, int64_t count) {
  C* target = static_cast<C*>(to);
  const C* __restrict source = static_cast<const C*>(from);
  for (int64_t i = 0; i < count; ++i) target[places[i]] = combined<O>(target[places[i]], source[sources[i]]);
}

template <class C>
void load_computed(DType dtype, const void* data, int64_t count, void* out) {
  load_range<C>(dtype, data, count, static_cast<C*>(out));
}
template <class C>
void store_computed(DType dtype, void* data, int64_t count, const void* values) {
  store_range<C>(dtype, data, count, static_cast<const C*>(values));
}

template <Combine O, class C>
AnyLoops any_loops() {
  return {sizeof(C), combine_run<O, C>, combine_any_elements<O, C>, load_computed<C>, store_computed<C>};
}

}  // namespace capibara::cpu::scatters
