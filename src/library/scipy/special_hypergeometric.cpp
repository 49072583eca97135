// jax.scipy.special: the hypergeometric functions 1F1 and 2F1 by their series and transformations.
#include <capibara/control.h>
#include <capibara/custom_derivatives.h>
#include <capibara/scipy/special.h>

#include <cmath>

#include "library/nn/terms.h"

namespace capibara::jax::scipy::special {

using namespace terms;

namespace {

using Term = std::function<Array(const Array& k)>;

// sum of weight(k) term(k), where term(k + 1) = term(k) ratio(k); starts at k = 1 with `first` and ends where a term no
// longer counts, at 250 at the latest.
Array sum_series(const Array& start, const Array& first, const Term& ratio, const Term& weight) {
  const Array eps = constant(first, finfo(first.dtype()).eps), one = constant(first, 1);
  using State = std::tuple<Array, Array, Array>;  // sum, k, term
  const State end = lax::while_loop(
      [&](const State& s) {
        const auto& [total, k, term] = s;
        return (k < constant(first, 250)) & (lax::abs(term) / lax::abs(total) > eps);
      },
      [&](const State& s) {
        const auto& [total, k, term] = s;
        const Array counted = weight ? term * weight(k) : term;
        return State(total + counted, k + one, term * ratio(k));
      },
      State(start, one, first));
  return std::get<0>(end);
}

// ---- 1F1 ------------------------------------------------------------------------------------------------------------

Array kummer_series(const Array& a, const Array& b, const Array& x, double start, const Term& weight = {}) {
  const Term ratio = [&](const Array& k) { return (a + k) / (b + k) * x / (k + 1); };
  return sum_series(constant(x, start), a / b * x, ratio, weight);
}

Array kummer_asymptotic(const Array& a, const Array& b, const Array& x) {
  const Term ratio = [&](const Array& k) { return (b - a + k) * (1 - a + k) / (k + 1) / x; };
  const Array series = sum_series(constant(x, 1), (b - a) * (1 - a) / x, ratio, {});
  return gamma(b) / gamma(a) * lax::exp(x) * lax::pow(x, a - b) * series;
}

Array kummer(const Array& a, const Array& b, const Array& x) {
  const Array value = lax::cond(
      lax::abs(x) < 100,
      [](const Array& p, const Array& q, const Array& y) { return kummer_series(p, q, y, 1); }, kummer_asymptotic, a, b,
      x);
  const Array numerator_zero = a == 0;
  return where(numerator_zero, constant(x, 1),
               where(a == b, lax::exp(x), where(b == 0, constant(x, infinity), value)));
}

// ---- 2F1 ------------------------------------------------------------------------------------------------------------

struct Parameters {
  Array a, b, c, x;
};

Array near_integer(const Array& x, const Array& eps) { return lax::abs(x - lax::round(x, lax::RoundingMethod::to_nearest_even)) < eps; }

// The polynomial that the series is where a or b is a negative integer.
Array gauss_polynomial(const Parameters& p, const Array& eps) {
  const Array one = constant(p.x, 1);
  const Array c_stops_first = (p.c % 1 == 0) & (p.c <= 0) & (p.c > p.b);
  const Array swap = (p.b < p.a) & near_integer(p.b, eps) & ~c_stops_first;
  const Array degree = lax::abs(where(swap, p.b, p.a)), other = where(swap, p.a, p.b);
  using State = std::tuple<Array, Array, Array>;  // i, sum, term
  const State end = lax::while_loop(
      [&](const State& s) { return lax::lt(std::get<0>(s), degree + one); },
      [&](const State& s) {
        const auto& [i, total, term] = s;
        const Array next = term * (-(degree - i + 1) / (p.c + i - 1) * (other + i - 1) / i * p.x);
        return State(i + one, total + next, next);
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
        return (k < constant(p.x, 250)) & (lax::abs(term) > eps * lax::abs(total));
      },
      [&](const State& s) {
        const auto& [total, k, term] = s;
        const Array ratio = (p.a + k - 1) * (p.b + k - 1) / (p.c + k - 1) / k * p.x;
        return State(total + term, k + one, term * ratio);
      },
      State(constant(p.x, 0), one, one));
  return std::get<0>(end);
}

// The expansion around x = 1 for integer c - a - b (Abramowitz and Stegun 15.3.10 to 15.3.12).
Array gauss_around_one(const Parameters& p) {
  const auto& [a, b, c, x] = p;
  const Array one = constant(x, 1), zero = constant(x, 0), eps = constant(x, finfo(x.dtype()).eps);
  const Array d = c - a - b, s = 1 - x, rounded = lax::round(d, lax::RoundingMethod::to_nearest_even);
  const Array positive = rounded >= 0;
  const Array e = where(positive, d, -d), d1 = where(positive, d, zero), d2 = where(positive, zero, d);
  const Array steps = where(positive, rounded, -rounded);
  const Array logarithm = lax::log(s);
  auto psi = [&](const Array& t) {
    return lax::digamma(1.0 + t) + lax::digamma(1.0 + t + e) - lax::digamma(a + t + d1) - lax::digamma(b + t + d1) -
           logarithm;
  };
  const Array first = psi(zero) / gamma(e + 1.0);
  using State = std::tuple<Array, Array, Array, Array>;  // t, factor, last term, sum
  const State end = lax::while_loop(
      [&](const State& state) {
        const auto& [t, factor, term, total] = state;
        return (t < constant(x, 250)) & (lax::abs(term) >= eps * lax::abs(total));
      },
      [&](const State& state) {
        const auto& [t, factor, last, total] = state;
        const Array term = factor * psi(t);
        const Array next = factor * (s * (a + t + d1) / (t + 1.0)) * ((b + t + d1) / (t + 1.0 + e));
        return State(t + one, next, term, total + term);
      },
      State(one, (a + d1) * (b + d1) * s / gamma(e + 2.0), first, first));
  const Array infinite_sum = std::get<3>(end);

  using Partial = std::tuple<Array, Array, Array>;  // t, term, sum
  const Partial partial = lax::while_loop(
      [&](const Partial& state) { return lax::lt(std::get<0>(state) + one, steps); },
      [&](const Partial& state) {
        const auto& [t, term, total] = state;
        const Array next = term * (s * (a + t + d2) * (b + t + d2) / (1.0 - e + t)) / (t + one);
        return Partial(t + one, next, total + next);
      },
      Partial(zero, one, one));
  const Array numerator = gamma(c);
  const Array finite_sum = std::get<2>(partial) * (gamma(e) * numerator / (gamma(a + d1) * gamma(b + d1)));
  const Array scaled = infinite_sum * (numerator / (gamma(a + d2) * gamma(b + d2)));
  const Array signed_sum = where(steps % 2 != 0, -scaled, scaled), power = lax::pow(s, rounded);
  const Array general = where(rounded > 0, signed_sum * power + finite_sum, signed_sum + finite_sum * power);
  return where(rounded == 0, infinite_sum * numerator / (gamma(a) * gamma(b)), general);
}

Array gauss_sum(const Parameters& p, const Array& eps) {
  const Array d = p.c - p.a - p.b;
  const Array ends = ((p.a <= 0) & near_integer(p.a, eps)) | ((p.b <= 0) & near_integer(p.b, eps));
  const Array around_one = (p.x > 0.9) & ~ends & near_integer(d, eps);
  return where(ends, gauss_polynomial(p, eps), where(around_one, gauss_around_one(p), gauss_series(p)));
}

Array gauss(const Parameters& p) {
  const auto& [a, b, c, x] = p;
  const Array eps = constant(x, finfo(x.dtype()).eps * 50);
  const Array d = c - a - b, s = 1 - x, ca = c - a, cb = c - b, unbounded = constant(x, infinity);
  const Array euler = lax::pow(s, d) * gauss_sum({ca, cb, c, x}, eps);
  const Array at_one = gamma(c) * gamma(d) / (gamma(ca) * gamma(cb));
  // The first condition that holds decides.
  Array value = where(x == 1, at_one, gauss_sum(p, eps));
  value = where(x > 1, unbounded, value);
  value = where((x < 1) & (a == c), lax::pow(s, -b), value);
  value = where((x < 1) & (b == c), lax::pow(s, -a), value);
  value = where((d <= 0) & (x == 1), unbounded, value);
  value = where((d <= -1) & ~(~near_integer(d, eps) & (s < 0)), euler, value);
  value = where((c == 0) | ((c < 0) & (c % 1 == 0)), unbounded, value);
  return where((x == 0) | (((a == 0) | (b == 0)) & (c != 0)), constant(x, 1), value);
}

// The derivatives by a, b and c: the series with each term times a difference of digammas.
Array gauss_derivative(const Parameters& p, const Term& weight) {
  const Term ratio = [&](const Array& k) { return (p.a + k) * (p.b + k) / (p.c + k) / (k + 1) * p.x; };
  return sum_series(constant(p.x, 0), p.a * p.b / p.c * p.x, ratio, weight);
}

Array rising_weight(const Array& parameter, const Array& k) {
  return lax::digamma(parameter + k) - lax::digamma(parameter);
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
        [](A tangent, A, A p, A q, A y) { return p / q * hyp1f1(p + 1, q + 1, y) * tangent; });
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
                return p * q / r * hyp2f1(p + 1, q + 1, r + 1, y) * tangent;
              });
    return f;
  }();
  const Arrays in = strong(promote_args_inexact("hyp2f1", {a, b, c, x}));
  require_real("hyp2f1", in[3]);
  return function(in[0], in[1], in[2], in[3]);
}

}  // namespace capibara::jax::scipy::special
