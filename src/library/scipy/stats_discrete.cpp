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

Array invalid_probability(const Array& p) { return isnan(p) | (p < constant(p, 0)) | (p > constant(p, 1)); }

}  // namespace

Array logpmf(const Array& k, const Array& p, const Location& options) {
  const Arrays in = promote_args_inexact("bernoulli.logpmf", {k, p, options.loc});
  const Array x = in[0] - in[2], zero = constant(x, 0), one = constant(x, 1);
  return where((x < zero) | (x > one), -infinity, xlogy(x, in[1]) + xlog1py(one - x, -in[1]));
}

Array pmf(const Array& k, const Array& p, const Location& options) { return lax::exp(logpmf(k, p, options)); }

Array cdf(const Array& k, const Array& p) {
  const Arrays in = promote_args_inexact("bernoulli.cdf", {k, p});
  const Array &x = in[0], zero = constant(x, 0), one = constant(x, 1);
  const Array value = where(x < zero, zero, where(x < one, one - in[1], one));
  return where(isnan(x) | invalid_probability(in[1]), not_a_number, value);
}

Array ppf(const Array& q, const Array& p) {
  const Arrays in = promote_args_inexact("bernoulli.ppf", {q, p});
  const Array &x = in[0], zero = constant(x, 0), one = constant(x, 1);
  const Array invalid = invalid_probability(x) | invalid_probability(in[1]);
  return where(invalid, not_a_number, where(x <= one - in[1], zero, one));
}

}  // namespace bernoulli

namespace betabinom {

Array logpmf(const Array& k, const Array& n, const Array& a, const Array& b, const Location& options) {
  const Arrays in = promote_args_inexact("betabinom.logpmf", {k, n, a, b, options.loc});
  const Array &trials = in[1], &p = in[2], &q = in[3], &loc = in[4];
  const Array y = lax::floor(in[0]) - loc, zero = constant(y, 0), one = constant(y, 1);
  const Array ways = -(lax::log1p(trials) + special::betaln((trials - y) + one, y + one));
  Array value = ways + (special::betaln(y + p, (trials - y) + q) - special::betaln(p, q));
  value = where((y == zero) & (trials == zero), 0.0, value);
  value = where((y < -loc) | (y > trials) | (y + p <= zero), -infinity, value);
  return where((trials < zero) | (p <= zero) | (q <= zero), not_a_number, value);
}

Array pmf(const Array& k, const Array& n, const Array& a, const Array& b, const Location& options) {
  return lax::exp(logpmf(k, n, a, b, options));
}

}  // namespace betabinom

namespace binom {

Array logpmf(const Array& k, const Array& n, const Array& p, const Location& options) {
  const Arrays in = promote_args_inexact("binom.logpmf", {k, n, p, options.loc});
  const Array &trials = in[1], &loc = in[3], y = in[0] - loc, zero = constant(y, 0);
  const Array ways = lax::lgamma(trials + 1) - (lax::lgamma(y + 1) + lax::lgamma(trials - y + 1));
  const Array chances = xlogy(y, in[2]) + xlog1py(trials - y, -in[2]);
  const Array certain = ((y == zero) & (trials == zero)) | (chances == zero);
  return where((in[0] >= loc) & (in[0] < loc + trials + 1), where(certain, 0.0, ways + chances), -infinity);
}

Array pmf(const Array& k, const Array& n, const Array& p, const Location& options) {
  return lax::exp(logpmf(k, n, p, options));
}

}  // namespace binom

namespace geom {

Array logpmf(const Array& k, const Array& p, const Location& options) {
  const Arrays in = promote_args_inexact("geom.logpmf", {k, p, options.loc});
  const Array x = in[0] - in[2];
  return where(x <= constant(x, 0), -infinity, xlog1py(x - constant(x, 1), -in[1]) + lax::log(in[1]));
}

Array pmf(const Array& k, const Array& p, const Location& options) { return lax::exp(logpmf(k, p, options)); }

}  // namespace geom

namespace nbinom {

Array logpmf(const Array& k, const Array& n, const Array& p, const Location& options) {
  const Arrays in = promote_args_inexact("nbinom.logpmf", {k, n, p, options.loc});
  const Array y = in[0] - in[3], one = constant(y, 1);
  const Array ways = lax::lgamma(y + in[1]) - lax::lgamma(in[1]) - lax::lgamma(y + one);
  const Array chances = xlogy(in[1], in[2]) + xlogy(y, one - in[2]);
  return where(in[0] < in[3], -infinity, ways + chances);
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
  return where((x < constant(x, 0)) | not_whole, -infinity, xlogy(x, in[1]) - lax::lgamma(x + 1) - in[1]);
}

Array pmf(const Array& k, const Array& mu, const Location& options) { return lax::exp(logpmf(k, mu, options)); }

Array cdf(const Array& k, const Array& mu, const Location& options) {
  const Arrays in = promote_args_inexact("poisson.cdf", {k, mu, options.loc});
  const Array x = in[0] - in[2], zero = constant(x, 0);
  return where(x < zero, zero, special::gammaincc(lax::floor(1 + x), in[1]));
}

// Sums for small and moderate mu, Stirling's expansion beyond 100.
Array entropy(const Array& mu, const Location& options) {
  const Arrays in = promote_dtypes_inexact({mu, options.loc});
  const Shape shape = lax::broadcast_shapes({in[0].shape(), in[1].shape()});
  const Array rate = lax::reshape(in[0], {in[0].size()});
  const Array small = summed_entropy(rate, 35, rate + 20);
  const Array moderate = summed_entropy(rate, 250, rate + 10 * lax::sqrt(rate) + 20);
  const Array large = 0.5 * lax::log(2 * pi * std::numbers::e * rate) - 1.0 / (12 * rate);
  const Array value = where(rate < 10, small, where(rate < 100, moderate, large));
  return broadcast_to("poisson.entropy", lax::reshape(where(rate == 0, lax::zeros_like(rate), value), in[0].shape()),
                      shape);
}

}  // namespace poisson

}  // namespace capibara::jax::scipy::stats
