// log, pow and cbrt without libm and without branches, for generated code that computes many lanes at once.
//
// Polynomials fitted by the Remez exchange; largest errors are measured in docs/cpu_math.md.
#pragma once

#include "lax/math/value.h"

namespace capibara::math::in_lanes {

namespace detail {

// x = m 2^n with m in [1/sqrt 2, sqrt 2), for normal x > 0.
template <class V>
struct Split {
  V n, m;
};
template <class V>
Split<V> split(V x) {
  V n = exponent(x), m = mantissa(x), one = constant(1, x);
  auto low = lt(m, constant(0.70710678118654752440, x));
  return {select(low, n - one, n), select(low, m + m, m)};
}

// ln 2 in two parts: products of the first with exponents are exact.
inline constexpr double log_two_high = 0.6931471803691238, log_two_low = 1.9082149292705877e-10;
inline constexpr double log_two_inverse = 1.4426950408889634;

// (e^r - 1 - r) / r^2 on |r| <= ln(2) / 2, to 2^-58 of e^r and to 2^-39.
inline constexpr double exp_tail[] = {2.5117909045319113e-08, 2.7631340024235546e-07, 2.755721615452807e-06,
                                      2.480148978489028e-05,  0.00019841269917541583, 0.0013888888947157052,
                                      0.008333333333307134,   0.041666666666514925,   0.166666666666667,
                                      0.5000000000000013};
inline constexpr double short_exp_tail[] = {2.4887658559942227e-05, 0.00019909300869845974, 0.0013888796322916407,
                                            0.008333281183461563,   0.04166666705483933,    0.16666666786930392,
                                            0.49999999999518324};

}  // namespace detail

// In double precision, by fdlibm's method: s = f / (2 + f), log(1 + f) = f - (f^2/2 - s (f^2/2 + R(s^2))).
template <class V>
V log(V x) {
  auto [n, m] = detail::split(x);
  V one = constant(1, x), zero = constant(0, x);
  V f = m - one;
  V s = f / (f + constant(2, x)), z = s * s;
  const double tail[] = {0.13089219145858638, 0.13268516288443394, 0.15386249681084868, 0.1818179544827098,
                         0.22222222393603783, 0.28571428570794766, 0.4000000000000089,  0.6666666666666666};
  V half = constant(0.5, x) * f * f;
  V small = multiply_add(s, multiply_add(z, polynomial(z, tail), half), n * constant(detail::log_two_low, x));
  V result = multiply_add(n, constant(detail::log_two_high, x), f - (half - small));
  auto regular = logical_and(gt(x, zero), lt(x, constant(infinity, x)));
  return select(regular, result, select(gt(x, zero), x, constant(not_a_number, x)));
}

namespace detail {

// a^y for normal a > 0, log(a) and its product with y in two doubles each.
template <class V>
V pow_double(V a, V y) {
  auto [n, m] = split(a);
  V one = constant(1, a), two = constant(2, a);
  // s = f / (2 + f)
  V f = m - one, width = f + two, width_low = f - (width - two);
  V inverse = one / width;
  V s = f * inverse;
  V s_low = (multiply_add(-s, width, f) - s * width_low) * inverse;
  // log(m) / 2 = s + s z / 3 + s z^2 q(z) with z = s^2
  V z = s * s, z_low = multiply_add(s, s, -z) + two * s * s_low;
  const double tail[] = {0.058627047428848986, 0.05853007442644131, 0.06667406658504824, 0.07692297398147836,
                         0.09090909168517294,  0.1111111111082409,  0.1428571428571469,  0.2};
  V third = constant(1.0 / 3, a), p = z * polynomial(z, tail);
  V c = third + p, c_low = ((third - c) + p) + constant(1.850371707708594e-17, a);
  V t = z * c, t_low = multiply_add(z, c, -t) + multiply_add(z, c_low, z_low * c);
  V u = s * t, u_low = multiply_add(s, t, -u) + multiply_add(s, t_low, s_low * t);
  V w = s + u, w_low = ((s - w) + u) + (u_low + s_low);
  V whole = n * constant(log_two_high, a), part = w + w;
  V log = whole + part;
  V log_low = ((whole - log) + part) + multiply_add(n, constant(log_two_low, a), w_low + w_low);
  // e^(y log a)
  V product = y * log, product_low = multiply_add(y, log, -product) + y * log_low;
  V k = round_nearest_even(product * constant(log_two_inverse, a));
  V r = multiply_add(-k, constant(log_two_high, a), product);
  r = multiply_add(-k, constant(log_two_low, a), r) + product_low;
  V power = one + multiply_add(r * r, polynomial(r, exp_tail), r);
  V half = floor(k * constant(0.5, a));
  V result = power * power_of_two(half) * power_of_two(k - half);
  result = select(gt(product, constant(710, a)), constant(infinity, a), result);
  return select(lt(product, constant(-746, a)), constant(0, a), result);
}

// The same for single precision: doubles have enough digits.
template <class V>
V pow_single(V base, V exponent_value) {
  auto a = widen(base), y = widen(exponent_value);
  auto [n, m] = split(a);
  auto one = constant(1, a), f = m - one;
  auto s = f / (f + constant(2, a)), z = s * s;
  const double tail[] = {0.0968273580541552, 0.11095622000017466, 0.14285878626841622, 0.1999999939116529,
                         0.3333333333369399};
  auto half_log = multiply_add(s * z, polynomial(z, tail), s);
  auto log = multiply_add(n, constant(0.6931471805599453, a), half_log + half_log);
  auto product = y * log, bound = constant(200, a);
  product = select(gt(product, bound), bound, select(lt(product, -bound), -bound, product));
  auto k = round_nearest_even(product * constant(log_two_inverse, a));
  auto r = multiply_add(-k, constant(0.6931471805599453, a), product);
  auto power = one + multiply_add(r * r, polynomial(r, short_exp_tail), r);
  return narrow(power * power_of_two(k), base);
}

}  // namespace detail

template <class V>
V pow(V x, Same<V> y) {
  V zero = constant(0, x), one = constant(1, x), inf = constant(infinity, x), a = abs(x);
  V result = is_double(x) ? detail::pow_double(a, y) : detail::pow_single(a, y);
  V rises = select(gt(y, zero), inf, zero), falls = select(gt(y, zero), zero, inf);
  result = select(lt(a, constant(smallest_normal(x), x)), falls, result);
  result = select(eq(a, inf), rises, result);
  result = select(eq(abs(y), inf), select(gt(a, one), rises, select(eq(a, one), one, falls)), result);
  // Negative bases have integer powers only; odd ones are negative.
  V half = y * constant(0.5, x);
  auto whole = eq(truncate(y), y);
  auto odd = logical_and(whole, ne(truncate(half), half));
  result = select(logical_and(odd, lt(copysign(one, x), zero)), -result, result);
  auto undefined = logical_and(logical_not(whole), logical_and(lt(x, zero), gt(x, -inf)));
  result = select(logical_or(undefined, logical_or(is_nan(x), is_nan(y))), constant(not_a_number, x), result);
  return select(logical_or(eq(y, zero), eq(x, one)), one, result);
}

// A polynomial, one step of Halley's method, one of Newton's.
template <class V>
V cbrt(V x) {
  V a = abs(x), n = exponent(a), m = mantissa(a), one = constant(1, x), two = constant(2, x), three = constant(3, x);
  V third = floor((n + constant(0.5, x)) * constant(1.0 / 3, x)), rest = n - three * third;
  auto one_left = eq(rest, one), two_left = eq(rest, two);
  V v = m * select(two_left, constant(4, x), select(one_left, two, one));
  V factor = select(two_left, constant(1.5874010519681996, x), select(one_left, constant(1.2599210498948732, x), one));
  const double start[] = {-0.1327114147258456, 0.5408225056755949, -0.9479814779608743, 1.1369330522110583,
                          0.4029291771898859};
  V t = polynomial(m, start) * factor;
  V cube = t * t * t;
  t = t * (cube + v + v) / (cube + cube + v);
  V square = t * t;
  t = t - multiply_add(square, t, -v) / (three * square);
  V result = copysign(t * power_of_two(third), x);
  result = select(lt(a, constant(smallest_normal(x), x)), copysign(constant(0, x), x), result);
  return select(lt(a, constant(infinity, x)), result, x);
}

// fmod: exact if the quotient is.
template <class V>
V rem(V x, Same<V> y) {
  V a = abs(x), b = abs(y), zero = constant(0, x);
  V ratio = a / b;
  V r = multiply_add(-truncate(ratio), b, a);
  r = select(lt(r, zero), r + b, r);
  r = select(ge(r, b), r - b, r);
  r = copysign(select(lt(a, b), a, r), x);
  auto many = logical_not(lt(ratio, constant(is_double(x) ? 2251799813685248.0 : 4194304.0, x)));
  // Intermediate differences of tiny numbers may be denormal.
  auto tiny = lt(b, constant(smallest_normal(x) * 16777216, x));
  return rarely(logical_or(many, tiny), r, [&] { return Operations<V>::library_rem(x, y); });
}

}  // namespace capibara::math::in_lanes
