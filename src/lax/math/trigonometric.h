// asin, acos, atan and the hyperbolic functions with their inverses, from atan2, exp, expm1, log and log1p.
//
// The formulas are the classic ones (half-angle atan2, log1p near zero); jax uses the same, so the hard points agree.
// Largest difference from jax 0.10.2 in ULP (float32, float64), for results that are not denormal:
//   asin 0, 0   acos 0, 0   atan 5, 2   sinh 0, 0   cosh 0, 0   asinh 0, 0   acosh 0, 0   atanh 2, 1
// (jax's float32 atan is the identity below 0.001). From the truth in float64: 2, but sinh and cosh 458 at 700 (the
// argument's last digits are lost before exp), atanh 55 near 0.4 (log1p, see value.h).
#pragma once

#include "lax/math/exponential.h"
#include "lax/math/formula.h"
#include "lax/math/value.h"

namespace capibara::math {

inline constexpr double pi = 3.14159265358979323846;
inline constexpr double log_two = 0.69314718055994530942;

template <class V>
V asin(V x) {
  V one = constant(1, x);
  V half = atan2(x, one + sqrt((one - x) * (one + x)));
  return half + half;
}

template <class V>
V acos(V x) {
  V one = constant(1, x);
  return atan2(sqrt((one - x) * (one + x)), x);
}

template <class V>
V atan(V x) {
  return atan2(x, constant(1, x));
}

// Halving inside the exponent keeps results up to the largest finite number.
template <class V>
V cosh(V x) {
  V log_half = constant(-log_two, x);
  return exp(x + log_half) + exp(log_half - x);
}

template <class V>
V sinh(V x) {
  V log_half = constant(-log_two, x), one = constant(1, x);
  V far = exp(x + log_half) - exp(log_half - x);
  V power = expm1(x);
  V near = constant(0.5, x) * (power + power / (power + one));
  return select(lt(abs(x), one), near, far);
}

template <class V>
V asinh(V x) {
  V size = abs(x), one = constant(1, x);
  // Beyond sqrt(largest) the square overflows, and 1 no longer counts.
  double limit = is_double(x) ? 1.3407807929942596e154 : 1.8446743e19;
  V square = size * size;
  V near = log1p(size + square / (one + sqrt(square + one)));
  V far = log(size) + constant(log_two, x);
  return sign(x) * select(ge(size, constant(limit, x)), far, near);
}

template <class V>
V acosh(V x) {
  V one = constant(1, x);
  V low = sqrt(x - one), high = sqrt(x + one);
  V near = log1p(low * (high + low));
  V far = log(x) + constant(log_two, x);
  return select(ge(x, constant(largest(x) / 2, x)), far, near);
}

template <class V>
V atanh(V x) {
  V inside = constant(0.5, x) * (log1p(x) - log1p(-x));
  return select(gt(abs(x), constant(1, x)), constant(not_a_number, x), inside);
}

inline constexpr std::tuple trigonometric_formulas{
    complex_formula<1>("sin", [](auto x) { return sin(x); }),
    complex_formula<1>("cos", [](auto x) { return cos(x); }),
    complex_formula<1>("tan", [](auto x) { return tan(x); }),
    complex_formula<1>("asin", [](auto x) { return asin(x); }),
    complex_formula<1>("acos", [](auto x) { return acos(x); }),
    complex_formula<1>("atan", [](auto x) { return atan(x); }),
    complex_formula<1>("sinh", [](auto x) { return sinh(x); }),
    complex_formula<1>("cosh", [](auto x) { return cosh(x); }),
    complex_formula<1>("asinh", [](auto x) { return asinh(x); }),
    complex_formula<1>("acosh", [](auto x) { return acosh(x); }),
    complex_formula<1>("atanh", [](auto x) { return atanh(x); }),
    complex_formula<2>("atan2", [](auto y, auto x) { return atan2(y, x); })};

}  // namespace capibara::math
