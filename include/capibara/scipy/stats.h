// jax.scipy.stats: densities, probabilities and distribution functions; ranks, modes and standard errors.
#pragma once

#include <capibara/array.h>
#include <capibara/numpy/axis.h>

#include <optional>
#include <string>
#include <utility>

namespace capibara::jax::scipy::stats {

// For distributions with location and scale.
struct LocationScale {
  Array loc = 0, scale = 1;
};
// For distributions over integers.
struct Location {
  Array loc = 0;
};

// Each namespace is a distribution: logpdf and pdf (densities) or logpmf and pmf (probabilities), cdf and logcdf
// (the distribution function), sf and logsf (1 - cdf), ppf (inverse of cdf), isf (inverse of sf), to the extent that
// jax has them.
namespace bernoulli {
// The logarithm of the probability mass of the Bernoulli distribution.
Array logpmf(const Array& k, const Array& p, const Location& options = {});
// The probability mass of the Bernoulli distribution.
Array pmf(const Array& k, const Array& p, const Location& options = {});
// The cumulative distribution function of the Bernoulli distribution.
Array cdf(const Array& k, const Array& p);
// The quantile function, inverse of cdf, of the Bernoulli distribution.
Array ppf(const Array& q, const Array& p);
}  // namespace bernoulli
namespace beta {
// The logarithm of the density of the beta distribution.
Array logpdf(const Array& x, const Array& a, const Array& b, const LocationScale& options = {});
// The density of the beta distribution.
Array pdf(const Array& x, const Array& a, const Array& b, const LocationScale& options = {});
// The cumulative distribution function of the beta distribution.
Array cdf(const Array& x, const Array& a, const Array& b, const LocationScale& options = {});
// The logarithm of the cumulative distribution function of the beta distribution.
Array logcdf(const Array& x, const Array& a, const Array& b, const LocationScale& options = {});
// The survival function, 1 - cdf, of the beta distribution.
Array sf(const Array& x, const Array& a, const Array& b, const LocationScale& options = {});
// The logarithm of the survival function of the beta distribution.
Array logsf(const Array& x, const Array& a, const Array& b, const LocationScale& options = {});
}  // namespace beta
namespace betabinom {
// The logarithm of the probability mass of the beta-binomial distribution.
Array logpmf(const Array& k, const Array& n, const Array& a, const Array& b, const Location& options = {});
// The probability mass of the beta-binomial distribution.
Array pmf(const Array& k, const Array& n, const Array& a, const Array& b, const Location& options = {});
}  // namespace betabinom
namespace binom {
// The logarithm of the probability mass of the binomial distribution.
Array logpmf(const Array& k, const Array& n, const Array& p, const Location& options = {});
// The probability mass of the binomial distribution.
Array pmf(const Array& k, const Array& n, const Array& p, const Location& options = {});
}  // namespace binom
namespace cauchy {
// The logarithm of the density of the Cauchy distribution.
Array logpdf(const Array& x, const LocationScale& options = {});
// The density of the Cauchy distribution.
Array pdf(const Array& x, const LocationScale& options = {});
// The cumulative distribution function of the Cauchy distribution.
Array cdf(const Array& x, const LocationScale& options = {});
// The logarithm of the cumulative distribution function of the Cauchy distribution.
Array logcdf(const Array& x, const LocationScale& options = {});
// The survival function, 1 - cdf, of the Cauchy distribution.
Array sf(const Array& x, const LocationScale& options = {});
// The logarithm of the survival function of the Cauchy distribution.
Array logsf(const Array& x, const LocationScale& options = {});
// The inverse of the survival function of the Cauchy distribution.
Array isf(const Array& q, const LocationScale& options = {});
// The quantile function, inverse of cdf, of the Cauchy distribution.
Array ppf(const Array& q, const LocationScale& options = {});
}  // namespace cauchy
namespace chi2 {
// The logarithm of the density of the chi-squared distribution.
Array logpdf(const Array& x, const Array& df, const LocationScale& options = {});
// The density of the chi-squared distribution.
Array pdf(const Array& x, const Array& df, const LocationScale& options = {});
// The cumulative distribution function of the chi-squared distribution.
Array cdf(const Array& x, const Array& df, const LocationScale& options = {});
// The logarithm of the cumulative distribution function of the chi-squared distribution.
Array logcdf(const Array& x, const Array& df, const LocationScale& options = {});
// The survival function, 1 - cdf, of the chi-squared distribution.
Array sf(const Array& x, const Array& df, const LocationScale& options = {});
// The logarithm of the survival function of the chi-squared distribution.
Array logsf(const Array& x, const Array& df, const LocationScale& options = {});
}  // namespace chi2
namespace dirichlet {
// The logarithm of the density of the Dirichlet distribution. x runs along its first axis; its last entry may be
// omitted.
Array logpdf(const Array& x, const Array& alpha);
// The density of the Dirichlet distribution.
Array pdf(const Array& x, const Array& alpha);
}  // namespace dirichlet
namespace expon {
// The logarithm of the density of the exponential distribution.
Array logpdf(const Array& x, const LocationScale& options = {});
// The density of the exponential distribution.
Array pdf(const Array& x, const LocationScale& options = {});
// The cumulative distribution function of the exponential distribution.
Array cdf(const Array& x, const LocationScale& options = {});
// The logarithm of the cumulative distribution function of the exponential distribution.
Array logcdf(const Array& x, const LocationScale& options = {});
// The survival function, 1 - cdf, of the exponential distribution.
Array sf(const Array& x, const LocationScale& options = {});
// The logarithm of the survival function of the exponential distribution.
Array logsf(const Array& x, const LocationScale& options = {});
// The quantile function, inverse of cdf, of the exponential distribution.
Array ppf(const Array& q, const LocationScale& options = {});
}  // namespace expon
namespace gamma {
// The logarithm of the density of the gamma distribution.
Array logpdf(const Array& x, const Array& a, const LocationScale& options = {});
// The density of the gamma distribution.
Array pdf(const Array& x, const Array& a, const LocationScale& options = {});
// The cumulative distribution function of the gamma distribution.
Array cdf(const Array& x, const Array& a, const LocationScale& options = {});
// The logarithm of the cumulative distribution function of the gamma distribution.
Array logcdf(const Array& x, const Array& a, const LocationScale& options = {});
// The survival function, 1 - cdf, of the gamma distribution.
Array sf(const Array& x, const Array& a, const LocationScale& options = {});
// The logarithm of the survival function of the gamma distribution.
Array logsf(const Array& x, const Array& a, const LocationScale& options = {});
}  // namespace gamma
namespace gennorm {
// The logarithm of the density of the generalised normal distribution.
Array logpdf(const Array& x, const Array& beta);
// The density of the generalised normal distribution.
Array pdf(const Array& x, const Array& beta);
// The cumulative distribution function of the generalised normal distribution.
Array cdf(const Array& x, const Array& beta);
}  // namespace gennorm
namespace geom {
// The logarithm of the probability mass of the geometric distribution.
Array logpmf(const Array& k, const Array& p, const Location& options = {});
// The probability mass of the geometric distribution.
Array pmf(const Array& k, const Array& p, const Location& options = {});
}  // namespace geom
namespace gumbel_l {
// The logarithm of the density of the Gumbel distribution of minima.
Array logpdf(const Array& x, const LocationScale& options = {});
// The density of the Gumbel distribution of minima.
Array pdf(const Array& x, const LocationScale& options = {});
// The cumulative distribution function of the Gumbel distribution of minima.
Array cdf(const Array& x, const LocationScale& options = {});
// The logarithm of the cumulative distribution function of the Gumbel distribution of minima.
Array logcdf(const Array& x, const LocationScale& options = {});
// The survival function, 1 - cdf, of the Gumbel distribution of minima.
Array sf(const Array& x, const LocationScale& options = {});
// The logarithm of the survival function of the Gumbel distribution of minima.
Array logsf(const Array& x, const LocationScale& options = {});
// The quantile function, inverse of cdf, of the Gumbel distribution of minima.
Array ppf(const Array& p, const LocationScale& options = {});
}  // namespace gumbel_l
namespace gumbel_r {
// The logarithm of the density of the Gumbel distribution of maxima.
Array logpdf(const Array& x, const LocationScale& options = {});
// The density of the Gumbel distribution of maxima.
Array pdf(const Array& x, const LocationScale& options = {});
// The cumulative distribution function of the Gumbel distribution of maxima.
Array cdf(const Array& x, const LocationScale& options = {});
// The logarithm of the cumulative distribution function of the Gumbel distribution of maxima.
Array logcdf(const Array& x, const LocationScale& options = {});
// The survival function, 1 - cdf, of the Gumbel distribution of maxima.
Array sf(const Array& x, const LocationScale& options = {});
// The logarithm of the survival function of the Gumbel distribution of maxima.
Array logsf(const Array& x, const LocationScale& options = {});
// The quantile function, inverse of cdf, of the Gumbel distribution of maxima.
Array ppf(const Array& p, const LocationScale& options = {});
}  // namespace gumbel_r
namespace laplace {
// The logarithm of the density of the Laplace distribution.
Array logpdf(const Array& x, const LocationScale& options = {});
// The density of the Laplace distribution.
Array pdf(const Array& x, const LocationScale& options = {});
// The cumulative distribution function of the Laplace distribution.
Array cdf(const Array& x, const LocationScale& options = {});
}  // namespace laplace
namespace logistic {
// The logarithm of the density of the logistic distribution.
Array logpdf(const Array& x, const LocationScale& options = {});
// The density of the logistic distribution.
Array pdf(const Array& x, const LocationScale& options = {});
// The cumulative distribution function of the logistic distribution.
Array cdf(const Array& x, const LocationScale& options = {});
// The survival function, 1 - cdf, of the logistic distribution.
Array sf(const Array& x, const LocationScale& options = {});
// The inverse of the survival function of the logistic distribution.
Array isf(const Array& x, const LocationScale& options = {});
// The quantile function, inverse of cdf, of the logistic distribution.
Array ppf(const Array& x, const LocationScale& options = {});
}  // namespace logistic
namespace multinomial {
// The logarithm of the probability mass of the multinomial distribution.
Array logpmf(const Array& x, const Array& n, const Array& p);
// The probability mass of the multinomial distribution.
Array pmf(const Array& x, const Array& n, const Array& p);
}  // namespace multinomial
namespace multivariate_normal {
// The logarithm of the density of the multivariate normal distribution.
Array logpdf(const Array& x, const Array& mean, const Array& cov);
// The density of the multivariate normal distribution.
Array pdf(const Array& x, const Array& mean, const Array& cov);
}  // namespace multivariate_normal
namespace nbinom {
// The logarithm of the probability mass of the negative binomial distribution.
Array logpmf(const Array& k, const Array& n, const Array& p, const Location& options = {});
// The probability mass of the negative binomial distribution.
Array pmf(const Array& k, const Array& n, const Array& p, const Location& options = {});
}  // namespace nbinom
namespace norm {
// The logarithm of the density of the normal distribution.
Array logpdf(const Array& x, const LocationScale& options = {});
// The density of the normal distribution.
Array pdf(const Array& x, const LocationScale& options = {});
// The cumulative distribution function of the normal distribution.
Array cdf(const Array& x, const LocationScale& options = {});
// The logarithm of the cumulative distribution function of the normal distribution.
Array logcdf(const Array& x, const LocationScale& options = {});
// The survival function, 1 - cdf, of the normal distribution.
Array sf(const Array& x, const LocationScale& options = {});
// The logarithm of the survival function of the normal distribution.
Array logsf(const Array& x, const LocationScale& options = {});
// The inverse of the survival function of the normal distribution.
Array isf(const Array& q, const LocationScale& options = {});
// The quantile function, inverse of cdf, of the normal distribution.
Array ppf(const Array& q, const LocationScale& options = {});
}  // namespace norm
namespace pareto {
// The logarithm of the density of the Pareto distribution.
Array logpdf(const Array& x, const Array& b, const LocationScale& options = {});
// The density of the Pareto distribution.
Array pdf(const Array& x, const Array& b, const LocationScale& options = {});
// The cumulative distribution function of the Pareto distribution.
Array cdf(const Array& x, const Array& b, const LocationScale& options = {});
// The logarithm of the cumulative distribution function of the Pareto distribution.
Array logcdf(const Array& x, const Array& b, const LocationScale& options = {});
// The survival function, 1 - cdf, of the Pareto distribution.
Array sf(const Array& x, const Array& b, const LocationScale& options = {});
// The logarithm of the survival function of the Pareto distribution.
Array logsf(const Array& x, const Array& b, const LocationScale& options = {});
// The quantile function, inverse of cdf, of the Pareto distribution.
Array ppf(const Array& q, const Array& b, const LocationScale& options = {});
}  // namespace pareto
namespace poisson {
// The logarithm of the probability mass of the Poisson distribution.
Array logpmf(const Array& k, const Array& mu, const Location& options = {});
// The probability mass of the Poisson distribution.
Array pmf(const Array& k, const Array& mu, const Location& options = {});
// The cumulative distribution function of the Poisson distribution.
Array cdf(const Array& k, const Array& mu, const Location& options = {});
// The entropy of the Poisson distribution.
Array entropy(const Array& mu, const Location& options = {});
}  // namespace poisson
namespace t {
// The logarithm of the density of Student's t distribution.
Array logpdf(const Array& x, const Array& df, const LocationScale& options = {});
// The density of Student's t distribution.
Array pdf(const Array& x, const Array& df, const LocationScale& options = {});
}  // namespace t
namespace truncnorm {
// The logarithm of the density of the truncated normal distribution.
Array logpdf(const Array& x, const Array& a, const Array& b, const LocationScale& options = {});
// The density of the truncated normal distribution.
Array pdf(const Array& x, const Array& a, const Array& b, const LocationScale& options = {});
// The cumulative distribution function of the truncated normal distribution.
Array cdf(const Array& x, const Array& a, const Array& b, const LocationScale& options = {});
// The logarithm of the cumulative distribution function of the truncated normal distribution.
Array logcdf(const Array& x, const Array& a, const Array& b, const LocationScale& options = {});
// The survival function, 1 - cdf, of the truncated normal distribution.
Array sf(const Array& x, const Array& a, const Array& b, const LocationScale& options = {});
// The logarithm of the survival function of the truncated normal distribution.
Array logsf(const Array& x, const Array& a, const Array& b, const LocationScale& options = {});
}  // namespace truncnorm
namespace uniform {
// The logarithm of the density of the uniform distribution.
Array logpdf(const Array& x, const LocationScale& options = {});
// The density of the uniform distribution.
Array pdf(const Array& x, const LocationScale& options = {});
// The cumulative distribution function of the uniform distribution.
Array cdf(const Array& x, const LocationScale& options = {});
// The quantile function, inverse of cdf, of the uniform distribution.
Array ppf(const Array& q, const LocationScale& options = {});
}  // namespace uniform
namespace vonmises {
// The logarithm of the density of the von Mises distribution.
Array logpdf(const Array& x, const Array& kappa);
// The density of the von Mises distribution.
Array pdf(const Array& x, const Array& kappa);
}  // namespace vonmises
namespace wrapcauchy {
// The logarithm of the density of the wrapped Cauchy distribution.
Array logpdf(const Array& x, const Array& c);
// The density of the wrapped Cauchy distribution.
Array pdf(const Array& x, const Array& c);
}  // namespace wrapcauchy

// ---- statistics of samples ------------------------------------------------------------------------------------------

struct ModeOptions {
  std::optional<int64_t> axis = 0;  // absent: of all elements
  bool keepdims = false;
};
// The most frequent value along an axis, and how often it occurs. Ties go to the smallest.
std::pair<Array, Array> mode(const Array& a, const ModeOptions& options = {});

struct RankdataOptions {
  std::string method = "average";  // or "min", "max", "dense", "ordinal": the rank of ties
  std::optional<int64_t> axis = {};
};
// The ranks of the elements, from 1. All are NaN where one element is.
Array rankdata(const Array& a, const RankdataOptions& options = {});

struct SemOptions {
  std::optional<int64_t> axis = 0;
  Array ddof = 1;
  std::string nan_policy = "propagate";  // or "omit"
  bool keepdims = false;
};
// The standard error of the mean.
Array sem(const Array& a, const SemOptions& options = {});

}  // namespace capibara::jax::scipy::stats
