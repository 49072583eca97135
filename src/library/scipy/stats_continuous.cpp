// jax.scipy.stats: univariate continuous distributions.
#include <capibara/nn/activations.h>
#include <capibara/scipy/special.h>
#include <capibara/scipy/stats.h>

#include <cmath>

#include "library/nn/terms.h"

namespace capibara::jax::scipy::stats {

using namespace terms;

namespace {

// The arguments of a density, at one dtype: the variable, the shape parameters, loc and scale.
struct Point {
  Array x, a, b, loc, scale;
  Array standard() const { return (x - loc) / scale; }
  Array one() const { return constant(x, 1); }
  Array zero() const { return constant(x, 0); }
};

Point point(const char* name, const Array& x, const LocationScale& options) {
  const Arrays in = promote_args_inexact(name, {x, options.loc, options.scale});
  return {in[0], {}, {}, in[1], in[2]};
}

Point point(const char* name, const Array& x, const Array& a, const LocationScale& options) {
  const Arrays in = promote_args_inexact(name, {x, a, options.loc, options.scale});
  return {in[0], in[1], {}, in[2], in[3]};
}

Point point(const char* name, const Array& x, const Array& a, const Array& b, const LocationScale& options) {
  const Arrays in = promote_args_inexact(name, {x, a, b, options.loc, options.scale});
  return {in[0], in[1], in[2], in[3], in[4]};
}

LocationScale mirrored(const Point& p) { return {.loc = -p.loc, .scale = p.scale}; }

Array outside_unit_interval(const Array& q) {
  Array is_nan = isnan(q), either = is_nan | (q < 0);
  return either | (q > 1);
}
Array within_unit_interval(const Array& q) {
  Array is_greater = q > constant(q, 0);
  return is_greater & (q < constant(q, 1));
}

// NaN where the scale is not positive.
Array where_scaled(const Point& p, const Array& value) {
  return where(p.scale > constant(p.scale, 0), value, not_a_number);
}

Array unit_clamp(const Point& p) {
  Array zero_p = p.zero(), standard_p = p.standard();
  return lax::clamp(zero_p, standard_p, p.one());
}

}  // namespace

namespace beta {

Array logpdf(const Array& x, const Array& a, const Array& b, const LocationScale& options) {
  const Point p = point("beta.logpdf", x, a, b, options);
  const Array y = p.standard();
  const Array xlogy_p = special::xlogy(p.a - p.one(), y), difference = p.b - p.one();
  const Array kernel = xlogy_p + special::xlog1py(difference, -y);
  const Array sum = -special::betaln(p.a, p.b) + kernel;
  const Array density = sum - lax::log(p.scale);
  const Array is_greater = p.x > p.loc + p.scale;
  const Array inside = where(is_greater | (p.x < p.loc), -infinity, density);
  const Array is_at_most = p.a <= p.zero(), either = is_at_most | (p.b <= p.zero());
  const Array invalid = either | (p.scale <= p.zero());
  return where(invalid, not_a_number, inside);
}

Array pdf(const Array& x, const Array& a, const Array& b, const LocationScale& options) {
  return lax::exp(logpdf(x, a, b, options));
}

Array cdf(const Array& x, const Array& a, const Array& b, const LocationScale& options) {
  const Point p = point("beta.cdf", x, a, b, options);
  return special::betainc(p.a, p.b, unit_clamp(p));
}

Array logcdf(const Array& x, const Array& a, const Array& b, const LocationScale& options) {
  return lax::log(cdf(x, a, b, options));
}

Array sf(const Array& x, const Array& a, const Array& b, const LocationScale& options) {
  const Point p = point("beta.sf", x, a, b, options);
  return special::betainc(p.b, p.a, 1 - unit_clamp(p));
}

Array logsf(const Array& x, const Array& a, const Array& b, const LocationScale& options) {
  return lax::log(sf(x, a, b, options));
}

}  // namespace beta

namespace cauchy {

Array logpdf(const Array& x, const LocationScale& options) {
  const Point p = point("cauchy.logpdf", x, options);
  Array logarithm = lax::log(constant(p.x, pi) * p.scale), standard_p = p.standard();
  return -(logarithm + lax::log1p(standard_p * p.standard()));
}

Array pdf(const Array& x, const LocationScale& options) { return lax::exp(logpdf(x, options)); }

Array cdf(const Array& x, const LocationScale& options) {
  const Point p = point("cauchy.cdf", x, options);
  Array constant_p = constant(p.x, 0.5), one_p = p.one(), quotient = one_p / constant(p.x, pi);
  return constant_p + quotient * lax::atan(p.standard());
}

Array logcdf(const Array& x, const LocationScale& options) { return lax::log(cdf(x, options)); }

Array sf(const Array& x, const LocationScale& options) {
  const Point p = point("cauchy.sf", x, options);
  Array negated = -p.x;
  return cdf(negated, mirrored(p));
}

Array logsf(const Array& x, const LocationScale& options) {
  const Point p = point("cauchy.logsf", x, options);
  Array negated = -p.x;
  return logcdf(negated, mirrored(p));
}

Array isf(const Array& q, const LocationScale& options) {
  const Point p = point("cauchy.isf", q, options);
  Array constant_p = constant(p.x, pi / 2);
  return lax::tan(constant_p - constant(p.x, pi) * p.x) * p.scale + p.loc;
}

Array ppf(const Array& q, const LocationScale& options) {
  const Point p = point("cauchy.ppf", q, options);
  Array product = constant(p.x, pi) * p.x;
  return lax::tan(product - constant(p.x, pi / 2)) * p.scale + p.loc;
}

}  // namespace cauchy

namespace chi2 {

namespace {

// Half of the standardised variable, clamped to be non-negative: the argument of the incomplete gamma functions.
Array half_positive(const Point& p) {
  Array zero_p = p.zero(), difference = p.x - p.loc, quotient = difference / (p.scale * constant(p.x, 2));
  return lax::clamp(zero_p, quotient, constant(p.x, infinity));
}

}  // namespace

Array logpdf(const Array& x, const Array& df, const LocationScale& options) {
  const Point p = point("chi2.logpdf", x, df, options);
  const Array two = constant(p.x, 2), y = p.standard(), half_df = p.a / two;
  const Array difference = half_df - p.one(), product = difference * lax::log(y);
  const Array kernel = product - y / two;
  const Array log_gamma = lax::lgamma(half_df);
  const Array normalizer = -(log_gamma + lax::log(two) * p.a / two);
  Array is_less = p.x < p.loc;
  return where(is_less, -infinity, (normalizer - lax::log(p.scale)) + kernel);
}

Array pdf(const Array& x, const Array& df, const LocationScale& options) { return lax::exp(logpdf(x, df, options)); }

Array cdf(const Array& x, const Array& df, const LocationScale& options) {
  const Point p = point("chi2.cdf", x, df, options);
  Array quotient = p.a / constant(p.x, 2);
  return special::gammainc(quotient, half_positive(p));
}

Array logcdf(const Array& x, const Array& df, const LocationScale& options) { return lax::log(cdf(x, df, options)); }

Array sf(const Array& x, const Array& df, const LocationScale& options) {
  const Point p = point("chi2.sf", x, df, options);
  Array quotient = p.a / constant(p.x, 2);
  return special::gammaincc(quotient, half_positive(p));
}

Array logsf(const Array& x, const Array& df, const LocationScale& options) { return lax::log(sf(x, df, options)); }

}  // namespace chi2

namespace expon {

Array logpdf(const Array& x, const LocationScale& options) {
  const Point p = point("expon.logpdf", x, options);
  Array is_less = p.x < p.loc, standard_p = p.standard();
  return where(is_less, -infinity, -(standard_p + lax::log(p.scale)));
}

Array pdf(const Array& x, const LocationScale& options) { return lax::exp(logpdf(x, options)); }

Array cdf(const Array& x, const LocationScale& options) {
  const Point p = point("expon.cdf", x, options);
  const Array minus = (p.loc - p.x) / p.scale;
  Array is_less = p.x < p.loc, zeros = lax::zeros_like(minus);
  return where(is_less, zeros, -lax::expm1(minus));
}

Array logcdf(const Array& x, const LocationScale& options) { return lax::log1p(-sf(x, options)); }

Array logsf(const Array& x, const LocationScale& options) {
  const Point p = point("expon.logsf", x, options);
  const Array minus = (p.loc - p.x) / p.scale;
  Array is_less = p.x < p.loc;
  return where(is_less, lax::zeros_like(minus), minus);
}

Array sf(const Array& x, const LocationScale& options) { return lax::exp(logsf(x, options)); }

Array ppf(const Array& q, const LocationScale& options) {
  const Point p = point("expon.ppf", q, options);
  Array outside_unit_interval_p = outside_unit_interval(p.x);
  return where(outside_unit_interval_p, not_a_number, p.loc - p.scale * lax::log1p(-p.x));
}

}  // namespace expon

namespace gamma {

Array logpdf(const Array& x, const Array& a, const LocationScale& options) {
  const Point p = point("gamma.logpdf", x, a, options);
  const Array inside = p.x >= p.loc, standard_p = p.standard(), y = where(inside, standard_p, p.one());
  const Array difference = special::xlogy(p.a - p.one(), y) - y, log_gamma = lax::lgamma(p.a);
  const Array density = difference - (log_gamma + lax::log(p.scale));
  return where(inside, density, -infinity);
}

Array pdf(const Array& x, const Array& a, const LocationScale& options) { return lax::exp(logpdf(x, a, options)); }

Array cdf(const Array& x, const Array& a, const LocationScale& options) {
  const Point p = point("gamma.cdf", x, a, options);
  Array zero_p = p.zero(), standard_p = p.standard();
  return special::gammainc(p.a, lax::clamp(zero_p, standard_p, constant(p.x, infinity)));
}

Array logcdf(const Array& x, const Array& a, const LocationScale& options) { return lax::log(cdf(x, a, options)); }

Array sf(const Array& x, const Array& a, const LocationScale& options) {
  const Point p = point("gamma.sf", x, a, options);
  const Array y = p.standard();
  Array is_less = y < p.zero();
  return where(is_less, 1, special::gammaincc(p.a, y));
}

Array logsf(const Array& x, const Array& a, const LocationScale& options) { return lax::log(sf(x, a, options)); }

}  // namespace gamma

namespace gennorm {

Array logpdf(const Array& x, const Array& beta) {
  const Arrays in = promote_args_inexact("gennorm.logpdf", {x, beta});
  Array logarithm = lax::log(0.5 * in[1]), difference = logarithm - lax::lgamma(1 / in[1]);
  return difference - lax::pow(lax::abs(in[0]), in[1]);
}

Array pdf(const Array& x, const Array& beta) { return lax::exp(logpdf(x, beta)); }

Array cdf(const Array& x, const Array& beta) {
  const Arrays in = promote_args_inexact("gennorm.cdf", {x, beta});
  const Array quotient = 1 / in[1];
  const Array mass = special::gammainc(quotient, lax::pow(lax::abs(in[0]), in[1]));
  return 0.5 * (1 + lax::sign(in[0]) * mass);
}

}  // namespace gennorm

namespace gumbel_l {

Array logpdf(const Array& x, const LocationScale& options) {
  const Point p = point("gumbel_l.logpdf", x, options);
  const Array z = p.standard();
  Array xlogy_special = special::xlogy(-1, p.scale);
  return where_scaled(p, xlogy_special + (z - lax::exp(z)));
}

Array pdf(const Array& x, const LocationScale& options) { return lax::exp(logpdf(x, options)); }

Array logcdf(const Array& x, const LocationScale& options) {
  const Point p = point("gumbel_l.logcdf", x, options);
  return where_scaled(p, lax::log(-lax::expm1(-lax::exp(p.standard()))));
}

Array cdf(const Array& x, const LocationScale& options) { return lax::exp(logcdf(x, options)); }

Array logsf(const Array& x, const LocationScale& options) {
  const Point p = point("gumbel_l.logsf", x, options);
  return where_scaled(p, -lax::exp(p.standard()));
}

Array sf(const Array& x, const LocationScale& options) { return lax::exp(logsf(x, options)); }

Array ppf(const Array& q, const LocationScale& options) {
  const Point p = point("gumbel_l.ppf", q, options);
  const Array quantile = p.loc + p.scale * lax::log(special::xlog1py(-1, -p.x));
  return where(within_unit_interval(p.x), quantile, not_a_number);
}

}  // namespace gumbel_l

namespace gumbel_r {

Array logpdf(const Array& x, const LocationScale& options) {
  const Point p = point("gumbel_r.logpdf", x, options);
  const Array z = p.standard();
  Array xlogy_special = special::xlogy(-1, p.scale);
  return where_scaled(p, xlogy_special + -(z + lax::exp(-z)));
}

Array pdf(const Array& x, const LocationScale& options) { return lax::exp(logpdf(x, options)); }

Array logcdf(const Array& x, const LocationScale& options) {
  const Point p = point("gumbel_r.logcdf", x, options);
  return where_scaled(p, -lax::exp(-p.standard()));
}

Array cdf(const Array& x, const LocationScale& options) { return lax::exp(logcdf(x, options)); }

Array sf(const Array& x, const LocationScale& options) {
  const Point p = point("gumbel_r.sf", x, options);
  Array one_p = p.one();
  return where_scaled(p, one_p - lax::exp(-lax::exp((p.loc - p.x) / p.scale)));
}

Array logsf(const Array& x, const LocationScale& options) {
  const Point p = point("gumbel_r.logsf", x, options);
  return where_scaled(p, nn::log1mexp(lax::exp((p.loc - p.x) / p.scale)));
}

Array ppf(const Array& q, const LocationScale& options) {
  const Point p = point("gumbel_r.ppf", q, options);
  const Array quantile = p.loc - p.scale * lax::log(special::xlogy(-1, p.x));
  return where(within_unit_interval(p.x), quantile, not_a_number);
}

}  // namespace gumbel_r

namespace laplace {

Array logpdf(const Array& x, const LocationScale& options) {
  const Point p = point("laplace.logpdf", x, options);
  Array quotient = lax::abs(p.x - p.loc) / p.scale;
  return -(quotient + lax::log(constant(p.x, 2) * p.scale));
}

Array pdf(const Array& x, const LocationScale& options) { return lax::exp(logpdf(x, options)); }

Array cdf(const Array& x, const LocationScale& options) {
  const Point p = point("laplace.cdf", x, options);
  const Array half = constant(p.x, 0.5), z = p.standard();
  Array is_at_most = z <= p.zero(), product = half * lax::exp(z), one_p = p.one();
  return lax::select(is_at_most, product, one_p - half * lax::exp(-z));
}

}  // namespace laplace

namespace logistic {

Array logpdf(const Array& x, const LocationScale& options) {
  const Point p = point("logistic.logpdf", x, options);
  const Array two = constant(p.x, 2), half = p.standard() / two;
  Array negated = -two, product = negated * logaddexp(half, -half);
  return product - lax::log(p.scale);
}

Array pdf(const Array& x, const LocationScale& options) { return lax::exp(logpdf(x, options)); }

Array cdf(const Array& x, const LocationScale& options) {
  return special::expit(point("logistic.cdf", x, options).standard());
}

Array sf(const Array& x, const LocationScale& options) {
  return special::expit(-point("logistic.sf", x, options).standard());
}

Array isf(const Array& x, const LocationScale& options) {
  const Point p = point("logistic.isf", x, options);
  return -special::logit(p.x) * p.scale + p.loc;
}

Array ppf(const Array& x, const LocationScale& options) {
  const Point p = point("logistic.ppf", x, options);
  return special::logit(p.x) * p.scale + p.loc;
}

}  // namespace logistic

namespace norm {

Array logpdf(const Array& x, const LocationScale& options) {
  const Point p = point("norm.logpdf", x, options);
  const Array variance = lax::square(p.scale);
  const Array quadratic = lax::square(p.x - p.loc) / variance;
  Array sum = lax::log(constant(p.x, 2 * pi) * variance) + quadratic;
  return sum / constant(p.x, -2);
}

Array pdf(const Array& x, const LocationScale& options) { return lax::exp(logpdf(x, options)); }

Array cdf(const Array& x, const LocationScale& options) {
  return special::ndtr(point("norm.cdf", x, options).standard());
}

Array logcdf(const Array& x, const LocationScale& options) {
  return special::log_ndtr(point("norm.logcdf", x, options).standard());
}

Array sf(const Array& x, const LocationScale& options) {
  const Point p = point("norm.sf", x, options);
  Array negated = -p.x;
  return cdf(negated, mirrored(p));
}

Array logsf(const Array& x, const LocationScale& options) {
  const Point p = point("norm.logsf", x, options);
  Array negated = -p.x;
  return logcdf(negated, mirrored(p));
}

Array ppf(const Array& q, const LocationScale& options) {
  return lax::convert_element_type(special::ndtri(q) * options.scale + options.loc, default_float(), false);
}

Array isf(const Array& q, const LocationScale& options) { return ppf(constant(q, 1) - q, options); }

}  // namespace norm

namespace pareto {

Array logpdf(const Array& x, const Array& b, const LocationScale& options) {
  const Point p = point("pareto.logpdf", x, b, options);
  const Array logarithm = lax::log(p.scale / p.a), sum = p.a + p.one();
  const Array density = -(logarithm + sum * lax::log(p.standard()));
  return where(p.x < p.loc + p.scale, -infinity, density);
}

Array pdf(const Array& x, const Array& b, const LocationScale& options) { return lax::exp(logpdf(x, b, options)); }

Array cdf(const Array& x, const Array& b, const LocationScale& options) {
  const Point p = point("pareto.cdf", x, b, options);
  Array is_less = p.x < p.loc + p.scale, zero_p = p.zero(), one_p = p.one(), standard_p = p.standard();
  return where(is_less, zero_p, one_p - lax::pow(standard_p, -p.a));
}

Array logcdf(const Array& x, const Array& b, const LocationScale& options) {
  const Point p = point("pareto.logcdf", x, b, options);
  Array is_less = p.x < p.loc + p.scale, standard_p = p.standard();
  return where(is_less, -infinity, lax::log1p(-lax::pow(standard_p, -p.a)));
}

Array logsf(const Array& x, const Array& b, const LocationScale& options) {
  const Point p = point("pareto.logsf", x, b, options);
  Array is_less = p.x < p.loc + p.scale, zero_p = p.zero();
  return where(is_less, zero_p, -(p.a * lax::log(p.standard())));
}

Array sf(const Array& x, const Array& b, const LocationScale& options) { return lax::exp(logsf(x, b, options)); }

Array ppf(const Array& q, const Array& b, const LocationScale& options) {
  const Point p = point("pareto.ppf", q, b, options);
  const Array difference = p.one() - p.x;
  const Array quantile = p.loc + p.scale * lax::pow(difference, -(p.one() / p.a));
  return where(outside_unit_interval(p.x), not_a_number, quantile);
}

}  // namespace pareto

namespace t {

Array logpdf(const Array& x, const Array& df, const LocationScale& options) {
  const Point p = point("t.logpdf", x, df, options);
  const Array two = constant(p.x, 2), y = p.standard(), half_df = p.a / two, above = half_df + constant(p.x, 0.5);
  const Array product = p.scale * p.scale;
  const Array spread = lax::log(product * constant(p.x, pi) * p.a) / two;
  const Array sum = lax::lgamma(half_df) + spread;
  const Array normalizer = sum - lax::lgamma(above);
  return -(normalizer + above * lax::log1p(y * y / p.a));
}

Array pdf(const Array& x, const Array& df, const LocationScale& options) { return lax::exp(logpdf(x, df, options)); }

}  // namespace t

namespace truncnorm {

namespace {

Array log_of_difference(const Array& x, const Array& y) {
  const Array factors = lax::stack({lax::full_like(x, 1), lax::full_like(y, -1)}, 0);
  return special::logsumexp(lax::stack({x, y}, 0), {.axis = 0, .b = factors});
}

// The logarithm of the normal mass between a and b, computed in the tail without cancellation.
Array log_mass(const Array& a_in, const Array& b_in) {
  const Arrays both = broadcast_arrays("truncnorm", {a_in, b_in});
  const Array &a = both[0], &b = both[1];
  const Array left = b <= 0, right = a > 0;
  const Array low = where(right, -b, a), high = where(right, -a, b);
  const Array log_ndtr_high = special::log_ndtr(high);
  const Array tail = log_of_difference(log_ndtr_high, special::log_ndtr(low));
  const Array negated = -special::ndtr(a);
  const Array central = lax::log1p(negated - special::ndtr(-b));
  return where(~(left | right), central, tail);
}

}  // namespace

Array logpdf(const Array& x, const Array& a, const Array& b, const LocationScale& options) {
  const Point p = point("truncnorm.logpdf", x, a, b, options);
  const Array y = p.standard();
  const Array logpdf_p = norm::logpdf(p.x, {.loc = p.loc, .scale = p.scale});
  const Array density = logpdf_p - log_mass(p.a, p.b);
  Array is_at_least = p.a >= p.b, is_less = y < p.a;
  return where(is_at_least, not_a_number, where(is_less | (y > p.b), -infinity, density));
}

Array pdf(const Array& x, const Array& a, const Array& b, const LocationScale& options) {
  return lax::exp(logpdf(x, a, b, options));
}

Array logcdf(const Array& x, const Array& a, const Array& b, const LocationScale& options) {
  const Point p = point("truncnorm.logcdf", x, a, b, options);
  const Arrays in = broadcast_arrays("truncnorm.logcdf", {p.x, p.a, p.b});
  const Array y = (in[0] - p.loc) / p.scale, whole = log_mass(in[1], in[2]);
  const Array below = log_mass(in[1], y) - whole, above = log_mass(y, in[2]) - whole;
  // Near one, from the mass above.
  Array is_greater = below > -0.1, log_plus_one = lax::log1p(-lax::exp(above));
  Array value = where(is_greater, log_plus_one, where(y > in[1], below, 0));
  Array is_at_least = y >= in[2];
  value = where(is_at_least, 0, where(y <= in[1], -infinity, value));
  return where(in[1] >= in[2], not_a_number, value);
}

Array cdf(const Array& x, const Array& a, const Array& b, const LocationScale& options) {
  return lax::exp(logcdf(x, a, b, options));
}

Array logsf(const Array& x, const Array& a, const Array& b, const LocationScale& options) {
  const Point p = point("truncnorm.logsf", x, a, b, options);
  Array negated = -p.x, first_negated = -p.b, second_negated = -p.a;
  return logcdf(negated, first_negated, second_negated, mirrored(p));
}

Array sf(const Array& x, const Array& a, const Array& b, const LocationScale& options) {
  return lax::exp(logsf(x, a, b, options));
}

}  // namespace truncnorm

namespace uniform {

Array logpdf(const Array& x, const LocationScale& options) {
  const Point p = point("uniform.logpdf", x, options);
  Array is_greater = p.x > p.loc + p.scale, either = is_greater | (p.x < p.loc);
  return where(either, -infinity, -lax::log(p.scale));
}

Array pdf(const Array& x, const LocationScale& options) { return lax::exp(logpdf(x, options)); }

Array cdf(const Array& x, const LocationScale& options) {
  const Point p = point("uniform.cdf", x, options);
  const Array zero = typed_constant(p.x, 0), one = typed_constant(p.x, 1);
  const Array is_at_least = p.x >= p.loc;
  const Array inside = is_at_least & (p.x <= p.loc + p.scale);
  Array is_less = p.x<p.loc, is_greater = p.x> p.loc + p.scale;
  return where(is_less, zero, where(is_greater, one, where(inside, p.standard(), zero)));
}

Array ppf(const Array& q, const LocationScale& options) {
  const Point p = point("uniform.ppf", q, options);
  Array outside_unit_interval_p = outside_unit_interval(p.x);
  return where(outside_unit_interval_p, not_a_number, p.loc + p.scale * p.x);
}

}  // namespace uniform

namespace vonmises {

Array logpdf(const Array& x, const Array& kappa) {
  const Arrays in = promote_args_inexact("vonmises.logpdf", {x, kappa});
  const Array product = in[1] * (lax::cos(in[0]) - 1);
  const Array density = product - lax::log(2 * pi * lax::bessel_i0e(in[1]));
  return where(in[1] > constant(in[1], 0), density, not_a_number);
}

Array pdf(const Array& x, const Array& kappa) { return lax::exp(logpdf(x, kappa)); }

}  // namespace vonmises

namespace wrapcauchy {

Array logpdf(const Array& x, const Array& c) {
  const Arrays in = promote_args_inexact("wrapcauchy.logpdf", {x, c});
  const Array &y = in[0], &shape = in[1];
  const Array difference = lax::log(1 - shape * shape) - std::log(2 * pi), sum = 1 + shape * shape;
  const Array product = 2 * shape;
  const Array density = difference - lax::log(sum - product * lax::cos(y));
  const Array is_at_least = y >= constant(y, 0);
  const Array on_circle = is_at_least & (y <= constant(y, 2 * pi));
  const Array is_valid = within_unit_interval(shape);
  return where(is_valid, where(on_circle, density, -infinity), not_a_number);
}

Array pdf(const Array& x, const Array& c) { return lax::exp(logpdf(x, c)); }

}  // namespace wrapcauchy

}  // namespace capibara::jax::scipy::stats
