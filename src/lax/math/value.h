// The abstract value over which elementwise functions are written once: its operations, for float and double.
//
// A template `V erf(V x)` may use + - * /, unary minus and the functions below, nothing else. It never branches on a
// value: `select` takes both sides, `iterate` loops while a condition holds. It may branch on `is_double(like)`, which
// is known when the template is expanded. Every other kind of value (an Array, a value in generated code) joins by
// specialising `Operations<V>` with the same members as `NativeOperations`; Array's is in array_value.h.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

namespace capibara::math {

// Defined below: they are built from the following operations.
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
  // The libraries of some machines are several ULP off in float64: one step of Newton's method with an exact
  // residual.
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
  // Rounded once if the machine can; otherwise a product and a sum.
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

  // x = mantissa(x) * 2^exponent(x) with a mantissa in [0.5, 1), for normal x > 0; unspecified for others.
  static T exponent(T x) {
    return static_cast<T>(static_cast<SignedBits>(std::bit_cast<Bits>(x) >> digits) - (bias - 1));
  }
  static T mantissa(T x) {
    constexpr Bits fraction = (Bits{1} << digits) - 1, half = Bits{bias - 1} << digits;
    return std::bit_cast<T>((std::bit_cast<Bits>(x) & fraction) | half);
  }
  // 2^n for an integer n of normal range, 0 for the one below; unspecified for others.
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

  // jax on the CPU computes with denormals flushed to zero; exp is where users see it first.
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

// A parameter excluded from template deduction: lets `select(condition, x, constant(...))` mix expressions.
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

// Limits of the type of `like`, as host numbers.
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

// A single-precision number in double precision, and back to the precision of `like`; doubles are unchanged.
template <class V>
typename Operations<V>::Wide widen(V x) {
  return Operations<V>::widen(x);
}
template <class V>
V narrow(typename Operations<V>::Wide x, const V& like) {
  return Operations<V>::narrow(x, like);
}

// `value`, or `other()` where the condition holds: code that is skipped if it holds for no lane.
template <class V, class Other>
V rarely(Condition<V> condition, V value, Other&& other) {
  return Operations<V>::rarely(condition, value, std::forward<Other>(other));
}

// Conditions combine with these; an array of bool has its own overloads, found by argument-dependent lookup.
inline bool logical_and(bool a, bool b) { return a && b; }
inline bool logical_or(bool a, bool b) { return a || b; }
inline bool logical_not(bool a) { return !a; }

// Repeats `state = body(state...)` while `goes_on(state...)`. A number loops alone; an array loops while any
// element continues, and a finished element keeps its state. State is a tuple of values of V and conditions.
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

// exp, log, log1p, expm1 and tanh, rounded as jax on the CPU rounds them; over any value, without branches on it.
//
// libm's would be closer to the truth by a fraction of an ULP, but jax.random.gumbel is log(-log(u)): a difference of
// one ULP inside becomes thousands where the outer logarithm crosses zero. The polynomials are those of Moshier's
// Cephes library (exp, log, log1p) and Eigen's rational tanh; products and sums are fused where jax's code fuses them.
//
// Largest difference from jax 0.10.2 in ULP (float32 over 2^19 values, float64 over 2^19 values):
//   exp 0, 0   log 0, 0   log1p 0, 0   expm1 0, 0   tanh 0, 0

namespace capibara::math::elementary {

namespace detail {

// x within [low, high]; NaN stays.
template <class V>
V bounded(V x, double low, double high) {
  V least = constant(low, x), greatest = constant(high, x);
  return select(lt(x, least), least, select(gt(x, greatest), greatest, x));
}

template <class V>
V exp_single(V x) {
  // Not bounded above: the series of a huge number is infinite anyway, even where a sum includes the unrounded last
  // product.
  V least = constant(-87.8f, x), one = constant(1, x), inside = select(lt(x, least), least, x);
  V n = floor(multiply_add(inside, constant(1.44269504f, x), constant(0.5, x)));
  n = select(gt(n, constant(127, x)), constant(127, x), n);
  V r = multiply_add(n, constant(2.12194440e-4f, x), multiply_add(n, constant(-0.693359375f, x), inside));
  const double series[] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                           4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};
  V power = multiply_add(polynomial(r, series), r * r, r) + one;
  // n = -127 gives the zero that flushing denormals would.
  return power * power_of_two(n);
}

template <class V>
V exp_double(V x) {
  V n = floor(multiply_add(x, constant(1.4426950408889634, x), constant(0.5, x)));
  V r = multiply_add(n, constant(-1.4286068203094173e-6, x), multiply_add(n, constant(-0.693145751953125, x), x));
  V square = r * r;
  const double above[] = {1.2617719307481059e-4, 3.0299440770744196e-2, 1.0};
  const double below[] = {3.0019850513866446e-6, 2.5244834034968410e-3, 2.2726554820815503e-1, 2.0};
  V p = polynomial(square, above) * r;
  V power = multiply_add(p / (polynomial(square, below) - p), constant(2, x), constant(1, x));
  // In two steps: 2^1024 is not a finite number.
  V half = floor(n * constant(0.5, x));
  V result = power * power_of_two(half) * power_of_two(n - half);
  result = select(lt(x, constant(-708.39641853226408, x)), constant(0, x), result);
  return select(gt(x, constant(709.78271289338397, x)), constant(infinity, x), result);
}

template <class V>
V log_single(V x) {
  V one = constant(1, x), zero = constant(0, x);
  V n = exponent(x), m = mantissa(x);
  auto low = lt(m, constant(0.707106781f, x));
  V r = (m - one) + select(low, m, zero);
  n = n - select(low, one, zero);
  V square = r * r, cube = square * r;
  // Nine coefficients in three groups of three: shorter chains, and jax's rounding.
  const double high[] = {7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f};
  const double middle[] = {-1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f};
  const double last[] = {2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f};
  V sum = multiply_add(polynomial(r, high), cube, polynomial(r, middle));
  sum = multiply_add(sum, cube, polynomial(r, last));
  V tail = multiply_add(sum, cube, n * constant(-2.12194440e-4f, x));
  V result = multiply_add(n, constant(0.693359375f, x), multiply_add(square, constant(-0.5, x), r) + tail);
  auto regular = logical_and(gt(x, zero), lt(x, constant(infinity, x)));
  return select(regular, result, select(gt(x, zero), x, constant(not_a_number, x)));
}

template <class V>
V tanh_single(V x) {
  V size = abs(x), inside = bounded(x, -7.99881172f, 7.99881172f);
  const double above[] = {-2.76076847742355e-16f, 2.00018790482477e-13f, -8.60467152213735e-11f, 5.12229709037114e-08f,
                          1.48572235717979e-05f,  6.37261928875436e-04f, 4.89352455891786e-03f};
  const double below[] = {1.19825839466702e-06f, 1.18534705686654e-04f, 2.26843463243900e-03f, 4.89352518554385e-03f};
  V square = inside * inside;
  V result = inside * polynomial(square, above) / polynomial(square, below);
  result = select(lt(size, constant(0.0004f, x)), x, result);
  return select(ge(size, constant(20, x)), copysign(constant(1, x), x), result);
}

template <class V>
V tanh_double(V x) {
  V size = abs(x), inside = bounded(x, -17.714196154005176, 17.714196154005176);
  const double above[] = {2.615800786048223e-23,  7.653486226874932e-19,
                          3.130948823138668e-15,  4.230391814820918e-12,
                          2.4618379131293676e-09, 6.864436768249707e-07,
                          9.383908767426888e-05,  0.005980971172444116,
                          0.15184719640284322,    1.0};
  const double below[] = {
      6.463747022670968e-21, 5.782506856739004e-17, 1.293019623712688e-13, 1.123643448069622e-10, 4.492975677839634e-08,
      8.785185266237659e-06, 0.0008295161192716232, 0.03437448108450403,   0.48518052973617604,   1.0};
  V square = inside * inside;
  V result = inside * polynomial(square, above) / polynomial(square, below);
  result = select(lt(size, constant(smallest_normal(x), x)), copysign(constant(0, x), x), result);
  return select(ge(size, constant(20, x)), copysign(constant(1, x), x), result);
}

}  // namespace detail

template <class V>
V exp(V x) {
  return is_double(x) ? detail::exp_double(x) : detail::exp_single(x);
}

template <class V>
V log(V x) {
  V result = is_double(x) ? Operations<V>::log_double(x) : detail::log_single(x);
  // A denormal counts as zero.
  return select(lt(abs(x), constant(smallest_normal(x), x)), constant(-infinity, x), result);
}

// Accurate to an ULP on [-0.29, 0.41]; jax uses it down to -0.41, where it loses up to 6 bits of float64.
template <class V>
V log1p(V x) {
  const double above[] = {4.5270000862445199635215e-5, 4.9854102823193375972212e-1, 6.5787325942061044846969e0,
                          2.9911919328553073277375e1,  6.0949667980987787057556e1,  5.7112963590585538103336e1,
                          2.0039553499201281259648e1};
  const double below[] = {1,
                          1.5062909083469192043167e1,
                          8.3047565967967209469434e1,
                          2.2176239823732856465394e2,
                          3.0909872225312059774938e2,
                          2.1642788614495947685003e2,
                          6.0118660497603843919306e1};
  V size = abs(x), square = x * x;
  V ratio = polynomial(x, above) / polynomial(x, below);
  V near = x + multiply_add(square, constant(-0.5, x), x * square * ratio);
  near = select(lt(size, constant(smallest_normal(x), x)), copysign(constant(0, x), x), near);
  return select(lt(size, constant(0.41421356237309510, x)), near, log(constant(1, x) + x));
}

template <class V>
V tanh(V x) {
  return is_double(x) ? detail::tanh_double(x) : detail::tanh_single(x);
}

template <class V>
V expm1(V x) {
  V half = x * constant(0.5, x), one = constant(1, x);
  V power = exp(x);
  V result = select(gt(abs(x), constant(0.5, x)), power - one, tanh(half) * (power + one));
  return select(lt(abs(half), constant(smallest_normal(x), x)), x, result);
}

}  // namespace capibara::math::elementary
