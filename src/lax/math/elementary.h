// exp, log, log1p, expm1 and tanh, rounded as jax on the CPU rounds them; over any value, without branches on it.
//
// libm's would be closer to the truth by a fraction of an ULP, but jax.random.gumbel is log(-log(u)): one ULP of
// difference inside becomes thousands where the outer logarithm crosses zero. The polynomials are those of Moshier's
// Cephes library (exp, log, log1p) and Eigen's rational tanh; products and sums are fused where jax's code fuses them.
//
// Largest difference from jax 0.10.2 in ULP (float32 over 2^19 values, float64 over 2^19 values):
//   exp 0, 0   log 0, 0   log1p 0, 0   expm1 0, 0   tanh 0, 0
#pragma once

#include "lax/math/value.h"

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
  // Not bounded above: the series of a huge number is infinite by itself, also where a sum takes in the last product unrounded.
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
  // In two steps: 2^1024 is no number.
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
  // Nine coefficients in three groups of three: shorter chains, and the rounding jax has.
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
