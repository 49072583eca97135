// The regularized incomplete gamma functions P and Q, the derivative of P by its parameter, and of gamma samples.
//
// The power series covers x <= a (or x < 1), the continued fraction the rest, as in Cephes' igam.c.
// Largest relative difference from jax 0.10.2 over a, x in [0.01, 100] (float32, float64), where results are not tiny:
//   igamma 8e-6, 6e-14   igammac 2e-5, 2e-14   igamma_grad_a 2e-5, 1e-14   random_gamma_grad 1e-6, 1e-14
// From the truth in float64: igamma 1e-13; igammac 1e-12, where it is 1 - igamma near 0.
#pragma once

#include "lax/math/formula.h"
#include "lax/math/gamma.h"
#include "lax/math/value.h"

// The power series and the continued fraction of the incomplete gamma functions, with their derivatives by a.
//
// Both are as in Cephes' igam.c; the derivative runs through them by differentiating each step. A term counts while it
// is larger than epsilon times the sum.

namespace capibara::math {

namespace detail {

enum class IncompleteGamma { value, derivative, sample_derivative };

// Enough for a = x = 1e12; if the ratio of terms rounds to one, the series stops here instead of never.
inline constexpr double igamma_series_limit = 1e7;
inline constexpr double igamma_fraction_limit = 2000;

// P(a, x), with `scale` = x^a e^-x / gamma(a).
template <class V>
V igamma_series(V scale, V x, V a, Condition<V> enabled, IncompleteGamma mode) {
  V one = constant(1, x), zero = constant(0, x), eps = constant(epsilon(x), x);
  V limit = constant(igamma_series_limit, x);
  auto start = std::tuple(enabled, zero, a, one, one, zero, zero);
  auto state = iterate<V>(
      start, [](auto goes_on, auto&&...) { return goes_on; },
      [&](auto, V count, V r, V term, V sum, V dterm, V dsum) {
        r = r + one;
        count = count + one;
        V factor = x / r;
        if (mode != IncompleteGamma::value) {
          dterm = (dterm - term / r) * factor;
          dsum = dsum + dterm;
        }
        term = term * factor;
        sum = sum + term;
        auto large = mode == IncompleteGamma::value ? gt(term, eps * sum) : gt(abs(dterm), eps * abs(dsum));
        return std::tuple(logical_and(large, lt(count, limit)), count, r, term, sum, dterm, dsum);
      });
  V sum = std::get<4>(state), dsum = std::get<6>(state);
  if (mode == IncompleteGamma::value) return sum * scale / a;
  V dlog_scale = log(x) - digamma(a + one);
  if (mode == IncompleteGamma::derivative) return scale * (sum * dlog_scale + dsum) / a;
  return -(dsum + sum * dlog_scale) * x / a;
}

// A convergent p/q of Legendre's continued fraction with the derivatives of both by a.
template <class V>
struct Convergent {
  V p, q, dp, dq;
};

// Q(a, x).
template <class V>
V igammac_fraction(V scale, V x, V a, Condition<V> enabled, IncompleteGamma mode) {
  V one = constant(1, x), two = constant(2, x), zero = constant(0, x), eps = constant(epsilon(x), x);
  V limit = constant(igamma_fraction_limit, x), large = constant(1 / epsilon(x), x);
  V y = one - a;
  V z = x + y + one;
  V p = x + one, q = z * x;
  V value = p / q;
  V dvalue = (zero + value * x) / q;
  auto start = std::tuple(enabled, value, dvalue, y, z, zero, p, q, zero, -x, one, x, zero, zero);
  auto state = iterate<V>(
      start, [](auto goes_on, auto&&...) { return goes_on; },
      [&](auto, V value, V dvalue, V y, V z, V count, V p1, V q1, V dp1, V dq1, V p2, V q2, V dp2, V dq2) {
        count = count + one;
        y = y + one;
        z = z + two;
        V yc = y * count;
        V p = p1 * z - p2 * yc, q = q1 * z - q2 * yc;
        auto usable = ne(q, zero);
        V ratio = p / q;
        auto changed = gt(abs(value - ratio), eps * abs(ratio));
        value = select(usable, ratio, value);
        V dp = zero, dq = zero, dnext = dvalue;
        if (mode != IncompleteGamma::value) {
          dp = dp1 * z - p1 - dp2 * yc + p2 * count;
          dq = dq1 * z - q1 - dq2 * yc + q2 * count;
          dnext = select(usable, (dp - value * dq) / q, dvalue);
          changed = gt(abs(dnext - dvalue), eps);
        }
        auto goes_on = logical_or(changed, logical_not(usable));
        // Only ratios matter: scale numerators and denominators down together before they overflow.
        V scaled = select(gt(abs(p), large), eps, one);
        return std::tuple(logical_and(goes_on, lt(count, limit)), value, dnext, y, z, count, p * scaled, q * scaled,
                          dp * scaled, dq * scaled, p1 * scaled, q1 * scaled, dp1 * scaled, dq1 * scaled);
      });
  value = std::get<1>(state);
  dvalue = std::get<2>(state);
  if (mode == IncompleteGamma::value) return value * scale;
  V dlog_scale = log(x) - digamma(a);
  if (mode == IncompleteGamma::derivative) return scale * (value * dlog_scale + dvalue);
  return -(dvalue + value * dlog_scale) * x;
}

template <class V>
V igamma_log_scale(V a, V x) {
  return a * log(x) - x - lgamma(a);
}

template <class V>
Condition<V> igamma_underflows(V log_scale) {
  return lt(log_scale, -constant(is_double(log_scale) ? 709.78271289338397 : 88.72283935546875, log_scale));
}

template <class V>
V igamma_derivative(V a, V x, IncompleteGamma mode) {
  V zero = constant(0, x), nan = constant(not_a_number, x);
  auto undefined = logical_or(logical_or(lt(x, zero), le(a, zero)), logical_or(is_nan(a), is_nan(x)));
  auto use_fraction = logical_and(gt(x, constant(1, x)), gt(x, a));
  V log_scale = igamma_log_scale(a, x);
  V scale = exp(log_scale);
  auto at_zero = eq(x, zero);
  auto enabled = logical_not(logical_or(logical_or(at_zero, undefined), igamma_underflows(log_scale)));
  V far = -igammac_fraction(scale, x, a, logical_and(enabled, use_fraction), mode);
  V near = igamma_series(scale, x, a, logical_and(enabled, logical_not(use_fraction)), mode);
  V result = select(at_zero, zero, select(use_fraction, far, near));
  return select(undefined, nan, result);
}

}  // namespace detail

template <class V>
V igamma(V a, Same<V> x) {
  using detail::IncompleteGamma;
  V zero = constant(0, x), one = constant(1, x);
  auto at_zero = eq(x, zero), at_infinity = eq(x, constant(infinity, x));
  auto undefined = logical_or(logical_or(lt(x, zero), lt(a, zero)),
                              logical_or(logical_and(eq(a, zero), at_zero), logical_or(is_nan(a), is_nan(x))));
  auto use_fraction = logical_and(ge(x, one), gt(x, a));
  V log_scale = detail::igamma_log_scale(a, x);
  V scale = exp(log_scale);
  auto enabled = logical_not(
      logical_or(logical_or(at_zero, undefined), logical_or(detail::igamma_underflows(log_scale), at_infinity)));
  V far = one - detail::igammac_fraction(scale, x, a, logical_and(enabled, use_fraction), IncompleteGamma::value);
  V near = detail::igamma_series(scale, x, a, logical_and(enabled, logical_not(use_fraction)), IncompleteGamma::value);
  V result = select(use_fraction, far, near);
  result = select(at_zero, zero, result);
  result = select(at_infinity, one, result);
  return select(undefined, constant(not_a_number, x), result);
}

template <class V>
V igammac(V a, Same<V> x) {
  using detail::IncompleteGamma;
  V zero = constant(0, x), one = constant(1, x);
  auto a_is_zero = eq(a, zero), at_infinity = eq(x, constant(infinity, x));
  auto undefined = logical_or(logical_or(lt(x, zero), lt(a, zero)),
                              logical_or(logical_and(a_is_zero, eq(x, zero)), logical_or(is_nan(a), is_nan(x))));
  auto use_series = logical_or(lt(x, one), lt(x, a));
  V log_scale = detail::igamma_log_scale(a, x);
  V scale = exp(log_scale);
  auto enabled = logical_not(
      logical_or(logical_or(undefined, detail::igamma_underflows(log_scale)), logical_or(at_infinity, a_is_zero)));
  V near = one - detail::igamma_series(scale, x, a, logical_and(enabled, use_series), IncompleteGamma::value);
  V far = detail::igammac_fraction(scale, x, a, logical_and(enabled, logical_not(use_series)), IncompleteGamma::value);
  V result = select(use_series, near, far);
  result = select(logical_or(at_infinity, a_is_zero), zero, result);
  return select(undefined, constant(not_a_number, x), result);
}

template <class V>
V igamma_grad_a(V a, Same<V> x) {
  return detail::igamma_derivative(a, x, detail::IncompleteGamma::derivative);
}

// d sample / d a for a sample x of Gamma(a, 1), by implicit differentiation: -(dP/da) / (dP/dx).
template <class V>
V random_gamma_grad(V a, Same<V> x) {
  return detail::igamma_derivative(a, x, detail::IncompleteGamma::sample_derivative);
}

inline constexpr std::tuple incomplete_gamma_formulas{
    formula<2>("igamma", [](auto a, auto x) { return igamma(a, x); }),
    formula<2>("igammac", [](auto a, auto x) { return igammac(a, x); }),
    formula<2>("igamma_grad_a", [](auto a, auto x) { return igamma_grad_a(a, x); }),
    formula<2>("random_gamma_grad", [](auto a, auto x) { return random_gamma_grad(a, x); })};

}  // namespace capibara::math
