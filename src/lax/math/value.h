// The abstract value over which elementwise functions are written once: its operations, for float and double.
//
// A template `V erf(V x)` may use + - * /, unary minus and the functions below, nothing else. It never branches on a
// value: `select` takes both sides, `iterate` loops while a condition holds. It may branch on `is_double(like)`, which
// is known when the function is written out. Every other kind of value (an Array, a value in generated code) joins by
// specialising `Operations<V>` with the same members as `NativeOperations`; Array's stands in array_value.h.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

namespace capibara::math {

// In elementary.h, included below: they are made of the operations that follow.
namespace elementary {
template <class V>
V exp(V x);
template <class V>
V expm1(V x);
template <class V>
V log(V x);
template <class V>
V log1p(V x);
template <class V>
V tanh(V x);
}  // namespace elementary

template <class T>
struct NativeOperations {
  using Condition = bool;
  using Wide = double;

  static constexpr bool is_double(const T&) { return std::is_same_v<T, double>; }
  static constexpr T constant(double value, const T&) { return static_cast<T>(value); }

  static T abs(T x) { return std::fabs(x); }
  static T exp(T x) { return flush(elementary::exp(x)); }
  static T expm1(T x) { return elementary::expm1(x); }
  static T log(T x) { return elementary::log(x); }
  static T log1p(T x) { return elementary::log1p(x); }
  static T tanh(T x) { return elementary::tanh(x); }
  static T sin(T x) { return std::sin(x); }
  static T cos(T x) { return std::cos(x); }
  static T tan(T x) { return std::tan(x); }
  static T atan2(T y, T x) { return std::atan2(y, x); }
  static T pow(T x, T y) { return std::pow(x, y); }
  static T sqrt(T x) { return std::sqrt(x); }
  static T rsqrt(T x) { return T(1) / std::sqrt(x); }
  // The libraries of some machines are several units away in float64: one step of Newton's method with an exact residual.
  static T cbrt(T x) {
    T y = std::cbrt(x);
    if (!std::is_same_v<T, double> || y == 0 || !std::isfinite(y)) return y;
    T square = y * y, rest = std::fma(y, y, -square);
    return y - (std::fma(square, y, -x) + rest * y) / (3 * square);
  }
  static T floor(T x) { return std::floor(x); }
  static T ceil(T x) { return std::ceil(x); }
  static T truncate(T x) { return std::trunc(x); }
  static T round(T x) { return std::round(x); }
  // Independent of the rounding mode the process may have set.
  static T round_nearest_even(T x) {
    if (!std::isfinite(x)) return x;
    T down = std::floor(x), fraction = x - down;
    bool up = fraction > T(0.5) || (fraction == T(0.5) && std::fmod(down, T(2)) != 0);
    return std::copysign(up ? down + T(1) : down, x);
  }
  static T rem(T x, T y) { return std::fmod(x, y); }
  static T copysign(T magnitude, T sign) { return std::copysign(magnitude, sign); }
  static T erf(T x) { return std::erf(x); }
  // Rounded once where the machine can; elsewhere a product and a sum.
  static T multiply_add(T x, T y, T z) { return std::fma(x, y, z); }
  // NaN wins over numbers, and -0 is below +0.
  static T maximum(T x, T y) { return x != x || x > y || (x == y && !std::signbit(x)) ? x : y; }
  static T minimum(T x, T y) { return x != x || x < y || (x == y && std::signbit(x)) ? x : y; }

  static bool lt(T x, T y) { return x < y; }
  static bool le(T x, T y) { return x <= y; }
  static bool gt(T x, T y) { return x > y; }
  static bool ge(T x, T y) { return x >= y; }
  static bool eq(T x, T y) { return x == y; }
  static bool ne(T x, T y) { return x != y; }
  static bool is_finite(T x) { return std::isfinite(x); }
  static T select(bool condition, T yes, T no) { return condition ? yes : no; }

  // x = mantissa(x) * 2^exponent(x) with a mantissa in [0.5, 1), for normal x > 0; anything for others.
  static T exponent(T x) {
    return static_cast<T>(static_cast<SignedBits>(std::bit_cast<Bits>(x) >> digits) - (bias - 1));
  }
  static T mantissa(T x) {
    constexpr Bits fraction = (Bits{1} << digits) - 1, half = Bits{bias - 1} << digits;
    return std::bit_cast<T>((std::bit_cast<Bits>(x) & fraction) | half);
  }
  // 2^n for an integer n of normal range, 0 for the one below; anything for others.
  static T power_of_two(T n) {
    if (!(n >= T(-bias) && n <= T(bias))) return T(1);
    return std::bit_cast<T>(static_cast<Bits>(static_cast<SignedBits>(n) + bias) << digits);
  }
  static Wide widen(T x) { return x; }
  static T narrow(Wide x, T) { return static_cast<T>(x); }
  static T log_double(T x) { return std::log(x); }
  static T library_sin(T x) { return std::sin(x); }
  static T library_cos(T x) { return std::cos(x); }
  static T library_tan(T x) { return std::tan(x); }
  static T library_rem(T x, T y) { return std::fmod(x, y); }
  template <class Other>
  static T rarely(bool condition, T value, Other&& other) {
    return condition ? other() : value;
  }

  template <class... S, class While, class Body>
  static std::tuple<S...> iterate(std::tuple<S...> state, While&& goes_on, Body&& body) {
    while (std::apply(goes_on, state)) state = std::apply(body, std::move(state));
    return state;
  }

 protected:
  using Bits = std::conditional_t<std::is_same_v<T, double>, std::uint64_t, std::uint32_t>;
  using SignedBits = std::make_signed_t<Bits>;
  static constexpr int digits = std::numeric_limits<T>::digits - 1, bias = std::numeric_limits<T>::max_exponent - 1;

  // jax on the CPU computes with denormals flushed to zero; exp is where a user meets it first.
  static T flush(T x) { return x < std::numeric_limits<T>::min() ? T(0) : x; }
};

template <class V>
struct Operations;

template <>
struct Operations<double> : NativeOperations<double> {};

template <>
struct Operations<float> : NativeOperations<float> {};

template <class V>
using Condition = typename Operations<V>::Condition;

// What the compiler must not deduce an argument from: lets `select(condition, x, constant(...))` mix expressions.
template <class V>
using Same = std::type_identity_t<V>;

template <class V>
constexpr bool is_double(const V& like) {
  return Operations<V>::is_double(like);
}
template <class V>
constexpr V constant(double value, const V& like) {
  return Operations<V>::constant(value, like);
}

// Limits of the type `like` has, as host numbers.
template <class V>
double epsilon(const V& like) {
  return is_double(like) ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
}
template <class V>
double largest(const V& like) {
  return is_double(like) ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
}
template <class V>
double smallest_normal(const V& like) {
  return is_double(like) ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
}
inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

#define CAPIBARA_MATH_UNARY(name)  \
  template <class V>               \
  V name(V x) {                    \
    return Operations<V>::name(x); \
  }
#define CAPIBARA_MATH_BINARY(name)    \
  template <class V>                  \
  V name(V x, Same<V> y) {            \
    return Operations<V>::name(x, y); \
  }
#define CAPIBARA_MATH_COMPARE(name)   \
  template <class V>                  \
  Condition<V> name(V x, Same<V> y) { \
    return Operations<V>::name(x, y); \
  }
CAPIBARA_MATH_UNARY(abs)
CAPIBARA_MATH_UNARY(exp)
CAPIBARA_MATH_UNARY(expm1)
CAPIBARA_MATH_UNARY(log)
CAPIBARA_MATH_UNARY(log1p)
CAPIBARA_MATH_UNARY(tanh)
CAPIBARA_MATH_UNARY(sin)
CAPIBARA_MATH_UNARY(cos)
CAPIBARA_MATH_UNARY(tan)
CAPIBARA_MATH_UNARY(sqrt)
CAPIBARA_MATH_UNARY(rsqrt)
CAPIBARA_MATH_UNARY(cbrt)
CAPIBARA_MATH_UNARY(floor)
CAPIBARA_MATH_UNARY(ceil)
CAPIBARA_MATH_UNARY(truncate)
CAPIBARA_MATH_UNARY(round)
CAPIBARA_MATH_UNARY(round_nearest_even)
CAPIBARA_MATH_UNARY(exponent)
CAPIBARA_MATH_UNARY(mantissa)
CAPIBARA_MATH_UNARY(power_of_two)
CAPIBARA_MATH_BINARY(atan2)
CAPIBARA_MATH_BINARY(pow)
CAPIBARA_MATH_BINARY(rem)
CAPIBARA_MATH_BINARY(copysign)
CAPIBARA_MATH_BINARY(maximum)
CAPIBARA_MATH_BINARY(minimum)
CAPIBARA_MATH_COMPARE(lt)
CAPIBARA_MATH_COMPARE(le)
CAPIBARA_MATH_COMPARE(gt)
CAPIBARA_MATH_COMPARE(ge)
CAPIBARA_MATH_COMPARE(eq)
CAPIBARA_MATH_COMPARE(ne)
#undef CAPIBARA_MATH_UNARY
#undef CAPIBARA_MATH_BINARY
#undef CAPIBARA_MATH_COMPARE

template <class V>
V multiply_add(V x, Same<V> y, Same<V> z) {
  return Operations<V>::multiply_add(x, y, z);
}
template <class V>
Condition<V> is_finite(V x) {
  return Operations<V>::is_finite(x);
}
template <class V>
Condition<V> is_nan(V x) {
  return ne(x, x);
}
template <class V>
V select(Condition<V> condition, V yes, Same<V> no) {
  return Operations<V>::select(condition, yes, no);
}

// A number of single precision in double precision, and back to that of `like`; one of double precision is itself.
template <class V>
typename Operations<V>::Wide widen(V x) {
  return Operations<V>::widen(x);
}
template <class V>
V narrow(typename Operations<V>::Wide x, const V& like) {
  return Operations<V>::narrow(x, like);
}

// `value`, or `other()` where the condition holds: code that is skipped where it holds for no lane.
template <class V, class Other>
V rarely(Condition<V> condition, V value, Other&& other) {
  return Operations<V>::rarely(condition, value, std::forward<Other>(other));
}

// Conditions combine with these; an array of bool brings its own overloads, found by argument.
inline bool logical_and(bool a, bool b) { return a && b; }
inline bool logical_or(bool a, bool b) { return a || b; }
inline bool logical_not(bool a) { return !a; }

// Repeats `state = body(state...)` while `goes_on(state...)`. A number loops by itself; an array loops while any
// element goes on, and an element that has stopped keeps its state. State is a tuple of values of V and conditions.
template <class V, class State, class While, class Body>
State iterate(State state, While&& goes_on, Body&& body) {
  return Operations<V>::iterate(std::move(state), std::forward<While>(goes_on), std::forward<Body>(body));
}

// c[0] x^(n-1) + ... + c[n-1], highest power first.
template <class V, class Coefficients>
V polynomial(V x, const Coefficients& coefficients) {
  V sum = constant(0, x);
  bool first = true;
  for (double c : coefficients) {
    sum = first ? constant(c, x) : multiply_add(sum, x, constant(c, x));
    first = false;
  }
  return sum;
}

}  // namespace capibara::math

#include "lax/math/elementary.h"
