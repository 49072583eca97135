// The regularized incomplete beta function by its continued fraction (DLMF 8.17.22) with Lentz' algorithm.
//
// Largest relative difference from jax 0.10.2 over a, b in [0.05, 50] (float32, float64): 3e-5, 2e-13. From the truth
// in float64: 4e-13.
#pragma once

#include "lax/math/formula.h"
#include "lax/math/gamma.h"
#include "lax/math/value.h"

namespace capibara::math {

namespace detail {

// d_1 / (1 + d_2 / (1 + ...)) with d_1 = 1 and the coefficients of DLMF 8.17.23, two of them in each iteration.
template <class V>
V beta_fraction(V a, V b, V x) {
  V zero = constant(0, x), one = constant(1, x), two = constant(2, x);
  V tiny = constant(epsilon(x) / 2, x), limit = constant(is_double(x) ? 299 : 99, x);
  auto away_from_zero = [&](V v) { return select(lt(abs(v), tiny), tiny, v); };
  // m = 0 apart: a / a would be lost for tiny a.
  V sum = a + b;
  V first = -sum * x / (a + one);
  V c = away_from_zero(multiply_add(first, tiny, one));
  V d = one / away_from_zero(one + first);
  V value = c * d;
  auto start = std::tuple(ge(abs(value - one), tiny), zero, c, d, value);
  auto state = iterate<V>(
      start, [](auto goes_on, auto&&...) { return goes_on; },
      [&](auto, V m, V c, V d, V value) {
        m = m + one;
        V a2m = multiply_add(two, m, a);
        V odd = m * (b - m) * x / ((a2m - one) * a2m);
        c = away_from_zero(one + odd / c);
        d = one / away_from_zero(multiply_add(odd, d, one));
        V step = c * d;
        V am = a + m;
        V even = -am * (sum + m) * x / (a2m * (a2m + one));
        c = away_from_zero(one + even / c);
        d = one / away_from_zero(multiply_add(even, d, one));
        V change = c * d;
        value = value * step * change;
        // Either ends it: where b is a whole number, an odd coefficient is zero.
        auto changes = logical_and(ge(abs(step - one), tiny), ge(abs(change - one), tiny));
        auto goes_on = logical_and(changes, lt(m, limit));
        return std::tuple(goes_on, m, c, d, value);
      });
  return std::get<4>(state);
}

}  // namespace detail

template <class V>
V regularized_incomplete_beta(V a, Same<V> b, Same<V> x) {
  V zero = constant(0, x), one = constant(1, x), inf = constant(infinity, x);
  // All mass at 0 or at 1: a parameter is zero, or the other infinite.
  auto mass_at_zero = logical_or(eq(a, zero), eq(b, inf)), mass_at_one = logical_or(eq(b, zero), eq(a, inf));
  auto x_is_zero = eq(x, zero), x_is_one = eq(x, one);
  auto is_zero = logical_or(logical_and(mass_at_one, logical_not(x_is_one)), logical_and(mass_at_zero, x_is_zero));
  auto is_one = logical_or(logical_and(mass_at_zero, logical_not(x_is_zero)), logical_and(mass_at_one, x_is_one));
  auto outside = logical_or(logical_or(lt(a, zero), lt(b, zero)), logical_or(lt(x, zero), gt(x, one)));
  auto undefined = logical_or(logical_or(outside, logical_and(mass_at_zero, mass_at_one)),
                              logical_or(is_nan(a), logical_or(is_nan(b), is_nan(x))));

  // Left of the mean the fraction converges fast; right of it I_x(a, b) = 1 - I_(1-x)(b, a).
  auto direct = lt(x, (a + one) / (a + b + constant(2, x)));
  V first = select(direct, a, b), second = select(direct, b, a), t = select(direct, x, one - x);
  V log_beta_rest = lgamma(second) - lgamma(first + second);
  V log_beta = lgamma(first) + log_beta_rest;
  // first * gamma(first) tends to one.
  V for_tiny = exp(log1p(-t) * second - log_beta_rest);
  V for_others = exp(log(t) * first + log1p(-t) * second - log_beta) / first;
  V factor = select(lt(first, constant(2 * smallest_normal(x), x)), for_tiny, for_others);
  V value = detail::beta_fraction(first, second, t) * factor;
  V result = select(direct, value, one - value);
  result = select(is_zero, zero, result);
  result = select(is_one, one, result);
  return select(undefined, constant(not_a_number, x), result);
}

inline constexpr std::tuple incomplete_beta_formulas{formula<3>(
    "regularized_incomplete_beta", [](auto a, auto b, auto x) { return regularized_incomplete_beta(a, b, x); })};

}  // namespace capibara::math
