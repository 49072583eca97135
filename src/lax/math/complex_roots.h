// Square root, reciprocal square root, and the trigonometric functions of complex numbers with their inverses.
//
// The inverse ones are Hull, Fairgrieve and Tang's ("Implementing the complex arcsine and arccosine functions using
// exception handling", TOMS 1997), with both sides of every branch computed and one selected.
// Largest difference from jax 0.10.2: as complex.h says.
#pragma once

#include "lax/math/complex.h"

namespace capibara::math {

namespace detail {

// hypot without overflow inside; both arguments >= 0.
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

// u = sqrt((|x| + |re|) / 2) and |im| / (2 u) are the parts for re >= 0, swapped for re < 0; where u over- or
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

namespace detail {

// asin(z) = (atan2(x, width), height with the sign of y): both kernels of the four inverse functions.
template <class V>
struct ArcKernel {
  V width, height;
};

template <class V>
ArcKernel<V> arc_kernel(V real, V imag) {
  V zero = constant(0, real), half = constant(0.5, real), one = constant(1, real), inf = constant(infinity, real);
  // sqrt(largest) / 8: squares below it do not overflow.
  double safe = is_double(real) ? 1.6759759912428245e153 : 2.30584287e18;
  V safe_max = constant(safe, real);
  V x = abs(real), y = abs(imag);
  V above = x + one, below = x - one;
  V r = scaled_hypot(abs(above), y), s = scaled_hypot(abs(below), y);
  V a = half * (r + s);  // half the major axis of the ellipse through z with foci +-1
  V half_sum = half * (a + x), y_square = y * y;
  V r_plus = r + above, s_plus = s + below, s_minus = s - below;

  V inner = sqrt(half_sum * (y_square / r_plus + s_minus));
  V outer = y * sqrt(half_sum / r_plus + half_sum / s_plus);
  V width = select(le(x, one), inner, outer);
  width = select(ge(maximum(x, y), safe_max), y, width);

  V y_limit = select(lt(x, constant(safe * 1e12, real)), constant(safe * 1e-6, real), constant(safe * 1e2, real));
  auto y_huge = ge(y, y_limit);
  V dominant = select(y_huge, y, x), dominant_limit = select(y_huge, y_limit, safe_max);
  V slope = select(logical_and(y_huge, lt(y, inf)), x / y, zero);
  V far = log(dominant) + constant(log_two, real) + half * log1p(slope * slope);

  auto near_axis =
      logical_and(lt(y, constant(is_double(real) ? 5.9666725849601654e-154 : 4.33680869e-19, real)), lt(x, one));
  V half_square = half * y_square;
  V a_minus_one = select(ge(x, one), half_square / r_plus + half * s_plus,
                         select(le(a, constant(1.5, real)), half_square / r_plus + half_square / s_minus, a - one));
  a_minus_one = select(near_axis, -(above * below / (a + one)), a_minus_one);
  V root = sqrt(a_minus_one * (a + one));
  V near = select(near_axis, y / root, log1p(a_minus_one + root));
  return {width, select(ge(dominant, dominant_limit), far, near)};
}

}  // namespace detail

template <class V>
Complex<V> asin(Complex<V> x) {
  auto [width, height] = detail::arc_kernel(x.real, x.imag);
  return {atan2(x.real, width), select(lt(x.imag, constant(0, x.imag)), -height, height)};
}

template <class V>
Complex<V> acos(Complex<V> x) {
  auto [width, height] = detail::arc_kernel(x.real, x.imag);
  return {atan2(width, x.real), select(lt(x.imag, constant(0, x.imag)), height, -height)};
}

template <class V>
Complex<V> acosh(Complex<V> x) {
  auto [width, height] = detail::arc_kernel(x.real, x.imag);
  V angle = atan2(width, x.real);
  return {height, select(lt(x.imag, constant(0, x.imag)), -angle, angle)};
}

// -i asin(i x), the kernel being even in both parts.
template <class V>
Complex<V> asinh(Complex<V> x) {
  auto [width, height] = detail::arc_kernel(x.imag, x.real);
  return {select(lt(x.real, constant(0, x.real)), -height, height), atan2(x.imag, width)};
}

// log1p(4x / ((1 - x)^2 + y^2)) / 4 and atan2(2y, (1 - x)(1 + x) - y^2) / 2, for x >= 0.
template <class V>
Complex<V> atanh(Complex<V> x) {
  V zero = constant(0, x.real), half = constant(0.5, x.real), one = constant(1, x.real), four = constant(4, x.real);
  V inf = constant(infinity, x.real), minus_one = constant(-1, x.real);
  V a = abs(x.real), b = abs(x.imag), y = x.imag;
  V limit = constant(is_double(x.real) ? 8.1129638414606718e31 : 2.81475044e14, a);
  auto moderate = logical_and(lt(a, limit), lt(b, limit));
  V gap = one - a;
  V general = a / (gap * gap + y * y);
  // Far out only x / |x|^2 matters.
  auto flat = lt(b * constant(is_double(x.real) ? 9007199254740994.0 : 16777218.0, a), a);
  auto infinite = logical_or(eq(a, inf), eq(b, inf));
  V far = select(flat, one / a, select(infinite, zero, one / (a / y + y / a) / y));
  V real = select(ge(x.real, zero), one, minus_one) * log1p(four * select(moderate, general, far)) * constant(0.25, a);
  V turn = atan2(y + y, gap * (one + a) - y * y);
  V quarter = select(ge(y, zero), one, minus_one) * constant(pi, a);
  return {real, half * select(moderate, turn, quarter)};
}

// -i atanh(i x).
template <class V>
Complex<V> atan(Complex<V> x) {
  Complex<V> turned = atanh(Complex<V>{-x.imag, x.real});
  return {turned.imag, -turned.real};
}

}  // namespace capibara::math
