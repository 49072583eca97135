// Square root, reciprocal square root, and the trigonometric and hyperbolic functions of complex numbers.
//
// Largest difference from jax 0.10.2: see complex.h.
#pragma once

#include "lax/math/complex.h"

namespace capibara::math {

namespace detail {

// hypot without intermediate overflow; both arguments >= 0.
template <class V>
V scaled_hypot(V a, V b) {
  V one = constant(1, a), two = constant(2, a);
  V large = maximum(a, b), small = minimum(a, b);
  V ratio = small / large;
  V square = ratio * ratio;
  V root = sqrt(one + square);
  // Where 1 + square rounds to 1, the first term of the series still counts.
  V general =
      select(logical_and(eq(root, one), gt(square, constant(0, a))), large + large * square / two, large * root);
  return select(eq(large, small), constant(1.41421356237309504880, a) * large, general);
}

}  // namespace detail

// u = sqrt((|x| + |re|) / 2) and |im| / (2 u) are the parts for re >= 0, swapped for re < 0; if u over- or
// underflows, the same from the ratio of the parts.
template <class V>
Complex<V> sqrt(Complex<V> x) {
  V zero = constant(0, x.real), one = constant(1, x.real), two = constant(2, x.real), inf = constant(infinity, x.real);
  V root_two = constant(1.41421356237309504880, x.real);
  V a = abs(x.real), b = abs(x.imag);
  V root_a = sqrt(a), root_b = sqrt(b);
  auto same = eq(a, b), a_smaller = lt(a, b), a_larger = gt(a, b);
  V u = sqrt(detail::scaled_hypot(a, b) / two + a / two);
  auto extreme = logical_or(eq(u, zero), eq(u, inf));

  V ratio = select(same, one, select(a_smaller, a / b, b / a));
  V hypotenuse = detail::scaled_hypot(abs(ratio), one);
  V from_a = sqrt(one + hypotenuse), from_b = sqrt(ratio + hypotenuse);
  V extreme_u = select(a_larger, root_a * (from_a / root_two), root_b * (from_b / root_two));
  V root_ratio = select(same, one, select(a_smaller, root_a / root_b, root_b / root_a));
  V extreme_v = select(a_larger, root_b * root_ratio / (from_a * root_two), root_b / (from_b * root_two));

  // sqrt(1 + sqrt 2), for re = im.
  V diagonal_u = constant(1.55377397403003730734, x.real) * root_a / root_two;
  V diagonal_v = root_b / constant(2.19736822693561993207, x.real);
  V large = select(same, diagonal_u, select(extreme, extreme_u, u));
  V small = select(same, diagonal_v, select(extreme, extreme_v, b / (two * u)));

  V real = select(ge(x.real, zero), large, small);
  V imag = select(lt(x.real, zero), large, small);
  return {real, select(lt(x.imag, zero), -imag, imag)};
}

template <class V>
Complex<V> rsqrt(Complex<V> x) {
  V zero = constant(0, x.real), inf = constant(infinity, x.real);
  V a = abs(x.real), b = abs(x.imag);
  V large = maximum(a, b), small = minimum(a, b);
  V ratio = small / large;
  V size = rsqrt(large) * sqrt(rsqrt(constant(1, a) + ratio * ratio));
  size = select(is_nan(size), rsqrt(small), size);
  V angle = constant(-0.5, a) * atan2(x.imag, x.real);
  Complex<V> result{size * cos(angle), size * sin(angle)};
  auto vanishes = logical_or(logical_and(eq(b, inf), is_nan(x.real)), eq(a, inf));
  result = select(vanishes, Complex<V>{copysign(zero, x.real), -copysign(zero, x.imag)}, result);
  auto at_zero = logical_and(eq(x.real, zero), eq(x.imag, zero));
  return select(at_zero, Complex<V>{inf, constant(not_a_number, a)}, result);
}

namespace detail {

// cosh and sinh from expm1 of both signs.
template <class V>
struct Hyperbolic {
  V cosh, sinh;
};
template <class V>
Hyperbolic<V> hyperbolic(V x) {
  V up = expm1(x), down = expm1(-x), two = constant(2, x);
  return {(up + down + two) / two, (up - down) / two};
}

}  // namespace detail

template <class V>
Complex<V> sin(Complex<V> x) {
  auto [c, s] = detail::hyperbolic(x.imag);
  V zero = constant(0, x.real);
  return {select(eq(x.real, zero), zero, sin(x.real) * c), cos(x.real) * s};
}

template <class V>
Complex<V> cos(Complex<V> x) {
  auto [c, s] = detail::hyperbolic(x.imag);
  V zero = constant(0, x.real);
  return {cos(x.real) * c, select(eq(x.real, zero), zero, -sin(x.real) * s)};
}

template <class V>
Complex<V> sinh(Complex<V> x) {
  Complex<V> log_half{constant(-log_two, x.real), constant(0, x.real)};
  return exp(x + log_half) - exp(log_half - x);
}

template <class V>
Complex<V> cosh(Complex<V> x) {
  Complex<V> log_half{constant(-log_two, x.real), constant(0, x.real)};
  return exp(x + log_half) + exp(log_half - x);
}

// (sinh 2a + i sin 2b) / (cosh 2a + cos 2b), each over 2: expm1 keeps small a, and cos(b)^2 small denominators.
template <class V>
Complex<V> tanh(Complex<V> x) {
  V zero = constant(0, x.real), one = constant(1, x.real), four = constant(4, x.real), inf = constant(infinity, x.real);
  V up = expm1(x.real + x.real), down = expm1(-(x.real + x.real));
  V c = cos(x.imag), s = sin(x.imag);
  V growth = up + down, turn = four * (c * s);
  V denominator = growth + four * (c * c);
  V real = select(eq(growth, inf), copysign(one, x.real), (up - down) / denominator);
  auto at_infinity = eq(abs(x.real), inf);
  real = select(logical_and(is_nan(turn), logical_not(at_infinity)), constant(not_a_number, x.real), real);
  auto imag_zero = logical_or(eq(x.imag, zero), logical_and(at_infinity, is_nan(turn)));
  return {real, select(imag_zero, zero, turn / denominator)};
}

template <class V>
Complex<V> tan(Complex<V> x) {
  Complex<V> turned = tanh(Complex<V>{-x.imag, x.real});
  return {turned.imag, -turned.real};
}

}  // namespace capibara::math
