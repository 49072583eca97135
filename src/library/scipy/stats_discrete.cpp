// jax.scipy.stats: the distributions over integers.
#include <capibara/scipy/special.h>
#include <capibara/scipy/stats.h>

#include "library/nn/terms.h"

namespace capibara::jax::scipy::stats {

using namespace terms;
using special::xlog1py;
using special::xlogy;

namespace bernoulli {

namespace {

Array invalid_probability(const Array& p) {
  Array is_nan = isnan(p), either = is_nan | (p < constant(p, 0));
  return either | (p > constant(p, 1));
}

}  // namespace

Array logpmf(const Array& k, const Array& p, const Location& options) {
  const Arrays in = promote_args_inexact("bernoulli.logpmf", {k, p, options.loc});
  const Array x = in[0] - in[2], zero = constant(x, 0), one = constant(x, 1);
  Array is_less = x < zero, either = is_less | (x > one), xlogy_x = xlogy(x, in[1]), difference = one - x;
  return where(either, -infinity, xlogy_x + xlog1py(difference, -in[1]));
}

Array pmf(const Array& k, const Array& p, const Location& options) { return lax::exp(logpmf(k, p, options)); }

Array cdf(const Array& k, const Array& p) {
  const Arrays in = promote_args_inexact("bernoulli.cdf", {k, p});
  const Array &x = in[0], zero = constant(x, 0), one = constant(x, 1);
  const Array is_less = x < zero, is_less_x = x < one;
  const Array value = where(is_less, zero, where(is_less_x, one - in[1], one));
  Array is_nan = isnan(x);
  return where(is_nan | invalid_probability(in[1]), not_a_number, value);
}

Array ppf(const Array& q, const Array& p) {
  const Arrays in = promote_args_inexact("bernoulli.ppf", {q, p});
  const Array &x = in[0], zero = constant(x, 0), one = constant(x, 1);
  const Array invalid_probability_x = invalid_probability(x);
  const Array invalid = invalid_probability_x | invalid_probability(in[1]);
  return where(invalid, not_a_number, where(x <= one - in[1], zero, one));
}

}  // namespace bernoulli

namespace betabinom {

Array logpmf(const Array& k, const Array& n, const Array& a, const Array& b, const Location& options) {
  const Arrays in = promote_args_inexact("betabinom.logpmf", {k, n, a, b, options.loc});
  const Array &trials = in[1], &p = in[2], &q = in[3], &loc = in[4];
  const Array y = lax::floor(in[0]) - loc, zero = constant(y, 0), one = constant(y, 1);
  const Array log_plus_one = lax::log1p(trials), sum = (trials - y) + one;
  const Array ways = -(log_plus_one + special::betaln(sum, y + one));
  Array sum_y = y + p, betaln_special = special::betaln(sum_y, (trials - y) + q);
  Array value = ways + (betaln_special - special::betaln(p, q));
  Array is_equal = y == zero;
  value = where(is_equal & (trials == zero), 0.0, value);
  Array is_less = y < -loc, either = is_less | (y > trials);
  value = where(either | (y + p <= zero), -infinity, value);
  Array is_less_trials = trials < zero, first_either = is_less_trials | (p <= zero);
  return where(first_either | (q <= zero), not_a_number, value);
}

Array pmf(const Array& k, const Array& n, const Array& a, const Array& b, const Location& options) {
  return lax::exp(logpmf(k, n, a, b, options));
}

}  // namespace betabinom

namespace binom {

Array logpmf(const Array& k, const Array& n, const Array& p, const Location& options) {
  const Arrays in = promote_args_inexact("binom.logpmf", {k, n, p, options.loc});
  const Array &trials = in[1], &loc = in[3], y = in[0] - loc, zero = constant(y, 0);
  const Array log_gamma = lax::lgamma(trials + 1), log_gamma_lax = lax::lgamma(y + 1);
  const Array ways = log_gamma - (log_gamma_lax + lax::lgamma(trials - y + 1));
  const Array xlogy_y = xlogy(y, in[2]), difference = trials - y;
  const Array chances = xlogy_y + xlog1py(difference, -in[2]);
  const Array is_equal = y == zero, both = is_equal & (trials == zero);
  const Array certain = both | (chances == zero);
  Array is_at_least = in[0] >= loc, both_in = is_at_least & (in[0] < loc + trials + 1);
  return where(both_in, where(certain, 0.0, ways + chances), -infinity);
}

Array pmf(const Array& k, const Array& n, const Array& p, const Location& options) {
  return lax::exp(logpmf(k, n, p, options));
}

}  // namespace binom

namespace geom {

Array logpmf(const Array& k, const Array& p, const Location& options) {
  const Arrays in = promote_args_inexact("geom.logpmf", {k, p, options.loc});
  const Array x = in[0] - in[2];
  Array is_at_most = x <= constant(x, 0), difference = x - constant(x, 1), xlog1py_x = xlog1py(difference, -in[1]);
  return where(is_at_most, -infinity, xlog1py_x + lax::log(in[1]));
}

Array pmf(const Array& k, const Array& p, const Location& options) { return lax::exp(logpmf(k, p, options)); }

}  // namespace geom

namespace nbinom {

Array logpmf(const Array& k, const Array& n, const Array& p, const Location& options) {
  const Arrays in = promote_args_inexact("nbinom.logpmf", {k, n, p, options.loc});
  const Array y = in[0] - in[3], one = constant(y, 1);
  const Array log_gamma = lax::lgamma(y + in[1]), difference = log_gamma - lax::lgamma(in[1]);
  const Array ways = difference - lax::lgamma(y + one);
  const Array xlogy_in = xlogy(in[1], in[2]);
  const Array chances = xlogy_in + xlogy(y, one - in[2]);
  Array is_less = in[0] < in[3];
  return where(is_less, -infinity, ways + chances);
}

Array pmf(const Array& k, const Array& n, const Array& p, const Location& options) {
  return lax::exp(logpmf(k, n, p, options));
}

}  // namespace nbinom

namespace poisson {

namespace {

// The entropy summed over k < terms and below a bound that grows with mu; mu is one-dimensional.
Array summed_entropy(const Array& mu, int64_t terms, const Array& bound) {
  const Array k = lax::reshape(lax::iota(mu.dtype(), terms), {terms, 1});
  const Array row = lax::reshape(mu, {1, mu.shape(0)});
  const Array counted = k < lax::reshape(lax::ceil(bound), {1, mu.shape(0)});
  return sum(special::entr(where(counted, pmf(k, row), 0.0)), {.axis = 0});
}

}  // namespace

Array logpmf(const Array& k, const Array& mu, const Location& options) {
  const Arrays in = promote_args_inexact("poisson.logpmf", {k, mu, options.loc});
  const Array x = in[0] - in[2];
  const Array not_whole = in[0] != lax::round(in[0], lax::RoundingMethod::to_nearest_even);
  Array either = (x < constant(x, 0)) | not_whole, xlogy_x = xlogy(x, in[1]);
  return where(either, -infinity, xlogy_x - lax::lgamma(x + 1) - in[1]);
}

Array pmf(const Array& k, const Array& mu, const Location& options) { return lax::exp(logpmf(k, mu, options)); }

Array cdf(const Array& k, const Array& mu, const Location& options) {
  const Arrays in = promote_args_inexact("poisson.cdf", {k, mu, options.loc});
  const Array x = in[0] - in[2], zero = constant(x, 0);
  Array is_less = x < zero;
  return where(is_less, zero, special::gammaincc(lax::floor(1 + x), in[1]));
}

// Sums for small and moderate mu, Stirling's expansion beyond 100.
Array entropy(const Array& mu, const Location& options) {
  const Arrays in = promote_dtypes_inexact({mu, options.loc});
  const Shape shape = lax::broadcast_shapes({in[0].shape(), in[1].shape()});
  const Array rate = lax::reshape(in[0], {in[0].size()});
  const Array small = summed_entropy(rate, 35, rate + 20);
  const Array moderate = summed_entropy(rate, 250, rate + 10 * lax::sqrt(rate) + 20);
  const Array product = 0.5 * lax::log(2 * pi * std::numbers::e * rate);
  const Array large = product - 1.0 / (12 * rate);
  const Array is_less = rate < 10;
  const Array value = where(is_less, small, where(rate < 100, moderate, large));
  Array is_equal = rate == 0;
  return broadcast_to("poisson.entropy", lax::reshape(where(is_equal, lax::zeros_like(rate), value), in[0].shape()),
                      shape);
}

}  // namespace poisson

}  // namespace capibara::jax::scipy::stats
