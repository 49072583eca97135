// The inverse trigonometric and hyperbolic functions of complex numbers.
//
// asin, acos and the related functions are Hull, Fairgrieve and Tang's ("Implementing the complex arcsine and arccosine
// functions using exception handling", TOMS 1997), with both sides of every branch computed and one selected.
// Largest difference from jax 0.10.2: see complex.h.
#pragma once

#include "lax/math/complex_roots.h"

namespace capibara::math {

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

// -i log((x + iy) / sqrt(x^2 + y^2))
template <class V>
Complex<V> atan2(Complex<V> y, Same<Complex<V>> x) {
  const Complex<V> turned{x.real - y.imag, x.imag + y.real};
  const Complex<V> angle = log(turned / sqrt(x * x + y * y));
  return {angle.imag, -angle.real};
}

}  // namespace capibara::math
