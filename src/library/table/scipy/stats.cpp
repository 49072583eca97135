// Table rows for jax.scipy.stats: samples, and a module for each distribution.
#include <capibara/scipy/stats.h>

#include "library/table/families.h"

namespace capibara::library {

namespace stats = jax::scipy::stats;

namespace {

stats::LocationScale location_scale(const Arguments& a) { return {.loc = a.array("loc"), .scale = a.array("scale")}; }
stats::Location location(const Arguments& a) { return {.loc = a.array("loc")}; }

// Only propagation of NaNs is supported.
void require_propagation(const Arguments& a) {
  const std::string policy = a.text("nan_policy");
  if (policy == "propagate") return;
  if (policy == "omit" || policy == "raise") {
    throw NotImplementedError(concat(a.function(), ": nan_policy '", policy, "' is not supported"));
  }
  throw ValueError(concat(a.function(), ": nan_policy must be 'propagate', 'omit' or 'raise', got '", policy, "'"));
}

const Function sample_functions[] = {
    {"mode", "a, axis: int | None = 0, nan_policy='propagate', keepdims=False -> ModeResult(mode, count)",
     [](const Arguments& a) -> Value {
       require_propagation(a);
       const auto [value, count] =
           stats::mode(a.array("a"), {.axis = a.optional_integer("axis"), .keepdims = a.flag("keepdims")});
       return Value::named_tuple("ModeResult", {"mode", "count"}, {value, count});
     },
     "The most frequent value along an axis, and how often it occurs."},
    {"rankdata", "a, method='average', *, axis: int = None, nan_policy='propagate'",
     [](const Arguments& a) -> Value {
       require_propagation(a);
       return stats::rankdata(a.array("a"), {.method = a.text("method"), .axis = a.optional_integer("axis")});
     },
     "The ranks of the elements, from 1."},
    {"sem", "a, axis: int | None = 0, ddof=1, nan_policy='propagate', *, keepdims=False",
     [](const Arguments& a) -> Value {
       return stats::sem(a.array("a"), {.axis = a.optional_integer("axis"),
                                        .ddof = a.array("ddof"),
                                        .nan_policy = a.text("nan_policy"),
                                        .keepdims = a.flag("keepdims")});
     },
     "The standard error of the mean."},
};

const Function bernoulli_functions[] = {
    {"logpmf", "k, p, loc=0",
     [](const Arguments& a) -> Value { return stats::bernoulli::logpmf(a.array("k"), a.array("p"), location(a)); },
     "The logarithm of the probability mass of the Bernoulli distribution."},
    {"pmf", "k, p, loc=0",
     [](const Arguments& a) -> Value { return stats::bernoulli::pmf(a.array("k"), a.array("p"), location(a)); },
     "The probability mass of the Bernoulli distribution."},
    {"cdf", "k, p", [](const Arguments& a) -> Value { return stats::bernoulli::cdf(a.array("k"), a.array("p")); },
     "The cumulative distribution function of the Bernoulli distribution."},
    {"ppf", "q, p", [](const Arguments& a) -> Value { return stats::bernoulli::ppf(a.array("q"), a.array("p")); },
     "The quantile function, inverse of cdf, of the Bernoulli distribution."},
};

const Function beta_functions[] = {
    {"logpdf", "x, a, b, loc=0, scale=1",
     [](const Arguments& a) -> Value {
       return stats::beta::logpdf(a.array("x"), a.array("a"), a.array("b"), location_scale(a));
     },
     "The logarithm of the density of the beta distribution."},
    {"pdf", "x, a, b, loc=0, scale=1",
     [](const Arguments& a) -> Value {
       return stats::beta::pdf(a.array("x"), a.array("a"), a.array("b"), location_scale(a));
     },
     "The density of the beta distribution."},
    {"cdf", "x, a, b, loc=0, scale=1",
     [](const Arguments& a) -> Value {
       return stats::beta::cdf(a.array("x"), a.array("a"), a.array("b"), location_scale(a));
     },
     "The cumulative distribution function of the beta distribution."},
    {"logcdf", "x, a, b, loc=0, scale=1",
     [](const Arguments& a) -> Value {
       return stats::beta::logcdf(a.array("x"), a.array("a"), a.array("b"), location_scale(a));
     },
     "The logarithm of the cumulative distribution function of the beta distribution."},
    {"sf", "x, a, b, loc=0, scale=1",
     [](const Arguments& a) -> Value {
       return stats::beta::sf(a.array("x"), a.array("a"), a.array("b"), location_scale(a));
     },
     "The survival function, 1 - cdf, of the beta distribution."},
    {"logsf", "x, a, b, loc=0, scale=1",
     [](const Arguments& a) -> Value {
       return stats::beta::logsf(a.array("x"), a.array("a"), a.array("b"), location_scale(a));
     },
     "The logarithm of the survival function of the beta distribution."},
};

const Function betabinom_functions[] = {
    {"logpmf", "k, n, a, b, loc=0",
     [](const Arguments& a) -> Value {
       return stats::betabinom::logpmf(a.array("k"), a.array("n"), a.array("a"), a.array("b"), location(a));
     },
     "The logarithm of the probability mass of the beta-binomial distribution."},
    {"pmf", "k, n, a, b, loc=0",
     [](const Arguments& a) -> Value {
       return stats::betabinom::pmf(a.array("k"), a.array("n"), a.array("a"), a.array("b"), location(a));
     },
     "The probability mass of the beta-binomial distribution."},
};

const Function binom_functions[] = {
    {"logpmf", "k, n, p, loc=0",
     [](const Arguments& a) -> Value {
       return stats::binom::logpmf(a.array("k"), a.array("n"), a.array("p"), location(a));
     },
     "The logarithm of the probability mass of the binomial distribution."},
    {"pmf", "k, n, p, loc=0",
     [](const Arguments& a) -> Value {
       return stats::binom::pmf(a.array("k"), a.array("n"), a.array("p"), location(a));
     },
     "The probability mass of the binomial distribution."},
};

const Function cauchy_functions[] = {
    {"logpdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::cauchy::logpdf(a.array("x"), location_scale(a)); },
     "The logarithm of the density of the Cauchy distribution."},
    {"pdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::cauchy::pdf(a.array("x"), location_scale(a)); },
     "The density of the Cauchy distribution."},
    {"cdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::cauchy::cdf(a.array("x"), location_scale(a)); },
     "The cumulative distribution function of the Cauchy distribution."},
    {"logcdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::cauchy::logcdf(a.array("x"), location_scale(a)); },
     "The logarithm of the cumulative distribution function of the Cauchy distribution."},
    {"sf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::cauchy::sf(a.array("x"), location_scale(a)); },
     "The survival function, 1 - cdf, of the Cauchy distribution."},
    {"logsf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::cauchy::logsf(a.array("x"), location_scale(a)); },
     "The logarithm of the survival function of the Cauchy distribution."},
    {"ppf", "q, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::cauchy::ppf(a.array("q"), location_scale(a)); },
     "The quantile function, inverse of cdf, of the Cauchy distribution."},
    {"isf", "q, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::cauchy::isf(a.array("q"), location_scale(a)); },
     "The inverse of the survival function of the Cauchy distribution."},
};

const Function chi2_functions[] = {
    {"logpdf", "x, df, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::chi2::logpdf(a.array("x"), a.array("df"), location_scale(a)); },
     "The logarithm of the density of the chi-squared distribution."},
    {"pdf", "x, df, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::chi2::pdf(a.array("x"), a.array("df"), location_scale(a)); },
     "The density of the chi-squared distribution."},
    {"cdf", "x, df, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::chi2::cdf(a.array("x"), a.array("df"), location_scale(a)); },
     "The cumulative distribution function of the chi-squared distribution."},
    {"logcdf", "x, df, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::chi2::logcdf(a.array("x"), a.array("df"), location_scale(a)); },
     "The logarithm of the cumulative distribution function of the chi-squared distribution."},
    {"sf", "x, df, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::chi2::sf(a.array("x"), a.array("df"), location_scale(a)); },
     "The survival function, 1 - cdf, of the chi-squared distribution."},
    {"logsf", "x, df, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::chi2::logsf(a.array("x"), a.array("df"), location_scale(a)); },
     "The logarithm of the survival function of the chi-squared distribution."},
};

const Function dirichlet_functions[] = {
    {"logpdf", "x, alpha",
     [](const Arguments& a) -> Value { return stats::dirichlet::logpdf(a.array("x"), a.array("alpha")); },
     "The logarithm of the density of the Dirichlet distribution."},
    {"pdf", "x, alpha",
     [](const Arguments& a) -> Value { return stats::dirichlet::pdf(a.array("x"), a.array("alpha")); },
     "The density of the Dirichlet distribution."},
};

const Function expon_functions[] = {
    {"logpdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::expon::logpdf(a.array("x"), location_scale(a)); },
     "The logarithm of the density of the exponential distribution."},
    {"pdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::expon::pdf(a.array("x"), location_scale(a)); },
     "The density of the exponential distribution."},
    {"cdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::expon::cdf(a.array("x"), location_scale(a)); },
     "The cumulative distribution function of the exponential distribution."},
    {"logcdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::expon::logcdf(a.array("x"), location_scale(a)); },
     "The logarithm of the cumulative distribution function of the exponential distribution."},
    {"sf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::expon::sf(a.array("x"), location_scale(a)); },
     "The survival function, 1 - cdf, of the exponential distribution."},
    {"logsf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::expon::logsf(a.array("x"), location_scale(a)); },
     "The logarithm of the survival function of the exponential distribution."},
    {"ppf", "q, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::expon::ppf(a.array("q"), location_scale(a)); },
     "The quantile function, inverse of cdf, of the exponential distribution."},
};

const Function gamma_functions[] = {
    {"logpdf", "x, a, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::gamma::logpdf(a.array("x"), a.array("a"), location_scale(a)); },
     "The logarithm of the density of the gamma distribution."},
    {"pdf", "x, a, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::gamma::pdf(a.array("x"), a.array("a"), location_scale(a)); },
     "The density of the gamma distribution."},
    {"cdf", "x, a, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::gamma::cdf(a.array("x"), a.array("a"), location_scale(a)); },
     "The cumulative distribution function of the gamma distribution."},
    {"logcdf", "x, a, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::gamma::logcdf(a.array("x"), a.array("a"), location_scale(a)); },
     "The logarithm of the cumulative distribution function of the gamma distribution."},
    {"sf", "x, a, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::gamma::sf(a.array("x"), a.array("a"), location_scale(a)); },
     "The survival function, 1 - cdf, of the gamma distribution."},
    {"logsf", "x, a, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::gamma::logsf(a.array("x"), a.array("a"), location_scale(a)); },
     "The logarithm of the survival function of the gamma distribution."},
};

const Function gennorm_functions[] = {
    {"logpdf", "x, beta",
     [](const Arguments& a) -> Value { return stats::gennorm::logpdf(a.array("x"), a.array("beta")); },
     "The logarithm of the density of the generalised normal distribution."},
    {"pdf", "x, beta", [](const Arguments& a) -> Value { return stats::gennorm::pdf(a.array("x"), a.array("beta")); },
     "The density of the generalised normal distribution."},
    {"cdf", "x, beta", [](const Arguments& a) -> Value { return stats::gennorm::cdf(a.array("x"), a.array("beta")); },
     "The cumulative distribution function of the generalised normal distribution."},
};

const Function geom_functions[] = {
    {"logpmf", "k, p, loc=0",
     [](const Arguments& a) -> Value { return stats::geom::logpmf(a.array("k"), a.array("p"), location(a)); },
     "The logarithm of the probability mass of the geometric distribution."},
    {"pmf", "k, p, loc=0",
     [](const Arguments& a) -> Value { return stats::geom::pmf(a.array("k"), a.array("p"), location(a)); },
     "The probability mass of the geometric distribution."},
};

const Function gumbel_l_functions[] = {
    {"logpdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::gumbel_l::logpdf(a.array("x"), location_scale(a)); },
     "The logarithm of the density of the Gumbel distribution of minima."},
    {"pdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::gumbel_l::pdf(a.array("x"), location_scale(a)); },
     "The density of the Gumbel distribution of minima."},
    {"cdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::gumbel_l::cdf(a.array("x"), location_scale(a)); },
     "The cumulative distribution function of the Gumbel distribution of minima."},
    {"logcdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::gumbel_l::logcdf(a.array("x"), location_scale(a)); },
     "The logarithm of the cumulative distribution function of the Gumbel distribution of minima."},
    {"sf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::gumbel_l::sf(a.array("x"), location_scale(a)); },
     "The survival function, 1 - cdf, of the Gumbel distribution of minima."},
    {"logsf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::gumbel_l::logsf(a.array("x"), location_scale(a)); },
     "The logarithm of the survival function of the Gumbel distribution of minima."},
    {"ppf", "p, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::gumbel_l::ppf(a.array("p"), location_scale(a)); },
     "The quantile function, inverse of cdf, of the Gumbel distribution of minima."},
};

const Function gumbel_r_functions[] = {
    {"logpdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::gumbel_r::logpdf(a.array("x"), location_scale(a)); },
     "The logarithm of the density of the Gumbel distribution of maxima."},
    {"pdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::gumbel_r::pdf(a.array("x"), location_scale(a)); },
     "The density of the Gumbel distribution of maxima."},
    {"cdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::gumbel_r::cdf(a.array("x"), location_scale(a)); },
     "The cumulative distribution function of the Gumbel distribution of maxima."},
    {"logcdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::gumbel_r::logcdf(a.array("x"), location_scale(a)); },
     "The logarithm of the cumulative distribution function of the Gumbel distribution of maxima."},
    {"sf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::gumbel_r::sf(a.array("x"), location_scale(a)); },
     "The survival function, 1 - cdf, of the Gumbel distribution of maxima."},
    {"logsf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::gumbel_r::logsf(a.array("x"), location_scale(a)); },
     "The logarithm of the survival function of the Gumbel distribution of maxima."},
    {"ppf", "p, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::gumbel_r::ppf(a.array("p"), location_scale(a)); },
     "The quantile function, inverse of cdf, of the Gumbel distribution of maxima."},
};

const Function laplace_functions[] = {
    {"logpdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::laplace::logpdf(a.array("x"), location_scale(a)); },
     "The logarithm of the density of the Laplace distribution."},
    {"pdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::laplace::pdf(a.array("x"), location_scale(a)); },
     "The density of the Laplace distribution."},
    {"cdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::laplace::cdf(a.array("x"), location_scale(a)); },
     "The cumulative distribution function of the Laplace distribution."},
};

const Function logistic_functions[] = {
    {"logpdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::logistic::logpdf(a.array("x"), location_scale(a)); },
     "The logarithm of the density of the logistic distribution."},
    {"pdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::logistic::pdf(a.array("x"), location_scale(a)); },
     "The density of the logistic distribution."},
    {"cdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::logistic::cdf(a.array("x"), location_scale(a)); },
     "The cumulative distribution function of the logistic distribution."},
    {"sf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::logistic::sf(a.array("x"), location_scale(a)); },
     "The survival function, 1 - cdf, of the logistic distribution."},
    {"ppf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::logistic::ppf(a.array("x"), location_scale(a)); },
     "The quantile function, inverse of cdf, of the logistic distribution."},
    {"isf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::logistic::isf(a.array("x"), location_scale(a)); },
     "The inverse of the survival function of the logistic distribution."},
};

const Function multinomial_functions[] = {
    {"logpmf", "x, n, p",
     [](const Arguments& a) -> Value { return stats::multinomial::logpmf(a.array("x"), a.array("n"), a.array("p")); },
     "The logarithm of the probability mass of the multinomial distribution."},
    {"pmf", "x, n, p",
     [](const Arguments& a) -> Value { return stats::multinomial::pmf(a.array("x"), a.array("n"), a.array("p")); },
     "The probability mass of the multinomial distribution."},
};

const Function multivariate_normal_functions[] = {
    {"logpdf", "x, mean, cov, allow_singular=None",
     [](const Arguments& a) -> Value {
       a.require_absent("allow_singular");
       return stats::multivariate_normal::logpdf(a.array("x"), a.array("mean"), a.array("cov"));
     },
     "The logarithm of the density of the multivariate normal distribution."},
    {"pdf", "x, mean, cov",
     [](const Arguments& a) -> Value {
       return stats::multivariate_normal::pdf(a.array("x"), a.array("mean"), a.array("cov"));
     },
     "The density of the multivariate normal distribution."},
};

const Function nbinom_functions[] = {
    {"logpmf", "k, n, p, loc=0",
     [](const Arguments& a) -> Value {
       return stats::nbinom::logpmf(a.array("k"), a.array("n"), a.array("p"), location(a));
     },
     "The logarithm of the probability mass of the negative binomial distribution."},
    {"pmf", "k, n, p, loc=0",
     [](const Arguments& a) -> Value {
       return stats::nbinom::pmf(a.array("k"), a.array("n"), a.array("p"), location(a));
     },
     "The probability mass of the negative binomial distribution."},
};

const Function norm_functions[] = {
    {"logpdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::norm::logpdf(a.array("x"), location_scale(a)); },
     "The logarithm of the density of the normal distribution."},
    {"pdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::norm::pdf(a.array("x"), location_scale(a)); },
     "The density of the normal distribution."},
    {"cdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::norm::cdf(a.array("x"), location_scale(a)); },
     "The cumulative distribution function of the normal distribution."},
    {"logcdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::norm::logcdf(a.array("x"), location_scale(a)); },
     "The logarithm of the cumulative distribution function of the normal distribution."},
    {"sf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::norm::sf(a.array("x"), location_scale(a)); },
     "The survival function, 1 - cdf, of the normal distribution."},
    {"logsf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::norm::logsf(a.array("x"), location_scale(a)); },
     "The logarithm of the survival function of the normal distribution."},
    {"ppf", "q, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::norm::ppf(a.array("q"), location_scale(a)); },
     "The quantile function, inverse of cdf, of the normal distribution."},
    {"isf", "q, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::norm::isf(a.array("q"), location_scale(a)); },
     "The inverse of the survival function of the normal distribution."},
};

const Function pareto_functions[] = {
    {"logpdf", "x, b, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::pareto::logpdf(a.array("x"), a.array("b"), location_scale(a)); },
     "The logarithm of the density of the Pareto distribution."},
    {"pdf", "x, b, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::pareto::pdf(a.array("x"), a.array("b"), location_scale(a)); },
     "The density of the Pareto distribution."},
    {"cdf", "x, b, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::pareto::cdf(a.array("x"), a.array("b"), location_scale(a)); },
     "The cumulative distribution function of the Pareto distribution."},
    {"logcdf", "x, b, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::pareto::logcdf(a.array("x"), a.array("b"), location_scale(a)); },
     "The logarithm of the cumulative distribution function of the Pareto distribution."},
    {"sf", "x, b, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::pareto::sf(a.array("x"), a.array("b"), location_scale(a)); },
     "The survival function, 1 - cdf, of the Pareto distribution."},
    {"logsf", "x, b, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::pareto::logsf(a.array("x"), a.array("b"), location_scale(a)); },
     "The logarithm of the survival function of the Pareto distribution."},
    {"ppf", "q, b, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::pareto::ppf(a.array("q"), a.array("b"), location_scale(a)); },
     "The quantile function, inverse of cdf, of the Pareto distribution."},
};

const Function poisson_functions[] = {
    {"logpmf", "k, mu, loc=0",
     [](const Arguments& a) -> Value { return stats::poisson::logpmf(a.array("k"), a.array("mu"), location(a)); },
     "The logarithm of the probability mass of the Poisson distribution."},
    {"pmf", "k, mu, loc=0",
     [](const Arguments& a) -> Value { return stats::poisson::pmf(a.array("k"), a.array("mu"), location(a)); },
     "The probability mass of the Poisson distribution."},
    {"cdf", "k, mu, loc=0",
     [](const Arguments& a) -> Value { return stats::poisson::cdf(a.array("k"), a.array("mu"), location(a)); },
     "The cumulative distribution function of the Poisson distribution."},
    {"entropy", "mu, loc=0",
     [](const Arguments& a) -> Value { return stats::poisson::entropy(a.array("mu"), location(a)); },
     "The entropy of the Poisson distribution."},
};

const Function t_functions[] = {
    {"logpdf", "x, df, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::t::logpdf(a.array("x"), a.array("df"), location_scale(a)); },
     "The logarithm of the density of Student's t distribution."},
    {"pdf", "x, df, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::t::pdf(a.array("x"), a.array("df"), location_scale(a)); },
     "The density of Student's t distribution."},
};

const Function truncnorm_functions[] = {
    {"logpdf", "x, a, b, loc=0, scale=1",
     [](const Arguments& a) -> Value {
       return stats::truncnorm::logpdf(a.array("x"), a.array("a"), a.array("b"), location_scale(a));
     },
     "The logarithm of the density of the truncated normal distribution."},
    {"pdf", "x, a, b, loc=0, scale=1",
     [](const Arguments& a) -> Value {
       return stats::truncnorm::pdf(a.array("x"), a.array("a"), a.array("b"), location_scale(a));
     },
     "The density of the truncated normal distribution."},
    {"cdf", "x, a, b, loc=0, scale=1",
     [](const Arguments& a) -> Value {
       return stats::truncnorm::cdf(a.array("x"), a.array("a"), a.array("b"), location_scale(a));
     },
     "The cumulative distribution function of the truncated normal distribution."},
    {"logcdf", "x, a, b, loc=0, scale=1",
     [](const Arguments& a) -> Value {
       return stats::truncnorm::logcdf(a.array("x"), a.array("a"), a.array("b"), location_scale(a));
     },
     "The logarithm of the cumulative distribution function of the truncated normal distribution."},
    {"sf", "x, a, b, loc=0, scale=1",
     [](const Arguments& a) -> Value {
       return stats::truncnorm::sf(a.array("x"), a.array("a"), a.array("b"), location_scale(a));
     },
     "The survival function, 1 - cdf, of the truncated normal distribution."},
    {"logsf", "x, a, b, loc=0, scale=1",
     [](const Arguments& a) -> Value {
       return stats::truncnorm::logsf(a.array("x"), a.array("a"), a.array("b"), location_scale(a));
     },
     "The logarithm of the survival function of the truncated normal distribution."},
};

const Function uniform_functions[] = {
    {"logpdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::uniform::logpdf(a.array("x"), location_scale(a)); },
     "The logarithm of the density of the uniform distribution."},
    {"pdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::uniform::pdf(a.array("x"), location_scale(a)); },
     "The density of the uniform distribution."},
    {"cdf", "x, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::uniform::cdf(a.array("x"), location_scale(a)); },
     "The cumulative distribution function of the uniform distribution."},
    {"ppf", "q, loc=0, scale=1",
     [](const Arguments& a) -> Value { return stats::uniform::ppf(a.array("q"), location_scale(a)); },
     "The quantile function, inverse of cdf, of the uniform distribution."},
};

const Function vonmises_functions[] = {
    {"logpdf", "x, kappa",
     [](const Arguments& a) -> Value { return stats::vonmises::logpdf(a.array("x"), a.array("kappa")); },
     "The logarithm of the density of the von Mises distribution."},
    {"pdf", "x, kappa",
     [](const Arguments& a) -> Value { return stats::vonmises::pdf(a.array("x"), a.array("kappa")); },
     "The density of the von Mises distribution."},
};

const Function wrapcauchy_functions[] = {
    {"logpdf", "x, c",
     [](const Arguments& a) -> Value { return stats::wrapcauchy::logpdf(a.array("x"), a.array("c")); },
     "The logarithm of the density of the wrapped Cauchy distribution."},
    {"pdf", "x, c", [](const Arguments& a) -> Value { return stats::wrapcauchy::pdf(a.array("x"), a.array("c")); },
     "The density of the wrapped Cauchy distribution."},
};

struct Distribution {
  std::string_view name;
  Family functions;
};

const Distribution distributions[] = {
    {"bernoulli", bernoulli_functions},
    {"beta", beta_functions},
    {"betabinom", betabinom_functions},
    {"binom", binom_functions},
    {"cauchy", cauchy_functions},
    {"chi2", chi2_functions},
    {"dirichlet", dirichlet_functions},
    {"expon", expon_functions},
    {"gamma", gamma_functions},
    {"gennorm", gennorm_functions},
    {"geom", geom_functions},
    {"gumbel_l", gumbel_l_functions},
    {"gumbel_r", gumbel_r_functions},
    {"laplace", laplace_functions},
    {"logistic", logistic_functions},
    {"multinomial", multinomial_functions},
    {"multivariate_normal", multivariate_normal_functions},
    {"nbinom", nbinom_functions},
    {"norm", norm_functions},
    {"pareto", pareto_functions},
    {"poisson", poisson_functions},
    {"t", t_functions},
    {"truncnorm", truncnorm_functions},
    {"uniform", uniform_functions},
    {"vonmises", vonmises_functions},
    {"wrapcauchy", wrapcauchy_functions},
};

}  // namespace

Family scipy_stats() { return sample_functions; }

Family scipy_stats_distribution(std::string_view name) {
  for (const Distribution& one : distributions) {
    if (one.name == name) return one.functions;
  }
  throw InternalError(concat("library table: no distribution is called '", name, "'"));
}

}  // namespace capibara::library
