// lgamma and digamma by Lanczos' series (g = 7, nine terms), reflected below one half.
//
// Same series as jax, so poles, infinities and the loss of precision near the zeros at 1 and 2 agree with it.
// Largest difference from jax 0.10.2 (float32, float64), in ULP of max(|result|, 1): lgamma 16, 16; digamma 8, 4.
// From the truth in float64: lgamma 14, digamma 9.
#pragma once

#include "lax/math/formula.h"
#include "lax/math/trigonometric.h"
#include "lax/math/value.h"

namespace capibara::math {

namespace detail {

inline constexpr double lanczos_gamma = 7.0;
inline constexpr double lanczos_base = 0.99999999999980993227684700473478;
inline constexpr double lanczos[] = {676.520368121885098567009190444019, -1259.13921672240287047156078755283,
                                     771.3234287776530788486528258894,   -176.61502916214059906584551354,
                                     12.507343278686904814458936853,     -0.13857109526572011689554707,
                                     9.984369578019570859563e-6,         1.50563273514931155834e-7};

// z >= -1/2 where the series is used, and log(z + 7.5) split so that small z keeps its digits.
template <class V>
struct LanczosArgument {
  V z, t, log_t;
};

template <class V>
LanczosArgument<V> lanczos_argument(V x) {
  V z = select(lt(x, constant(0.5, x)), -x, x - constant(1, x));
  V offset = constant(lanczos_gamma + 0.5, x);
  return {z, z + offset, constant(2.0149030205422647, x) + log1p(z / offset)};
}

}  // namespace detail

template <class V>
V lgamma(V x) {
  auto [z, t, log_t] = detail::lanczos_argument(x);
  V sum = constant(detail::lanczos_base, x);
  double k = 0;
  for (double c : detail::lanczos) sum = sum + constant(c, x) / (z + constant(++k, x));
  V half = constant(0.5, x), one = constant(1, x);
  V value = multiply_add(z + half - t / log_t, log_t, constant(0.91893853320467274178, x)) + log(sum);

  // log(gamma(x)) = log(pi / |sin(pi x)|) - log(gamma(1 - x)), with the fraction folded to [0, 1/2] first.
  V size = abs(x);
  V result = rarely(lt(x, half), value, [&] {
    V fraction = size - floor(size);
    V folded = select(gt(fraction, half), one - fraction, fraction);
    V log_sine = log(sin(constant(pi, x) * folded));
    return select(is_finite(log_sine), constant(1.1447298858494001741, x) - log_sine - value, -log_sine);
  });
  return select(eq(size, constant(infinity, x)), constant(infinity, x), result);
}

template <class V>
V digamma(V x) {
  auto [z, t, log_t] = detail::lanczos_argument(x);
  V above = constant(0, x), below = constant(detail::lanczos_base, x);
  double k = 0;
  for (double c : detail::lanczos) {
    V shifted = z + constant(++k, x);
    above = above - constant(c, x) / (shifted * shifted);
    below = below + constant(c, x) / shifted;
  }
  V half = constant(0.5, x), zero = constant(0, x);
  V value = log_t + above / below - constant(detail::lanczos_gamma, x) / t;

  // Shifting by the nearest integer before the cotangent keeps its digits for large negative x.
  V result = rarely(lt(x, half), value, [&] {
    V angle = constant(pi, x) * (x + abs(floor(x + half)));
    return value - constant(pi, x) * cos(angle) / sin(angle);
  });
  auto pole = logical_and(le(x, zero), eq(x, floor(x)));
  return select(pole, constant(not_a_number, x), result);
}

inline constexpr std::tuple gamma_formulas{formula<1>("lgamma", [](auto x) { return lgamma(x); }),
                                           formula<1>("digamma", [](auto x) { return digamma(x); })};

// Hurwitz' zeta function by Euler and Maclaurin's summation, and polygamma from it.
//
// Largest difference from jax 0.10.2 in ULP (float32, float64): zeta 1, 0; polygamma 0, 4. From the truth in float64
// the relative error is 3e-14, but 4e-11 at x = 30, q = 100: ten explicit terms are too few there, in jax as here.

// sum over k >= 0 of (q + k)^-x, for x > 1.
template <class V>
V zeta(V x, Same<V> q) {
  V zero = constant(0, x), one = constant(1, x), nan = constant(not_a_number, x), inf = constant(infinity, x);
  V power = pow(q, -x), base = q;
  V sum = power;
  for (int k = 1; k <= 9; ++k) {
    base = base + one;
    sum = sum + pow(base, -x);
  }
  base = base + one;
  power = pow(base, -x);

  // B_2k / (2k)!, k = 12 down to 1; each step multiplies by two factors of the rising factorial of x.
  const double bernoulli[] = {-1.3954464685812522e-19,
                              5.5090028283602295e-18,
                              -2.1748686985580617e-16,
                              8.5860620562778452e-15,
                              -3.3896802963225832e-13,
                              1.3382536530684679e-11,
                              -5.2841901386874932e-10,
                              2.08767569878681e-08,
                              -8.2671957671957675e-07,
                              3.3068783068783071e-05,
                              -1.0 / 720,
                              1.0 / 12};
  V inverse_square = one / (base * base);
  V tail = zero;
  int k = 22;
  for (double b : bernoulli) {
    tail = tail + constant(b, x);
    if (k > 0) tail = (x + constant(k, x)) * (x + constant(k - 1, x)) * (inverse_square * tail);
    k -= 2;
  }
  V result = sum + power * base / (x - one) + power * (constant(0.5, x) + x / base * tail);

  result = select(lt(x, one), nan, result);
  auto q_not_positive = le(q, zero);
  result = select(logical_and(q_not_positive, ne(x, floor(x))), nan, result);
  auto even = logical_and(eq(x, floor(x)), eq(rem(x, constant(2, x)), zero));
  result = select(logical_and(q_not_positive, eq(q, floor(q))), select(even, inf, nan), result);
  return select(eq(x, one), inf, result);
}

// The n-th derivative of digamma: (-1)^(n+1) n! zeta(n + 1, x).
template <class V>
V polygamma(V n, Same<V> x) {
  V zero = constant(0, n), one = constant(1, n), two = constant(2, n);
  V order = n + one;
  V sign = two * rem(n, two) - one;
  V higher = sign * exp(lgamma(order)) * zeta(order, x);
  V result = select(eq(n, zero), digamma(x), higher);
  return select(logical_or(ne(n, floor(n)), lt(n, zero)), constant(not_a_number, n), result);
}

inline constexpr std::tuple zeta_formulas{formula<2>("polygamma", [](auto n, auto x) { return polygamma(n, x); }),
                                          formula<2>("zeta", [](auto x, auto q) { return zeta(x, q); })};

}  // namespace capibara::math
