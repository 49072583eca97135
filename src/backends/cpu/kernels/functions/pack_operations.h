// Packs as abstract values of lax/math, for formulas that loop until every lane has converged.
//
// Compiled under the processor's target (code_*.cpp); the loop is in a function that inlines everything it calls
// (`flatten`).
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "lax/math/lanes_circular.h"
#include "lax/math/lanes_power.h"
#include "lax/math/math.h"

// Numbers in the lanes of one vector: the type, its arithmetic, its conditions and its bits.

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace capibara::cpu {

// All bits of a lane are set if its condition holds.
template <class T, int Bytes>
struct PackTypes {
  using Int = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
  typedef T V __attribute__((vector_size(Bytes)));
  typedef Int M __attribute__((vector_size(Bytes)));
  typedef std::int64_t Words __attribute__((vector_size(Bytes)));
};

template <class T, int Bytes>
struct PackCondition {
  typename PackTypes<T, Bytes>::M bits;
};

template <class T, int Bytes>
struct Pack {
  typename PackTypes<T, Bytes>::V v;
};

template <class T, int Bytes>
inline Pack<T, Bytes> operator+(Pack<T, Bytes> a, Pack<T, Bytes> b) {
  return {a.v + b.v};
}
template <class T, int Bytes>
inline Pack<T, Bytes> operator-(Pack<T, Bytes> a, Pack<T, Bytes> b) {
  return {a.v - b.v};
}
template <class T, int Bytes>
inline Pack<T, Bytes> operator*(Pack<T, Bytes> a, Pack<T, Bytes> b) {
  return {a.v * b.v};
}
template <class T, int Bytes>
inline Pack<T, Bytes> operator/(Pack<T, Bytes> a, Pack<T, Bytes> b) {
  return {a.v / b.v};
}
template <class T, int Bytes>
inline Pack<T, Bytes> operator-(Pack<T, Bytes> a) {
  return {-a.v};
}
template <class T, int Bytes>
inline PackCondition<T, Bytes> logical_and(PackCondition<T, Bytes> a, PackCondition<T, Bytes> b) {
  return {a.bits & b.bits};
}
template <class T, int Bytes>
inline PackCondition<T, Bytes> logical_or(PackCondition<T, Bytes> a, PackCondition<T, Bytes> b) {
  return {a.bits | b.bits};
}
template <class T, int Bytes>
inline PackCondition<T, Bytes> logical_not(PackCondition<T, Bytes> a) {
  return {~a.bits};
}

// Operations on the bits of lanes, and products that are rounded once.
template <class T, int Bytes>
struct PackBits {
  using P = Pack<T, Bytes>;
  using Types = PackTypes<T, Bytes>;
  using V = typename Types::V;
  using M = typename Types::M;
  using Int = typename Types::Int;
  using Condition = PackCondition<T, Bytes>;
  static constexpr int count = Bytes / static_cast<int>(sizeof(T));
  static constexpr int digits = std::numeric_limits<T>::digits - 1;
  static constexpr Int bias = std::numeric_limits<T>::max_exponent - 1, sign = std::numeric_limits<Int>::min();
  // Adding it leaves the nearest integer in the low bits: conversions between 64-bit integers and doubles are
  // slow before AVX-512.
  static constexpr T large = static_cast<T>(Int{3} << (digits - 1));

  static M bits_of(P x) { return reinterpret_cast<M>(x.v); }
  static P of_bits(M bits) { return {reinterpret_cast<V>(bits)}; }

  static P abs(P x) { return of_bits(bits_of(x) & ~sign); }
  static P copysign(P magnitude, P from) { return of_bits((bits_of(magnitude) & ~sign) | (bits_of(from) & sign)); }
  // Rounded once. Intrinsics, because for x * y - z with z = round(x * y) a contracted expression would give zero.
  static P multiply_add(P x, P y, P z) {
#if defined(__x86_64__)
    if constexpr (Bytes == 64 && sizeof(T) == 4)
      return {_mm512_fmadd_ps(x.v, y.v, z.v)};
    else if constexpr (Bytes == 64)
      return {_mm512_fmadd_pd(x.v, y.v, z.v)};
    else if constexpr (sizeof(T) == 4)
      return {_mm256_fmadd_ps(x.v, y.v, z.v)};
    else
      return {_mm256_fmadd_pd(x.v, y.v, z.v)};
#elif defined(__aarch64__)
    if constexpr (sizeof(T) == 4)
      return {vfmaq_f32(z.v, x.v, y.v)};
    else
      return {vfmaq_f64(z.v, x.v, y.v)};
#else
    return {x.v * y.v + z.v};
#endif
  }

  // x = mantissa(x) * 2^exponent(x) with a mantissa in [0.5, 1), for normal x > 0; anything for others.
  static P exponent(P x) {
    const T shift = static_cast<T>(Int{1} << digits);
    const P field = of_bits(((bits_of(x) & ~sign) >> digits) | bits_of(P{V{} + shift}));
    return {field.v - (shift + static_cast<T>(bias - 1))};
  }
  static P mantissa(P x) { return of_bits((bits_of(x) & ((Int{1} << digits) - 1)) | (M{} + ((bias - 1) << digits))); }
  // 2^n for an integer n in the normal exponent range, 0 for the one below; anything for others.
  static P power_of_two(P n) { return of_bits(bits_of({n.v + (large + static_cast<T>(bias))}) << digits); }

  // Tests one bit of the representation, counted from the lowest; and flips the sign of x where z has that bit.
  static Condition has_bit(P z, int bit) { return {(bits_of(z) & (Int{1} << bit)) != M{}}; }
  static P negated_by_bit(P x, P z, int bit) {
    return of_bits(bits_of(x) ^ ((bits_of(z) << (8 * static_cast<int>(sizeof(T)) - 1 - bit)) & sign));
  }

  static bool any(Condition condition) {
    auto words = reinterpret_cast<typename Types::Words>(condition.bits);
    std::int64_t found = 0;
    if constexpr (Bytes == 64) {
      const auto half =
          __builtin_shufflevector(words, words, 0, 1, 2, 3) | __builtin_shufflevector(words, words, 4, 5, 6, 7);
      const auto quarter = __builtin_shufflevector(half, half, 0, 1) | __builtin_shufflevector(half, half, 2, 3);
      found = quarter[0] | quarter[1];
    } else if constexpr (Bytes == 32) {
      const auto half = __builtin_shufflevector(words, words, 0, 1) | __builtin_shufflevector(words, words, 2, 3);
      found = half[0] | half[1];
    } else {
      found = words[0] | words[1];
    }
    return found != 0;
  }
};

}  // namespace capibara::cpu

namespace capibara::math {

template <class T, int Bytes>
struct Operations<cpu::Pack<T, Bytes>> : cpu::PackBits<T, Bytes> {
  using Bits = cpu::PackBits<T, Bytes>;
  using Bits::abs;
  using Bits::any;
  using Bits::copysign;
  using Bits::count;
  using Bits::digits;
  using Bits::large;
  using typename Bits::Condition;
  using typename Bits::Int;
  using typename Bits::P;
  using typename Bits::V;

  static constexpr bool is_double(const P&) { return sizeof(T) == 8; }
  static P constant(double value, const P&) { return {V{} + static_cast<T>(value)}; }

  static P exp(P x) {
    const P power = elementary::exp(x);
    return select(lt(power, constant(std::numeric_limits<T>::min(), x)), constant(0, x), power);
  }
  static P log(P x) { return elementary::log(x); }
  static P log1p(P x) { return elementary::log1p(x); }
  static P log_double(P x) { return in_lanes::log(x); }
  // Beyond 2^digits every number is an integer.
  static P round_nearest_even(P x) {
    const T shift = static_cast<T>(Int{1} << digits);
    const P size = abs(x), whole{(size.v + shift) - shift};
    return select(lt(size, constant(static_cast<double>(shift), x)), copysign(whole, x), x);
  }
  static P floor(P x) {
    const P whole = round_nearest_even(x);
    return select(gt(whole, x), whole - constant(1, x), whole);
  }
  static P truncate(P x) { return copysign(floor(abs(x)), x); }
  static P sqrt(P x) {
    alignas(Bytes) T lanes[count];
    std::memcpy(lanes, &x, sizeof lanes);
    for (T& lane : lanes) lane = std::sqrt(lane);
    std::memcpy(&x, lanes, sizeof lanes);
    return x;
  }
  // In double precision.
  static P pow(P x, P y) { return in_lanes::pow(x, y); }
  using Wide = P;
  static P widen(P x) { return x; }
  static P narrow(P x, P) { return x; }
  // For angles of up to a few periods: lgamma and digamma need no others.
  static P sin(P x) { return quarter(x, false); }
  static P cos(P x) { return quarter(x, true); }

  static Condition lt(P x, P y) { return {x.v < y.v}; }
  static Condition le(P x, P y) { return {x.v <= y.v}; }
  static Condition gt(P x, P y) { return {x.v > y.v}; }
  static Condition ge(P x, P y) { return {x.v >= y.v}; }
  static Condition eq(P x, P y) { return {x.v == y.v}; }
  static Condition ne(P x, P y) { return {x.v != y.v}; }
  static Condition is_finite(P x) { return lt(abs(x), constant(infinity, x)); }
  static P select(Condition condition, P yes, P no) { return {condition.bits ? yes.v : no.v}; }

  template <class Other>
  static P rarely(Condition condition, P value, Other&& other) {
    return any(condition) ? select(condition, other(), value) : value;
  }

  // Runs while any lane continues; lanes that have stopped keep their state.
  template <class... S, class While, class Body>
  static std::tuple<S...> iterate(std::tuple<S...> state, While&& goes_on, Body&& body) {
    Condition here = std::apply(goes_on, state);
    while (any(here)) {
      for (int step = 0; step < 2; ++step) {
        const std::tuple<S...> next = std::apply(body, state);
        keep_each(here, next, state, std::make_index_sequence<sizeof...(S)>());
        here = logical_and(here, std::apply(goes_on, state));
      }
    }
    return state;
  }

 private:
  static P keep(Condition goes_on, P next, P old) { return select(goes_on, next, old); }
  static Condition keep(Condition goes_on, Condition next, Condition old) {
    return {(goes_on.bits & next.bits) | (~goes_on.bits & old.bits)};
  }
  template <class State, std::size_t... i>
  static void keep_each(Condition goes_on, const State& next, State& state, std::index_sequence<i...>) {
    ((std::get<i>(state) = keep(goes_on, std::get<i>(next), std::get<i>(state))), ...);
  }
  static P quarter(P x, bool ahead) {
    namespace circle = in_lanes::detail;
    if constexpr (sizeof(T) == 8) {
      auto [turns, r, low] = circle::reduce(x);
      return circle::by_quarter(turns, circle::sine(r, low), circle::cosine(r, low), ahead);
    } else {
      const P turns{x.v * 0.636619772f + large};
      const V k = large - turns.v;
      const P r{k * -4.37113883e-8f + (k * 1.57079637f + x.v)};
      return circle::by_quarter(turns, circle::short_sine(r), circle::short_cosine(r), ahead);
    }
  }
};

}  // namespace capibara::math
