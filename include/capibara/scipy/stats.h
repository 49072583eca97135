// jax.scipy.stats: densities, probabilities and distribution functions; ranks, modes and standard errors.
#pragma once

#include <capibara/array.h>
#include <capibara/numpy/axis.h>

#include <optional>
#include <string>
#include <utility>

namespace capibara::jax::scipy::stats {

// Of distributions that can be moved and stretched.
struct LocationScale {
  Array loc = 0, scale = 1;
};
// Of distributions over integers.
struct Location {
  Array loc = 0;
};

// Each namespace holds a distribution: logpdf and pdf (densities) or logpmf and pmf (probabilities), cdf and logcdf (the
// distribution function), sf and logsf (1 - cdf), ppf (inverse of cdf), isf (inverse of sf), as far as jax has them.
namespace bernoulli {
Array logpmf(const Array& k, const Array& p, const Location& options = {});
Array pmf(const Array& k, const Array& p, const Location& options = {});
Array cdf(const Array& k, const Array& p);
Array ppf(const Array& q, const Array& p);
}  // namespace bernoulli
namespace beta {
Array logpdf(const Array& x, const Array& a, const Array& b, const LocationScale& options = {});
Array pdf(const Array& x, const Array& a, const Array& b, const LocationScale& options = {});
Array cdf(const Array& x, const Array& a, const Array& b, const LocationScale& options = {});
Array logcdf(const Array& x, const Array& a, const Array& b, const LocationScale& options = {});
Array sf(const Array& x, const Array& a, const Array& b, const LocationScale& options = {});
Array logsf(const Array& x, const Array& a, const Array& b, const LocationScale& options = {});
}  // namespace beta
namespace betabinom {
Array logpmf(const Array& k, const Array& n, const Array& a, const Array& b, const Location& options = {});
Array pmf(const Array& k, const Array& n, const Array& a, const Array& b, const Location& options = {});
}  // namespace betabinom
namespace binom {
Array logpmf(const Array& k, const Array& n, const Array& p, const Location& options = {});
Array pmf(const Array& k, const Array& n, const Array& p, const Location& options = {});
}  // namespace binom
namespace cauchy {
Array logpdf(const Array& x, const LocationScale& options = {});
Array pdf(const Array& x, const LocationScale& options = {});
Array cdf(const Array& x, const LocationScale& options = {});
Array logcdf(const Array& x, const LocationScale& options = {});
Array sf(const Array& x, const LocationScale& options = {});
Array logsf(const Array& x, const LocationScale& options = {});
Array isf(const Array& q, const LocationScale& options = {});
Array ppf(const Array& q, const LocationScale& options = {});
}  // namespace cauchy
namespace chi2 {
Array logpdf(const Array& x, const Array& df, const LocationScale& options = {});
Array pdf(const Array& x, const Array& df, const LocationScale& options = {});
Array cdf(const Array& x, const Array& df, const LocationScale& options = {});
Array logcdf(const Array& x, const Array& df, const LocationScale& options = {});
Array sf(const Array& x, const Array& df, const LocationScale& options = {});
Array logsf(const Array& x, const Array& df, const LocationScale& options = {});
}  // namespace chi2
namespace dirichlet {
Array logpdf(const Array& x, const Array& alpha);  // x along its first axis; its last entry may be left out
Array pdf(const Array& x, const Array& alpha);
}  // namespace dirichlet
namespace expon {
Array logpdf(const Array& x, const LocationScale& options = {});
Array pdf(const Array& x, const LocationScale& options = {});
Array cdf(const Array& x, const LocationScale& options = {});
Array logcdf(const Array& x, const LocationScale& options = {});
Array sf(const Array& x, const LocationScale& options = {});
Array logsf(const Array& x, const LocationScale& options = {});
Array ppf(const Array& q, const LocationScale& options = {});
}  // namespace expon
namespace gamma {
Array logpdf(const Array& x, const Array& a, const LocationScale& options = {});
Array pdf(const Array& x, const Array& a, const LocationScale& options = {});
Array cdf(const Array& x, const Array& a, const LocationScale& options = {});
Array logcdf(const Array& x, const Array& a, const LocationScale& options = {});
Array sf(const Array& x, const Array& a, const LocationScale& options = {});
Array logsf(const Array& x, const Array& a, const LocationScale& options = {});
}  // namespace gamma
namespace gennorm {
Array logpdf(const Array& x, const Array& beta);
Array pdf(const Array& x, const Array& beta);
Array cdf(const Array& x, const Array& beta);
}  // namespace gennorm
namespace geom {
Array logpmf(const Array& k, const Array& p, const Location& options = {});
Array pmf(const Array& k, const Array& p, const Location& options = {});
}  // namespace geom
namespace gumbel_l {
Array logpdf(const Array& x, const LocationScale& options = {});
Array pdf(const Array& x, const LocationScale& options = {});
Array cdf(const Array& x, const LocationScale& options = {});
Array logcdf(const Array& x, const LocationScale& options = {});
Array sf(const Array& x, const LocationScale& options = {});
Array logsf(const Array& x, const LocationScale& options = {});
Array ppf(const Array& p, const LocationScale& options = {});
}  // namespace gumbel_l
namespace gumbel_r {
Array logpdf(const Array& x, const LocationScale& options = {});
Array pdf(const Array& x, const LocationScale& options = {});
Array cdf(const Array& x, const LocationScale& options = {});
Array logcdf(const Array& x, const LocationScale& options = {});
Array sf(const Array& x, const LocationScale& options = {});
Array logsf(const Array& x, const LocationScale& options = {});
Array ppf(const Array& p, const LocationScale& options = {});
}  // namespace gumbel_r
namespace laplace {
Array logpdf(const Array& x, const LocationScale& options = {});
Array pdf(const Array& x, const LocationScale& options = {});
Array cdf(const Array& x, const LocationScale& options = {});
}  // namespace laplace
namespace logistic {
Array logpdf(const Array& x, const LocationScale& options = {});
Array pdf(const Array& x, const LocationScale& options = {});
Array cdf(const Array& x, const LocationScale& options = {});
Array sf(const Array& x, const LocationScale& options = {});
Array isf(const Array& x, const LocationScale& options = {});
Array ppf(const Array& x, const LocationScale& options = {});
}  // namespace logistic
namespace multinomial {
Array logpmf(const Array& x, const Array& n, const Array& p);
Array pmf(const Array& x, const Array& n, const Array& p);
}  // namespace multinomial
namespace multivariate_normal {
Array logpdf(const Array& x, const Array& mean, const Array& cov);
Array pdf(const Array& x, const Array& mean, const Array& cov);
}  // namespace multivariate_normal
namespace nbinom {
Array logpmf(const Array& k, const Array& n, const Array& p, const Location& options = {});
Array pmf(const Array& k, const Array& n, const Array& p, const Location& options = {});
}  // namespace nbinom
namespace norm {
Array logpdf(const Array& x, const LocationScale& options = {});
Array pdf(const Array& x, const LocationScale& options = {});
Array cdf(const Array& x, const LocationScale& options = {});
Array logcdf(const Array& x, const LocationScale& options = {});
Array sf(const Array& x, const LocationScale& options = {});
Array logsf(const Array& x, const LocationScale& options = {});
Array isf(const Array& q, const LocationScale& options = {});
Array ppf(const Array& q, const LocationScale& options = {});
}  // namespace norm
namespace pareto {
Array logpdf(const Array& x, const Array& b, const LocationScale& options = {});
Array pdf(const Array& x, const Array& b, const LocationScale& options = {});
Array cdf(const Array& x, const Array& b, const LocationScale& options = {});
Array logcdf(const Array& x, const Array& b, const LocationScale& options = {});
Array sf(const Array& x, const Array& b, const LocationScale& options = {});
Array logsf(const Array& x, const Array& b, const LocationScale& options = {});
Array ppf(const Array& q, const Array& b, const LocationScale& options = {});
}  // namespace pareto
namespace poisson {
Array logpmf(const Array& k, const Array& mu, const Location& options = {});
Array pmf(const Array& k, const Array& mu, const Location& options = {});
Array cdf(const Array& k, const Array& mu, const Location& options = {});
Array entropy(const Array& mu, const Location& options = {});
}  // namespace poisson
namespace t {
Array logpdf(const Array& x, const Array& df, const LocationScale& options = {});
Array pdf(const Array& x, const Array& df, const LocationScale& options = {});
}  // namespace t
namespace truncnorm {
Array logpdf(const Array& x, const Array& a, const Array& b, const LocationScale& options = {});
Array pdf(const Array& x, const Array& a, const Array& b, const LocationScale& options = {});
Array cdf(const Array& x, const Array& a, const Array& b, const LocationScale& options = {});
Array logcdf(const Array& x, const Array& a, const Array& b, const LocationScale& options = {});
Array sf(const Array& x, const Array& a, const Array& b, const LocationScale& options = {});
Array logsf(const Array& x, const Array& a, const Array& b, const LocationScale& options = {});
}  // namespace truncnorm
namespace uniform {
Array logpdf(const Array& x, const LocationScale& options = {});
Array pdf(const Array& x, const LocationScale& options = {});
Array cdf(const Array& x, const LocationScale& options = {});
Array ppf(const Array& q, const LocationScale& options = {});
}  // namespace uniform
namespace vonmises {
Array logpdf(const Array& x, const Array& kappa);
Array pdf(const Array& x, const Array& kappa);
}  // namespace vonmises
namespace wrapcauchy {
Array logpdf(const Array& x, const Array& c);
Array pdf(const Array& x, const Array& c);
}  // namespace wrapcauchy

// ---- of samples -----------------------------------------------------------------------------------------------------

struct ModeOptions {
  std::optional<int64_t> axis = 0;  // none: of all elements
  bool keepdims = false;
};
// The most frequent value along an axis, the least of several, and how often it occurs.
std::pair<Array, Array> mode(const Array& a, const ModeOptions& options = {});

struct RankdataOptions {
  std::string method = "average";  // or "min", "max", "dense", "ordinal": what ties get
  std::optional<int64_t> axis = {};
};
// The ranks of the elements, from 1; all NaN where one element is.
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
