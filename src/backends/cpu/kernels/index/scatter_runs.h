// Scatters whose windows are one contiguous run, or one element.
#pragma once

#include <algorithm>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backends/cpu/kernels/index/index_windows.h"
#include "core/array/element.h"

// The operations of scatters, and their loops over elements of windows of any form: code compiled for each operation
// and type is behind plain pointers.

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

// Loops over elements of a compute type C.
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

// The loops of scatters over elements of windows that are one contiguous run, or one element.

// The arithmetic type for stored elements of type E.
template <class E>
using ComputeOf = std::conditional_t<std::is_same_v<E, BFloat16> || std::is_same_v<E, Half>, float, E>;

template <Combine O, class E>
inline E combined_stored(const E& a, const E& b) {
  if constexpr (O == Combine::replace)
    return b;
  else
    return static_cast<E>(combined<O>(static_cast<ComputeOf<E>>(a), static_cast<ComputeOf<E>>(b)));
}

// Loops over stored elements. `places` count elements; `which` are the indices of their updates.
struct RunLoops {
  int64_t size;  // bytes of an element
  // into[places[i]] op= from[i * step], skipping places that are nowhere.
  void (*elements)(void* into, const uint32_t* places, const void* from, int64_t step, int64_t count);
  // into[places[i]] op= from[which[i] * step].
  void (*chosen)(void* into, const uint32_t* places, const uint32_t* which, const void* from, int64_t step,
                 int64_t count);
  // The same for `run` contiguous elements at each place; `some`: not all updates are used.
  void (*rows)(void* into, const uint32_t* places, const uint32_t* which, const void* from, int64_t step, int64_t count,
               bool some, int64_t run);
  // Fills with the operation's identity, and into[i] op= from[i]; null if updates are never split into parts.
  void (*clear)(void* into, int64_t count);
  void (*join)(void* into, const void* from, int64_t count);
};

template <Combine O, class E>
void combine_elements(void* into, const uint32_t* places, const void* from, int64_t step, int64_t count) {
  E* target = static_cast<E*>(into);
  const E* source = static_cast<const E*>(from);
  for (int64_t i = 0; i < count; ++i) {
    if (places[i] != WindowPlan::nowhere) target[places[i]] = combined_stored<O>(target[places[i]], source[i * step]);
  }
}

template <Combine O, class E>
void combine_chosen(void* into, const uint32_t* places, const uint32_t* which, const void* from, int64_t step,
                    int64_t count) {
  E* target = static_cast<E*>(into);
  const E* source = static_cast<const E*>(from);
  for (int64_t i = 0; i < count; ++i)
    target[places[i]] = combined_stored<O>(target[places[i]], source[which[i] * step]);
}

template <class E>
inline constexpr bool is_number = std::is_same_v<E, float> || std::is_same_v<E, double> ||
                                  (std::is_integral_v<E> && !std::is_same_v<E, bool>);

// Consecutive runs for one place: each element stays in a register until the last of them.
template <Combine O, class E>
inline void combine_group(E* __restrict to, const E* __restrict from, int64_t step, const uint32_t* which,
                          int64_t count, int64_t run) {
  if constexpr (O == Combine::replace) {
    copy_run(to, 1, from + which[count - 1] * step, 1, run);
    return;
  }
  int64_t k = 0;
  if constexpr (O == Combine::add && is_number<E>) {
    typedef E Vector __attribute__((vector_size(16)));
    constexpr int64_t width = 16 / sizeof(E);
    auto read = [](const E* at) {
      Vector value;
      std::memcpy(&value, at, sizeof value);
      return value;
    };
    for (; k + 4 * width <= run; k += 4 * width) {
      Vector a = read(to + k), b = read(to + k + width), c = read(to + k + 2 * width), d = read(to + k + 3 * width);
      for (int64_t i = 0; i < count; ++i) {
        const E* at = from + which[i] * step + k;
        a += read(at), b += read(at + width), c += read(at + 2 * width), d += read(at + 3 * width);
      }
      std::memcpy(to + k, &a, 16), std::memcpy(to + k + width, &b, 16);
      std::memcpy(to + k + 2 * width, &c, 16), std::memcpy(to + k + 3 * width, &d, 16);
    }
    for (; k + width <= run; k += width) {
      Vector a = read(to + k);
      for (int64_t i = 0; i < count; ++i) a += read(from + which[i] * step + k);
      std::memcpy(to + k, &a, 16);
    }
  }
  if (k == run) return;
  for (int64_t i = 0; i < count; ++i) {
    const E* __restrict at = from + which[i] * step;
    for (int64_t j = k; j < run; ++j) to[j] = combined_stored<O>(to[j], at[j]);
  }
}

template <Combine O, class E>
void combine_rows(void* into, const uint32_t* places, const uint32_t* which, const void* from, int64_t step,
                  int64_t count, bool some, int64_t run) {
  constexpr int64_t ahead = 12;
  E* target = static_cast<E*>(into);
  const E* source = static_cast<const E*>(from);
  for (int64_t i = 0; i < count;) {
    int64_t next = i + 1;
    while (next < count && places[next] == places[i]) ++next;
    if (next + ahead < count) {
      __builtin_prefetch(target + places[next + ahead], 1);
      if (some) __builtin_prefetch(source + which[next + ahead] * step);
    }
    combine_group<O>(target + places[i], source, step, which + i, next - i, run);
    i = next;
  }
}

template <Combine O, class E>
void clear_part(void* into, int64_t count) {
  using Limits = std::numeric_limits<E>;
  E neutral{};
  if constexpr (O == Combine::add)
    neutral = std::is_floating_point_v<E> ? static_cast<E>(-0.0) : E{};
  else if constexpr (O == Combine::min)
    neutral = Limits::has_infinity ? Limits::infinity() : Limits::max();
  else
    neutral = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  std::fill_n(static_cast<E*>(into), count, neutral);
}

template <Combine O, class E>
RunLoops run_loops() {
  RunLoops loops{sizeof(E), combine_elements<O, E>, combine_chosen<O, E>, combine_rows<O, E>, nullptr, nullptr};
  if constexpr ((O == Combine::add || O == Combine::min || O == Combine::max) && is_number<E>) {
    loops.clear = clear_part<O, E>;
    loops.join = [](void* into, const void* from, int64_t count) { combine_run<O, E>(into, 1, from, 1, count); };
  }
  return loops;
}

// True if windows have that form and are evenly spaced in the updates.
bool has_plain_runs(const WindowPlan& plan, int64_t operand_size);

// One call of a scatter with such windows.
struct RunScatter {
  const WindowPlan& plan;
  const RunLoops& loops;
  const std::byte* indices;
  std::byte* target;
  const std::byte* updates;
  int64_t operand_size;  // elements

  void run(bool distinct) const;

 private:
  const std::byte* update(int64_t i) const { return updates + plan.batch_in_windows.stride() * i * loops.size; }
  int64_t parts_of(int64_t count) const;
  void combine_parts(int64_t count, int64_t parts, double one) const;
  void all_elements(int64_t count) const;
  void elements(int64_t begin, int64_t end, std::byte* into) const;
  void elements_within(int64_t count, int64_t least, int64_t limit) const;
  void all_rows(int64_t count, double one) const;
  void rows(int64_t begin, int64_t end, int64_t least, int64_t limit, int64_t first, int64_t run,
            std::byte* into) const;
};

}  // namespace capibara::cpu::scatters
