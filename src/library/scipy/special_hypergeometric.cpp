// jax.scipy.special: the hypergeometric functions 1F1 and 2F1 by series and transformations.
#include <capibara/control.h>
#include <capibara/custom_derivatives.h>
#include <capibara/scipy/special.h>

#include <cmath>

#include "library/nn/terms.h"

namespace capibara::jax::scipy::special {

using namespace terms;

namespace {

using Term = std::function<Array(const Array& k)>;

// sum of weight(k) term(k), where term(k + 1) = term(k) ratio(k); starts at k = 1 with `first` and ends when terms are
// negligible, after at most 250.
Array sum_series(const Array& start, const Array& first, const Term& ratio, const Term& weight) {
  const Array eps = constant(first, finfo(first.dtype()).eps), one = constant(first, 1);
  using State = std::tuple<Array, Array, Array>;  // sum, k, term
  const State end = lax::while_loop(
      [&](const State& s) {
        const auto& [total, k, term] = s;
        Array is_less = k < constant(first, 250), magnitude = lax::abs(term);
        return is_less & (magnitude / lax::abs(total) > eps);
      },
      [&](const State& s) {
        const auto& [total, k, term] = s;
        const Array counted = weight ? term * weight(k) : term;
        Array sum_total = total + counted, sum_k = k + one;
        return State(sum_total, sum_k, term * ratio(k));
      },
      State(start, one, first));
  return std::get<0>(end);
}

// ---- 1F1 ------------------------------------------------------------------------------------------------------------

Array kummer_series(const Array& a, const Array& b, const Array& x, double start, const Term& weight = {}) {
  const Term ratio = [&](const Array& k) {
    Array sum = a + k, product = sum / (b + k) * x;
    return product / (k + 1);
  };
  Array constant_x = constant(x, start);
  return sum_series(constant_x, a / b * x, ratio, weight);
}

Array kummer_asymptotic(const Array& a, const Array& b, const Array& x) {
  const Term ratio = [&](const Array& k) {
    Array sum = b - a + k, product = sum * (1 - a + k);
    return product / (k + 1) / x;
  };
  const Array constant_x = constant(x, 1), difference = b - a;
  const Array series = sum_series(constant_x, difference * (1 - a) / x, ratio, {});
  Array gamma_b = gamma(b), quotient = gamma_b / gamma(a), product_b = quotient * lax::exp(x);
  return product_b * lax::pow(x, a - b) * series;
}

Array kummer(const Array& a, const Array& b, const Array& x) {
  const Array value = lax::cond(
      lax::abs(x) < 100, [](const Array& p, const Array& q, const Array& y) { return kummer_series(p, q, y, 1); },
      kummer_asymptotic, a, b, x);
  const Array numerator_zero = a == 0;
  Array constant_x = constant(x, 1), is_equal = a == b, exponential = lax::exp(x), is_equal_b = b == 0;
  return where(numerator_zero, constant_x,
               where(is_equal, exponential, where(is_equal_b, constant(x, infinity), value)));
}

// ---- 2F1 ------------------------------------------------------------------------------------------------------------

struct Parameters {
  Array a, b, c, x;
};

Array near_integer(const Array& x, const Array& eps) {
  return lax::abs(x - lax::round(x, lax::RoundingMethod::to_nearest_even)) < eps;
}

// The polynomial to which the series reduces if a or b is a negative integer.
Array gauss_polynomial(const Parameters& p, const Array& eps) {
  const Array one = constant(p.x, 1);
  const Array is_equal = p.c % 1 == 0, both = is_equal & (p.c <= 0);
  const Array c_stops_first = both & (p.c > p.b);
  const Array is_less = p.b < p.a, both_p = is_less & near_integer(p.b, eps);
  const Array swap = both_p & ~c_stops_first;
  const Array degree = lax::abs(where(swap, p.b, p.a)), other = where(swap, p.a, p.b);
  using State = std::tuple<Array, Array, Array>;  // i, sum, term
  const State end = lax::while_loop([&](const State& s) { return lax::lt(std::get<0>(s), degree + one); },
                                    [&](const State& s) {
                                      const auto& [i, total, term] = s;
                                      const Array negated = -(degree - i + 1), quotient = negated / (p.c + i - 1);
                                      const Array next = term * (quotient * (other + i - 1) / i * p.x);
                                      Array sum_i = i + one;
                                      return State(sum_i, total + next, next);
                                    },
                                    State(one, one, one));
  return std::get<1>(end);
}

Array gauss_series(const Parameters& p) {
  const Array eps = constant(p.x, finfo(p.x.dtype()).eps), one = constant(p.x, 1);
  using State = std::tuple<Array, Array, Array>;  // sum, k, term
  const State end = lax::while_loop(
      [&](const State& s) {
        const auto& [total, k, term] = s;
        Array is_less = k < constant(p.x, 250), magnitude = lax::abs(term);
        return is_less & (magnitude > eps * lax::abs(total));
      },
      [&](const State& s) {
        const auto& [total, k, term] = s;
        const Array difference = p.a + k - 1, product = difference * (p.b + k - 1);
        const Array ratio = product / (p.c + k - 1) / k * p.x;
        Array sum_total = total + term, sum_k = k + one;
        return State(sum_total, sum_k, term * ratio);
      },
      State(constant(p.x, 0), one, one));
  return std::get<0>(end);
}

// The expansion around x = 1 for integer c - a - b (Abramowitz and Stegun 15.3.10 to 15.3.12).
Array gauss_around_one(const Parameters& p) {
  const Array &a = p.a, &b = p.b, &c = p.c, &x = p.x;
  const Array one = constant(x, 1), zero = constant(x, 0), eps = constant(x, finfo(x.dtype()).eps);
  const Array d = c - a - b, s = 1 - x, rounded = lax::round(d, lax::RoundingMethod::to_nearest_even);
  const Array positive = rounded >= 0;
  const Array e = where(positive, d, -d), d1 = where(positive, d, zero), d2 = where(positive, zero, d);
  const Array steps = where(positive, rounded, -rounded);
  const Array logarithm = lax::log(s);
  auto psi = [&](const Array& t) {
    Array digamma_value = lax::digamma(1.0 + t), sum_lax = digamma_value + lax::digamma(1.0 + t + e);
    Array difference = sum_lax - lax::digamma(a + t + d1);
    return difference - lax::digamma(b + t + d1) - logarithm;
  };
  const Array psi_zero = psi(zero);
  const Array first = psi_zero / gamma(e + 1.0);
  using State = std::tuple<Array, Array, Array, Array>;  // t, factor, last term, sum
  Array sum_a = a + d1, product = sum_a * (b + d1) * s;
  const State end = lax::while_loop(
      [&](const State& state) {
        const auto& [t, factor, term, total] = state;
        Array is_less = t < constant(x, 250), magnitude = lax::abs(term);
        return is_less & (magnitude >= eps * lax::abs(total));
      },
      [&](const State& state) {
        const auto& [t, factor, last, total] = state;
        const Array term = factor * psi(t);
        const Array product_s = s * (a + t + d1), product_factor = factor * (product_s / (t + 1.0));
        const Array sum_b = b + t + d1;
        const Array next = product_factor * (sum_b / (t + 1.0 + e));
        Array sum_t = t + one;
        return State(sum_t, next, term, total + term);
      },
      State(one, product / gamma(e + 2.0), first, first));
  const Array infinite_sum = std::get<3>(end);

  using Partial = std::tuple<Array, Array, Array>;  // t, term, sum
  const Partial partial =
      lax::while_loop([&](const Partial& state) { return lax::lt(std::get<0>(state) + one, steps); },
                      [&](const Partial& state) {
                        const auto& [t, term, total] = state;
                        const Array first_product = s * (a + t + d2), second_product = first_product * (b + t + d2);
                        const Array product_term = term * (second_product / (1.0 - e + t));
                        const Array next = product_term / (t + one);
                        Array first_sum = t + one;
                        return Partial(first_sum, next, total + next);
                      },
                      Partial(zero, one, one));
  const Array numerator = gamma(c);
  const Array product_e = gamma(e) * numerator, gamma_value = gamma(a + d1);
  const Array finite_sum = std::get<2>(partial) * (product_e / (gamma_value * gamma(b + d1)));
  const Array first_gamma = gamma(a + d2);
  const Array scaled = infinite_sum * (numerator / (first_gamma * gamma(b + d2)));
  Array is_different = steps % 2 != 0;
  const Array signed_sum = where(is_different, -scaled, scaled), power = lax::pow(s, rounded);
  const Array is_greater = rounded > 0, sum_signed_sum = signed_sum * power + finite_sum;
  const Array general = where(is_greater, sum_signed_sum, signed_sum + finite_sum * power);
  Array is_equal = rounded == 0, product_infinite_sum = infinite_sum * numerator, gamma_a = gamma(a);
  return where(is_equal, product_infinite_sum / (gamma_a * gamma(b)), general);
}

Array gauss_sum(const Parameters& p, const Array& eps) {
  const Array d = p.c - p.a - p.b;
  const Array is_at_most = p.a <= 0, both = is_at_most & near_integer(p.a, eps), is_at_most_p = p.b <= 0;
  const Array ends = both | (is_at_most_p & near_integer(p.b, eps));
  const Array is_greater = p.x > 0.9, both_p = is_greater & ~ends;
  const Array around_one = both_p & near_integer(d, eps);
  Array gauss_polynomial_p = gauss_polynomial(p, eps), gauss_around_one_p = gauss_around_one(p);
  return where(ends, gauss_polynomial_p, where(around_one, gauss_around_one_p, gauss_series(p)));
}

Array gauss(const Parameters& p) {
  const auto& [a, b, c, x] = p;
  const Array eps = constant(x, finfo(x.dtype()).eps * 50);
  const Array d = c - a - b, s = 1 - x, ca = c - a, cb = c - b, unbounded = constant(x, infinity);
  const Array power = lax::pow(s, d);
  const Array euler = power * gauss_sum({ca, cb, c, x}, eps);
  const Array gamma_c = gamma(c), product = gamma_c * gamma(d), gamma_ca = gamma(ca);
  const Array at_one = product / (gamma_ca * gamma(cb));
  // The first condition that holds applies.
  Array is_equal = x == 1, value = where(is_equal, at_one, gauss_sum(p, eps));
  value = where(x > 1, unbounded, value);
  Array is_less = x < 1, both = is_less & (a == c);
  value = where(both, lax::pow(s, -b), value);
  Array is_less_x = x < 1, first_both = is_less_x & (b == c);
  value = where(first_both, lax::pow(s, -a), value);
  Array is_at_most = d <= 0;
  value = where(is_at_most & (x == 1), unbounded, value);
  Array is_at_most_d = d <= -1, inverse = ~near_integer(d, eps);
  value = where(is_at_most_d & ~(inverse & (s < 0)), euler, value);
  Array is_equal_c = c == 0, is_less_c = c < 0;
  value = where(is_equal_c | (is_less_c & (c % 1 == 0)), unbounded, value);
  Array is_equal_x = x == 0, is_equal_a = a == 0, either = is_equal_a | (b == 0);
  Array first_either = is_equal_x | (either & (c != 0));
  return where(first_either, constant(x, 1), value);
}

// The derivatives in a, b and c: the series with each term times a difference of digammas.
Array gauss_derivative(const Parameters& p, const Term& weight) {
  const Term ratio = [&](const Array& k) {
    Array sum = p.a + k, product = sum * (p.b + k), quotient = product / (p.c + k);
    return quotient / (k + 1) * p.x;
  };
  Array constant_p = constant(p.x, 0);
  return sum_series(constant_p, p.a * p.b / p.c * p.x, ratio, weight);
}

Array rising_weight(const Array& parameter, const Array& k) {
  Array digamma_value = lax::digamma(parameter + k);
  return digamma_value - lax::digamma(parameter);
}

Arrays strong(const Arrays& operands) {
  Arrays result;
  for (const Array& x : operands) result.push_back(lax::convert_element_type(x, x.dtype(), false));
  return result;
}

}  // namespace

Array hyp1f1(const Array& a, const Array& b, const Array& x) {
  using A = const Array&;
  static const auto function = [] {
    auto f = custom_jvp(
        [](Array p, Array q, Array y) {
          return map_scalars("hyp1f1", {p, q, y}, [](const Arrays& v) { return kummer(v[0], v[1], v[2]); });
        },
        "hyp1f1");
    f.defjvps(
        [](A tangent, A, A p, A q, A y) {
          return tangent * map_scalars("hyp1f1", {p, q, y}, [](const Arrays& v) {
                   return kummer_series(v[0], v[1], v[2], 0, [&](A k) { return rising_weight(v[0], k); });
                 });
        },
        [](A tangent, A, A p, A q, A y) {
          return tangent * map_scalars("hyp1f1", {p, q, y}, [](const Arrays& v) {
                   return kummer_series(v[0], v[1], v[2], 0, [&](A k) { return -rising_weight(v[1], k); });
                 });
        },
        [](A tangent, A, A p, A q, A y) {
          Array quotient = p / q, sum = p + 1;
          return quotient * hyp1f1(sum, q + 1, y) * tangent;
        });
    return f;
  }();
  const Arrays in = strong(promote_args_inexact("hyp1f1", {a, b, x}));
  require_real("hyp1f1", in[2]);
  return function(in[0], in[1], in[2]);
}

Array hyp2f1(const Array& a, const Array& b, const Array& c, const Array& x) {
  using A = const Array&;
  static const auto derivative = [](A p, A q, A r, A y, int which, double sign) {
    return map_scalars("hyp2f1", {p, q, r, y}, [=](const Arrays& v) {
      const Array& parameter = v[static_cast<std::size_t>(which)];
      return gauss_derivative({v[0], v[1], v[2], v[3]}, [&](A k) { return sign * rising_weight(parameter, k); });
    });
  };
  static const auto function = [] {
    auto f = custom_jvp(
        [](Array p, Array q, Array r, Array y) {
          return map_scalars("hyp2f1", {p, q, r, y}, [](const Arrays& v) { return gauss({v[0], v[1], v[2], v[3]}); });
        },
        "hyp2f1");
    f.defjvps([](A tangent, A, A p, A q, A r, A y) { return derivative(p, q, r, y, 0, 1) * tangent; },
              [](A tangent, A, A p, A q, A r, A y) { return derivative(p, q, r, y, 1, 1) * tangent; },
              [](A tangent, A, A p, A q, A r, A y) { return derivative(p, q, r, y, 2, -1) * tangent; },
              [](A tangent, A, A p, A q, A r, A y) {
                Array quotient = p * q / r, sum = p + 1, sum_q = q + 1;
                return quotient * hyp2f1(sum, sum_q, r + 1, y) * tangent;
              });
    return f;
  }();
  const Arrays in = strong(promote_args_inexact("hyp2f1", {a, b, c, x}));
  require_real("hyp2f1", in[3]);
  return function(in[0], in[1], in[2], in[3]);
}

}  // namespace capibara::jax::scipy::special
