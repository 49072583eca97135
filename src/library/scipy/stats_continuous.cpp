// jax.scipy.stats: the continuous distributions of one variable.
#include <capibara/nn/activations.h>
#include <capibara/scipy/special.h>
#include <capibara/scipy/stats.h>

#include <cmath>

#include "library/nn/terms.h"

namespace capibara::jax::scipy::stats {

using namespace terms;

namespace {

// What a density is a function of, at one dtype: the variable, the shape parameters, loc and scale.
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

Array outside_unit_interval(const Array& q) { return isnan(q) | (q < 0) | (q > 1); }
Array within_unit_interval(const Array& q) { return (q > constant(q, 0)) & (q < constant(q, 1)); }

// NaN where the scale is not positive.
Array where_scaled(const Point& p, const Array& value) { return where(p.scale > constant(p.scale, 0), value, not_a_number); }

Array unit_clamp(const Point& p) { return lax::clamp(p.zero(), p.standard(), p.one()); }

}  // namespace

namespace beta {

Array logpdf(const Array& x, const Array& a, const Array& b, const LocationScale& options) {
  const Point p = point("beta.logpdf", x, a, b, options);
  const Array y = p.standard();
  const Array kernel = special::xlogy(p.a - p.one(), y) + special::xlog1py(p.b - p.one(), -y);
  const Array density = (-special::betaln(p.a, p.b) + kernel) - lax::log(p.scale);
  const Array inside = where((p.x > p.loc + p.scale) | (p.x < p.loc), -infinity, density);
  const Array invalid = (p.a <= p.zero()) | (p.b <= p.zero()) | (p.scale <= p.zero());
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
  return -(lax::log(constant(p.x, pi) * p.scale) + lax::log1p(p.standard() * p.standard()));
}

Array pdf(const Array& x, const LocationScale& options) { return lax::exp(logpdf(x, options)); }

Array cdf(const Array& x, const LocationScale& options) {
  const Point p = point("cauchy.cdf", x, options);
  return constant(p.x, 0.5) + p.one() / constant(p.x, pi) * lax::atan(p.standard());
}

Array logcdf(const Array& x, const LocationScale& options) { return lax::log(cdf(x, options)); }

Array sf(const Array& x, const LocationScale& options) {
  const Point p = point("cauchy.sf", x, options);
  return cdf(-p.x, mirrored(p));
}

Array logsf(const Array& x, const LocationScale& options) {
  const Point p = point("cauchy.logsf", x, options);
  return logcdf(-p.x, mirrored(p));
}

Array isf(const Array& q, const LocationScale& options) {
  const Point p = point("cauchy.isf", q, options);
  return lax::tan(constant(p.x, pi / 2) - constant(p.x, pi) * p.x) * p.scale + p.loc;
}

Array ppf(const Array& q, const LocationScale& options) {
  const Point p = point("cauchy.ppf", q, options);
  return lax::tan(constant(p.x, pi) * p.x - constant(p.x, pi / 2)) * p.scale + p.loc;
}

}  // namespace cauchy

namespace chi2 {

namespace {

// Half of the standardised variable, from 0 on: what the incomplete gamma functions take.
Array half_positive(const Point& p) {
  return lax::clamp(p.zero(), (p.x - p.loc) / (p.scale * constant(p.x, 2)), constant(p.x, infinity));
}

}  // namespace

Array logpdf(const Array& x, const Array& df, const LocationScale& options) {
  const Point p = point("chi2.logpdf", x, df, options);
  const Array two = constant(p.x, 2), y = p.standard(), half_df = p.a / two;
  const Array kernel = (half_df - p.one()) * lax::log(y) - y / two;
  const Array normalizer = -(lax::lgamma(half_df) + lax::log(two) * p.a / two);
  return where(p.x < p.loc, -infinity, (normalizer - lax::log(p.scale)) + kernel);
}

Array pdf(const Array& x, const Array& df, const LocationScale& options) { return lax::exp(logpdf(x, df, options)); }

Array cdf(const Array& x, const Array& df, const LocationScale& options) {
  const Point p = point("chi2.cdf", x, df, options);
  return special::gammainc(p.a / constant(p.x, 2), half_positive(p));
}

Array logcdf(const Array& x, const Array& df, const LocationScale& options) { return lax::log(cdf(x, df, options)); }

Array sf(const Array& x, const Array& df, const LocationScale& options) {
  const Point p = point("chi2.sf", x, df, options);
  return special::gammaincc(p.a / constant(p.x, 2), half_positive(p));
}

Array logsf(const Array& x, const Array& df, const LocationScale& options) { return lax::log(sf(x, df, options)); }

}  // namespace chi2

namespace expon {

Array logpdf(const Array& x, const LocationScale& options) {
  const Point p = point("expon.logpdf", x, options);
  return where(p.x < p.loc, -infinity, -(p.standard() + lax::log(p.scale)));
}

Array pdf(const Array& x, const LocationScale& options) { return lax::exp(logpdf(x, options)); }

Array cdf(const Array& x, const LocationScale& options) {
  const Point p = point("expon.cdf", x, options);
  const Array minus = (p.loc - p.x) / p.scale;
  return where(p.x < p.loc, lax::zeros_like(minus), -lax::expm1(minus));
}

Array logcdf(const Array& x, const LocationScale& options) { return lax::log1p(-sf(x, options)); }

Array logsf(const Array& x, const LocationScale& options) {
  const Point p = point("expon.logsf", x, options);
  const Array minus = (p.loc - p.x) / p.scale;
  return where(p.x < p.loc, lax::zeros_like(minus), minus);
}

Array sf(const Array& x, const LocationScale& options) { return lax::exp(logsf(x, options)); }

Array ppf(const Array& q, const LocationScale& options) {
  const Point p = point("expon.ppf", q, options);
  return where(outside_unit_interval(p.x), not_a_number, p.loc - p.scale * lax::log1p(-p.x));
}

}  // namespace expon

namespace gamma {

Array logpdf(const Array& x, const Array& a, const LocationScale& options) {
  const Point p = point("gamma.logpdf", x, a, options);
  const Array inside = p.x >= p.loc, y = where(inside, p.standard(), p.one());
  const Array density = (special::xlogy(p.a - p.one(), y) - y) - (lax::lgamma(p.a) + lax::log(p.scale));
  return where(inside, density, -infinity);
}

Array pdf(const Array& x, const Array& a, const LocationScale& options) { return lax::exp(logpdf(x, a, options)); }

Array cdf(const Array& x, const Array& a, const LocationScale& options) {
  const Point p = point("gamma.cdf", x, a, options);
  return special::gammainc(p.a, lax::clamp(p.zero(), p.standard(), constant(p.x, infinity)));
}

Array logcdf(const Array& x, const Array& a, const LocationScale& options) { return lax::log(cdf(x, a, options)); }

Array sf(const Array& x, const Array& a, const LocationScale& options) {
  const Point p = point("gamma.sf", x, a, options);
  const Array y = p.standard();
  return where(y < p.zero(), 1, special::gammaincc(p.a, y));
}

Array logsf(const Array& x, const Array& a, const LocationScale& options) { return lax::log(sf(x, a, options)); }

}  // namespace gamma

namespace gennorm {

Array logpdf(const Array& x, const Array& beta) {
  const Arrays in = promote_args_inexact("gennorm.logpdf", {x, beta});
  return lax::log(0.5 * in[1]) - lax::lgamma(1 / in[1]) - lax::pow(lax::abs(in[0]), in[1]);
}

Array pdf(const Array& x, const Array& beta) { return lax::exp(logpdf(x, beta)); }

Array cdf(const Array& x, const Array& beta) {
  const Arrays in = promote_args_inexact("gennorm.cdf", {x, beta});
  const Array mass = special::gammainc(1 / in[1], lax::pow(lax::abs(in[0]), in[1]));
  return 0.5 * (1 + lax::sign(in[0]) * mass);
}

}  // namespace gennorm

namespace gumbel_l {

Array logpdf(const Array& x, const LocationScale& options) {
  const Point p = point("gumbel_l.logpdf", x, options);
  const Array z = p.standard();
  return where_scaled(p, special::xlogy(-1, p.scale) + (z - lax::exp(z)));
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
  return where_scaled(p, special::xlogy(-1, p.scale) + -(z + lax::exp(-z)));
}

Array pdf(const Array& x, const LocationScale& options) { return lax::exp(logpdf(x, options)); }

Array logcdf(const Array& x, const LocationScale& options) {
  const Point p = point("gumbel_r.logcdf", x, options);
  return where_scaled(p, -lax::exp(-p.standard()));
}

Array cdf(const Array& x, const LocationScale& options) { return lax::exp(logcdf(x, options)); }

Array sf(const Array& x, const LocationScale& options) {
  const Point p = point("gumbel_r.sf", x, options);
  return where_scaled(p, p.one() - lax::exp(-lax::exp((p.loc - p.x) / p.scale)));
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
  return -(lax::abs(p.x - p.loc) / p.scale + lax::log(constant(p.x, 2) * p.scale));
}

Array pdf(const Array& x, const LocationScale& options) { return lax::exp(logpdf(x, options)); }

Array cdf(const Array& x, const LocationScale& options) {
  const Point p = point("laplace.cdf", x, options);
  const Array half = constant(p.x, 0.5), z = p.standard();
  return lax::select(z <= p.zero(), half * lax::exp(z), p.one() - half * lax::exp(-z));
}

}  // namespace laplace

namespace logistic {

Array logpdf(const Array& x, const LocationScale& options) {
  const Point p = point("logistic.logpdf", x, options);
  const Array two = constant(p.x, 2), half = p.standard() / two;
  return -two * logaddexp(half, -half) - lax::log(p.scale);
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
  return (lax::log(constant(p.x, 2 * pi) * variance) + quadratic) / constant(p.x, -2);
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
  return cdf(-p.x, mirrored(p));
}

Array logsf(const Array& x, const LocationScale& options) {
  const Point p = point("norm.logsf", x, options);
  return logcdf(-p.x, mirrored(p));
}

Array ppf(const Array& q, const LocationScale& options) {
  return lax::convert_element_type(special::ndtri(q) * options.scale + options.loc, default_float(), false);
}

Array isf(const Array& q, const LocationScale& options) { return ppf(constant(q, 1) - q, options); }

}  // namespace norm

namespace pareto {

Array logpdf(const Array& x, const Array& b, const LocationScale& options) {
  const Point p = point("pareto.logpdf", x, b, options);
  const Array density = -(lax::log(p.scale / p.a) + (p.a + p.one()) * lax::log(p.standard()));
  return where(p.x < p.loc + p.scale, -infinity, density);
}

Array pdf(const Array& x, const Array& b, const LocationScale& options) { return lax::exp(logpdf(x, b, options)); }

Array cdf(const Array& x, const Array& b, const LocationScale& options) {
  const Point p = point("pareto.cdf", x, b, options);
  return where(p.x < p.loc + p.scale, p.zero(), p.one() - lax::pow(p.standard(), -p.a));
}

Array logcdf(const Array& x, const Array& b, const LocationScale& options) {
  const Point p = point("pareto.logcdf", x, b, options);
  return where(p.x < p.loc + p.scale, -infinity, lax::log1p(-lax::pow(p.standard(), -p.a)));
}

Array logsf(const Array& x, const Array& b, const LocationScale& options) {
  const Point p = point("pareto.logsf", x, b, options);
  return where(p.x < p.loc + p.scale, p.zero(), -(p.a * lax::log(p.standard())));
}

Array sf(const Array& x, const Array& b, const LocationScale& options) { return lax::exp(logsf(x, b, options)); }

Array ppf(const Array& q, const Array& b, const LocationScale& options) {
  const Point p = point("pareto.ppf", q, b, options);
  const Array quantile = p.loc + p.scale * lax::pow(p.one() - p.x, -(p.one() / p.a));
  return where(outside_unit_interval(p.x), not_a_number, quantile);
}

}  // namespace pareto

namespace t {

Array logpdf(const Array& x, const Array& df, const LocationScale& options) {
  const Point p = point("t.logpdf", x, df, options);
  const Array two = constant(p.x, 2), y = p.standard(), half_df = p.a / two, above = half_df + constant(p.x, 0.5);
  const Array spread = lax::log(p.scale * p.scale * constant(p.x, pi) * p.a) / two;
  const Array normalizer = (lax::lgamma(half_df) + spread) - lax::lgamma(above);
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

// The logarithm of the normal mass between a and b, from the tail that loses no digits.
Array log_mass(const Array& a_in, const Array& b_in) {
  const Arrays both = broadcast_arrays("truncnorm", {a_in, b_in});
  const Array &a = both[0], &b = both[1];
  const Array left = b <= 0, right = a > 0;
  const Array low = where(right, -b, a), high = where(right, -a, b);
  const Array tail = log_of_difference(special::log_ndtr(high), special::log_ndtr(low));
  const Array central = lax::log1p(-special::ndtr(a) - special::ndtr(-b));
  return where(~(left | right), central, tail);
}

}  // namespace

Array logpdf(const Array& x, const Array& a, const Array& b, const LocationScale& options) {
  const Point p = point("truncnorm.logpdf", x, a, b, options);
  const Array y = p.standard();
  const Array density = norm::logpdf(p.x, {.loc = p.loc, .scale = p.scale}) - log_mass(p.a, p.b);
  return where(p.a >= p.b, not_a_number, where((y < p.a) | (y > p.b), -infinity, density));
}

Array pdf(const Array& x, const Array& a, const Array& b, const LocationScale& options) {
  return lax::exp(logpdf(x, a, b, options));
}

Array logcdf(const Array& x, const Array& a, const Array& b, const LocationScale& options) {
  const Point p = point("truncnorm.logcdf", x, a, b, options);
  const Arrays in = broadcast_arrays("truncnorm.logcdf", {p.x, p.a, p.b});
  const Array y = (in[0] - p.loc) / p.scale, whole = log_mass(in[1], in[2]);
  const Array below = log_mass(in[1], y) - whole, above = log_mass(y, in[2]) - whole;
  // Near one, through the mass above.
  Array value = where(below > -0.1, lax::log1p(-lax::exp(above)), where(y > in[1], below, 0));
  value = where(y >= in[2], 0, where(y <= in[1], -infinity, value));
  return where(in[1] >= in[2], not_a_number, value);
}

Array cdf(const Array& x, const Array& a, const Array& b, const LocationScale& options) {
  return lax::exp(logcdf(x, a, b, options));
}

Array logsf(const Array& x, const Array& a, const Array& b, const LocationScale& options) {
  const Point p = point("truncnorm.logsf", x, a, b, options);
  return logcdf(-p.x, -p.b, -p.a, mirrored(p));
}

Array sf(const Array& x, const Array& a, const Array& b, const LocationScale& options) {
  return lax::exp(logsf(x, a, b, options));
}

}  // namespace truncnorm

namespace uniform {

Array logpdf(const Array& x, const LocationScale& options) {
  const Point p = point("uniform.logpdf", x, options);
  return where((p.x > p.loc + p.scale) | (p.x < p.loc), -infinity, -lax::log(p.scale));
}

Array pdf(const Array& x, const LocationScale& options) { return lax::exp(logpdf(x, options)); }

Array cdf(const Array& x, const LocationScale& options) {
  const Point p = point("uniform.cdf", x, options);
  const Array zero = typed_constant(p.x, 0), one = typed_constant(p.x, 1);
  const Array inside = (p.x >= p.loc) & (p.x <= p.loc + p.scale);
  return where(p.x < p.loc, zero,
               where(p.x > p.loc + p.scale, one, where(inside, p.standard(), zero)));
}

Array ppf(const Array& q, const LocationScale& options) {
  const Point p = point("uniform.ppf", q, options);
  return where(outside_unit_interval(p.x), not_a_number, p.loc + p.scale * p.x);
}

}  // namespace uniform

namespace vonmises {

Array logpdf(const Array& x, const Array& kappa) {
  const Arrays in = promote_args_inexact("vonmises.logpdf", {x, kappa});
  const Array density = in[1] * (lax::cos(in[0]) - 1) - lax::log(2 * pi * lax::bessel_i0e(in[1]));
  return where(in[1] > constant(in[1], 0), density, not_a_number);
}

Array pdf(const Array& x, const Array& kappa) { return lax::exp(logpdf(x, kappa)); }

}  // namespace vonmises

namespace wrapcauchy {

Array logpdf(const Array& x, const Array& c) {
  const Arrays in = promote_args_inexact("wrapcauchy.logpdf", {x, c});
  const Array &y = in[0], &shape = in[1];
  const Array density =
      lax::log(1 - shape * shape) - std::log(2 * pi) - lax::log(1 + shape * shape - 2 * shape * lax::cos(y));
  const Array on_circle = (y >= constant(y, 0)) & (y <= constant(y, 2 * pi));
  return where(within_unit_interval(shape), where(on_circle, density, -infinity), not_a_number);
}

Array pdf(const Array& x, const Array& c) { return lax::exp(logpdf(x, c)); }

}  // namespace wrapcauchy

}  // namespace capibara::jax::scipy::stats
