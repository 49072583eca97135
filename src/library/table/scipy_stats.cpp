// The rows of jax.scipy.stats: samples, and a module for each distribution.
#include <capibara/scipy/stats.h>

#include <tuple>
#include <type_traits>

#include "library/table/families.h"

namespace capibara::library {

namespace stats = jax::scipy::stats;

namespace {

// A call of a function of arrays with the parameters of its row in their order; its options are loc, or loc and scale.
template <class T>
T stats_argument(const Arguments& a, std::size_t i) {
  if constexpr (std::is_same_v<T, stats::LocationScale>) {
    return {.loc = a.array("loc"), .scale = a.array("scale")};
  } else if constexpr (std::is_same_v<T, stats::Location>) {
    return {.loc = a.array("loc")};
  } else {
    return a.array(a.signature().parameters()[i].name);
  }
}
template <class... Parameters, std::size_t... i>
Array call_with(Array (*function)(Parameters...), const Arguments& a, std::index_sequence<i...>) {
  return function(stats_argument<std::remove_cvref_t<Parameters>>(a, i)...);
}
template <class... Parameters>
Array call_stats(Array (*function)(Parameters...), const Arguments& a) {
  return call_with(function, a, std::index_sequence_for<Parameters...>{});
}
template <auto function>
Value stats_row(const Arguments& a) {
  return call_stats(function, a);
}

// Only NaNs that spread are supported.
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
    {"logpmf", "k, p, loc=0", stats_row<stats::bernoulli::logpmf>,
     "The logarithm of the probability mass of the Bernoulli distribution."},
    {"pmf", "k, p, loc=0", stats_row<stats::bernoulli::pmf>, "The probability mass of the Bernoulli distribution."},
    {"cdf", "k, p", stats_row<stats::bernoulli::cdf>,
     "The cumulative distribution function of the Bernoulli distribution."},
    {"ppf", "q, p", stats_row<stats::bernoulli::ppf>,
     "The quantile function, inverse of cdf, of the Bernoulli distribution."},
};

const Function beta_functions[] = {
    {"logpdf", "x, a, b, loc=0, scale=1", stats_row<stats::beta::logpdf>,
     "The logarithm of the density of the beta distribution."},
    {"pdf", "x, a, b, loc=0, scale=1", stats_row<stats::beta::pdf>, "The density of the beta distribution."},
    {"cdf", "x, a, b, loc=0, scale=1", stats_row<stats::beta::cdf>,
     "The cumulative distribution function of the beta distribution."},
    {"logcdf", "x, a, b, loc=0, scale=1", stats_row<stats::beta::logcdf>,
     "The logarithm of the cumulative distribution function of the beta distribution."},
    {"sf", "x, a, b, loc=0, scale=1", stats_row<stats::beta::sf>,
     "The survival function, 1 - cdf, of the beta distribution."},
    {"logsf", "x, a, b, loc=0, scale=1", stats_row<stats::beta::logsf>,
     "The logarithm of the survival function of the beta distribution."},
};

const Function betabinom_functions[] = {
    {"logpmf", "k, n, a, b, loc=0", stats_row<stats::betabinom::logpmf>,
     "The logarithm of the probability mass of the beta-binomial distribution."},
    {"pmf", "k, n, a, b, loc=0", stats_row<stats::betabinom::pmf>,
     "The probability mass of the beta-binomial distribution."},
};

const Function binom_functions[] = {
    {"logpmf", "k, n, p, loc=0", stats_row<stats::binom::logpmf>,
     "The logarithm of the probability mass of the binomial distribution."},
    {"pmf", "k, n, p, loc=0", stats_row<stats::binom::pmf>, "The probability mass of the binomial distribution."},
};

const Function cauchy_functions[] = {
    {"logpdf", "x, loc=0, scale=1", stats_row<stats::cauchy::logpdf>,
     "The logarithm of the density of the Cauchy distribution."},
    {"pdf", "x, loc=0, scale=1", stats_row<stats::cauchy::pdf>, "The density of the Cauchy distribution."},
    {"cdf", "x, loc=0, scale=1", stats_row<stats::cauchy::cdf>,
     "The cumulative distribution function of the Cauchy distribution."},
    {"logcdf", "x, loc=0, scale=1", stats_row<stats::cauchy::logcdf>,
     "The logarithm of the cumulative distribution function of the Cauchy distribution."},
    {"sf", "x, loc=0, scale=1", stats_row<stats::cauchy::sf>,
     "The survival function, 1 - cdf, of the Cauchy distribution."},
    {"logsf", "x, loc=0, scale=1", stats_row<stats::cauchy::logsf>,
     "The logarithm of the survival function of the Cauchy distribution."},
    {"ppf", "q, loc=0, scale=1", stats_row<stats::cauchy::ppf>,
     "The quantile function, inverse of cdf, of the Cauchy distribution."},
    {"isf", "q, loc=0, scale=1", stats_row<stats::cauchy::isf>,
     "The inverse of the survival function of the Cauchy distribution."},
};

const Function chi2_functions[] = {
    {"logpdf", "x, df, loc=0, scale=1", stats_row<stats::chi2::logpdf>,
     "The logarithm of the density of the chi-squared distribution."},
    {"pdf", "x, df, loc=0, scale=1", stats_row<stats::chi2::pdf>, "The density of the chi-squared distribution."},
    {"cdf", "x, df, loc=0, scale=1", stats_row<stats::chi2::cdf>,
     "The cumulative distribution function of the chi-squared distribution."},
    {"logcdf", "x, df, loc=0, scale=1", stats_row<stats::chi2::logcdf>,
     "The logarithm of the cumulative distribution function of the chi-squared distribution."},
    {"sf", "x, df, loc=0, scale=1", stats_row<stats::chi2::sf>,
     "The survival function, 1 - cdf, of the chi-squared distribution."},
    {"logsf", "x, df, loc=0, scale=1", stats_row<stats::chi2::logsf>,
     "The logarithm of the survival function of the chi-squared distribution."},
};

const Function dirichlet_functions[] = {
    {"logpdf", "x, alpha", stats_row<stats::dirichlet::logpdf>,
     "The logarithm of the density of the Dirichlet distribution."},
    {"pdf", "x, alpha", stats_row<stats::dirichlet::pdf>, "The density of the Dirichlet distribution."},
};

const Function expon_functions[] = {
    {"logpdf", "x, loc=0, scale=1", stats_row<stats::expon::logpdf>,
     "The logarithm of the density of the exponential distribution."},
    {"pdf", "x, loc=0, scale=1", stats_row<stats::expon::pdf>, "The density of the exponential distribution."},
    {"cdf", "x, loc=0, scale=1", stats_row<stats::expon::cdf>,
     "The cumulative distribution function of the exponential distribution."},
    {"logcdf", "x, loc=0, scale=1", stats_row<stats::expon::logcdf>,
     "The logarithm of the cumulative distribution function of the exponential distribution."},
    {"sf", "x, loc=0, scale=1", stats_row<stats::expon::sf>,
     "The survival function, 1 - cdf, of the exponential distribution."},
    {"logsf", "x, loc=0, scale=1", stats_row<stats::expon::logsf>,
     "The logarithm of the survival function of the exponential distribution."},
    {"ppf", "q, loc=0, scale=1", stats_row<stats::expon::ppf>,
     "The quantile function, inverse of cdf, of the exponential distribution."},
};

const Function gamma_functions[] = {
    {"logpdf", "x, a, loc=0, scale=1", stats_row<stats::gamma::logpdf>,
     "The logarithm of the density of the gamma distribution."},
    {"pdf", "x, a, loc=0, scale=1", stats_row<stats::gamma::pdf>, "The density of the gamma distribution."},
    {"cdf", "x, a, loc=0, scale=1", stats_row<stats::gamma::cdf>,
     "The cumulative distribution function of the gamma distribution."},
    {"logcdf", "x, a, loc=0, scale=1", stats_row<stats::gamma::logcdf>,
     "The logarithm of the cumulative distribution function of the gamma distribution."},
    {"sf", "x, a, loc=0, scale=1", stats_row<stats::gamma::sf>,
     "The survival function, 1 - cdf, of the gamma distribution."},
    {"logsf", "x, a, loc=0, scale=1", stats_row<stats::gamma::logsf>,
     "The logarithm of the survival function of the gamma distribution."},
};

const Function gennorm_functions[] = {
    {"logpdf", "x, beta", stats_row<stats::gennorm::logpdf>,
     "The logarithm of the density of the generalised normal distribution."},
    {"pdf", "x, beta", stats_row<stats::gennorm::pdf>, "The density of the generalised normal distribution."},
    {"cdf", "x, beta", stats_row<stats::gennorm::cdf>,
     "The cumulative distribution function of the generalised normal distribution."},
};

const Function geom_functions[] = {
    {"logpmf", "k, p, loc=0", stats_row<stats::geom::logpmf>,
     "The logarithm of the probability mass of the geometric distribution."},
    {"pmf", "k, p, loc=0", stats_row<stats::geom::pmf>, "The probability mass of the geometric distribution."},
};

const Function gumbel_l_functions[] = {
    {"logpdf", "x, loc=0, scale=1", stats_row<stats::gumbel_l::logpdf>,
     "The logarithm of the density of the Gumbel distribution of minima."},
    {"pdf", "x, loc=0, scale=1", stats_row<stats::gumbel_l::pdf>, "The density of the Gumbel distribution of minima."},
    {"cdf", "x, loc=0, scale=1", stats_row<stats::gumbel_l::cdf>,
     "The cumulative distribution function of the Gumbel distribution of minima."},
    {"logcdf", "x, loc=0, scale=1", stats_row<stats::gumbel_l::logcdf>,
     "The logarithm of the cumulative distribution function of the Gumbel distribution of minima."},
    {"sf", "x, loc=0, scale=1", stats_row<stats::gumbel_l::sf>,
     "The survival function, 1 - cdf, of the Gumbel distribution of minima."},
    {"logsf", "x, loc=0, scale=1", stats_row<stats::gumbel_l::logsf>,
     "The logarithm of the survival function of the Gumbel distribution of minima."},
    {"ppf", "p, loc=0, scale=1", stats_row<stats::gumbel_l::ppf>,
     "The quantile function, inverse of cdf, of the Gumbel distribution of minima."},
};

const Function gumbel_r_functions[] = {
    {"logpdf", "x, loc=0, scale=1", stats_row<stats::gumbel_r::logpdf>,
     "The logarithm of the density of the Gumbel distribution of maxima."},
    {"pdf", "x, loc=0, scale=1", stats_row<stats::gumbel_r::pdf>, "The density of the Gumbel distribution of maxima."},
    {"cdf", "x, loc=0, scale=1", stats_row<stats::gumbel_r::cdf>,
     "The cumulative distribution function of the Gumbel distribution of maxima."},
    {"logcdf", "x, loc=0, scale=1", stats_row<stats::gumbel_r::logcdf>,
     "The logarithm of the cumulative distribution function of the Gumbel distribution of maxima."},
    {"sf", "x, loc=0, scale=1", stats_row<stats::gumbel_r::sf>,
     "The survival function, 1 - cdf, of the Gumbel distribution of maxima."},
    {"logsf", "x, loc=0, scale=1", stats_row<stats::gumbel_r::logsf>,
     "The logarithm of the survival function of the Gumbel distribution of maxima."},
    {"ppf", "p, loc=0, scale=1", stats_row<stats::gumbel_r::ppf>,
     "The quantile function, inverse of cdf, of the Gumbel distribution of maxima."},
};

const Function laplace_functions[] = {
    {"logpdf", "x, loc=0, scale=1", stats_row<stats::laplace::logpdf>,
     "The logarithm of the density of the Laplace distribution."},
    {"pdf", "x, loc=0, scale=1", stats_row<stats::laplace::pdf>, "The density of the Laplace distribution."},
    {"cdf", "x, loc=0, scale=1", stats_row<stats::laplace::cdf>,
     "The cumulative distribution function of the Laplace distribution."},
};

const Function logistic_functions[] = {
    {"logpdf", "x, loc=0, scale=1", stats_row<stats::logistic::logpdf>,
     "The logarithm of the density of the logistic distribution."},
    {"pdf", "x, loc=0, scale=1", stats_row<stats::logistic::pdf>, "The density of the logistic distribution."},
    {"cdf", "x, loc=0, scale=1", stats_row<stats::logistic::cdf>,
     "The cumulative distribution function of the logistic distribution."},
    {"sf", "x, loc=0, scale=1", stats_row<stats::logistic::sf>,
     "The survival function, 1 - cdf, of the logistic distribution."},
    {"ppf", "x, loc=0, scale=1", stats_row<stats::logistic::ppf>,
     "The quantile function, inverse of cdf, of the logistic distribution."},
    {"isf", "x, loc=0, scale=1", stats_row<stats::logistic::isf>,
     "The inverse of the survival function of the logistic distribution."},
};

const Function multinomial_functions[] = {
    {"logpmf", "x, n, p", stats_row<stats::multinomial::logpmf>,
     "The logarithm of the probability mass of the multinomial distribution."},
    {"pmf", "x, n, p", stats_row<stats::multinomial::pmf>, "The probability mass of the multinomial distribution."},
};

const Function multivariate_normal_functions[] = {
    {"logpdf", "x, mean, cov, allow_singular=None",
     [](const Arguments& a) -> Value {
       a.require_absent("allow_singular");
       return stats::multivariate_normal::logpdf(a.array("x"), a.array("mean"), a.array("cov"));
     },
     "The logarithm of the density of the multivariate normal distribution."},
    {"pdf", "x, mean, cov", stats_row<stats::multivariate_normal::pdf>,
     "The density of the multivariate normal distribution."},
};

const Function nbinom_functions[] = {
    {"logpmf", "k, n, p, loc=0", stats_row<stats::nbinom::logpmf>,
     "The logarithm of the probability mass of the negative binomial distribution."},
    {"pmf", "k, n, p, loc=0", stats_row<stats::nbinom::pmf>,
     "The probability mass of the negative binomial distribution."},
};

const Function norm_functions[] = {
    {"logpdf", "x, loc=0, scale=1", stats_row<stats::norm::logpdf>,
     "The logarithm of the density of the normal distribution."},
    {"pdf", "x, loc=0, scale=1", stats_row<stats::norm::pdf>, "The density of the normal distribution."},
    {"cdf", "x, loc=0, scale=1", stats_row<stats::norm::cdf>,
     "The cumulative distribution function of the normal distribution."},
    {"logcdf", "x, loc=0, scale=1", stats_row<stats::norm::logcdf>,
     "The logarithm of the cumulative distribution function of the normal distribution."},
    {"sf", "x, loc=0, scale=1", stats_row<stats::norm::sf>,
     "The survival function, 1 - cdf, of the normal distribution."},
    {"logsf", "x, loc=0, scale=1", stats_row<stats::norm::logsf>,
     "The logarithm of the survival function of the normal distribution."},
    {"ppf", "q, loc=0, scale=1", stats_row<stats::norm::ppf>,
     "The quantile function, inverse of cdf, of the normal distribution."},
    {"isf", "q, loc=0, scale=1", stats_row<stats::norm::isf>,
     "The inverse of the survival function of the normal distribution."},
};

const Function pareto_functions[] = {
    {"logpdf", "x, b, loc=0, scale=1", stats_row<stats::pareto::logpdf>,
     "The logarithm of the density of the Pareto distribution."},
    {"pdf", "x, b, loc=0, scale=1", stats_row<stats::pareto::pdf>, "The density of the Pareto distribution."},
    {"cdf", "x, b, loc=0, scale=1", stats_row<stats::pareto::cdf>,
     "The cumulative distribution function of the Pareto distribution."},
    {"logcdf", "x, b, loc=0, scale=1", stats_row<stats::pareto::logcdf>,
     "The logarithm of the cumulative distribution function of the Pareto distribution."},
    {"sf", "x, b, loc=0, scale=1", stats_row<stats::pareto::sf>,
     "The survival function, 1 - cdf, of the Pareto distribution."},
    {"logsf", "x, b, loc=0, scale=1", stats_row<stats::pareto::logsf>,
     "The logarithm of the survival function of the Pareto distribution."},
    {"ppf", "q, b, loc=0, scale=1", stats_row<stats::pareto::ppf>,
     "The quantile function, inverse of cdf, of the Pareto distribution."},
};

const Function poisson_functions[] = {
    {"logpmf", "k, mu, loc=0", stats_row<stats::poisson::logpmf>,
     "The logarithm of the probability mass of the Poisson distribution."},
    {"pmf", "k, mu, loc=0", stats_row<stats::poisson::pmf>, "The probability mass of the Poisson distribution."},
    {"cdf", "k, mu, loc=0", stats_row<stats::poisson::cdf>,
     "The cumulative distribution function of the Poisson distribution."},
    {"entropy", "mu, loc=0", stats_row<stats::poisson::entropy>, "The entropy of the Poisson distribution."},
};

const Function t_functions[] = {
    {"logpdf", "x, df, loc=0, scale=1", stats_row<stats::t::logpdf>,
     "The logarithm of the density of Student's t distribution."},
    {"pdf", "x, df, loc=0, scale=1", stats_row<stats::t::pdf>, "The density of Student's t distribution."},
};

const Function truncnorm_functions[] = {
    {"logpdf", "x, a, b, loc=0, scale=1", stats_row<stats::truncnorm::logpdf>,
     "The logarithm of the density of the truncated normal distribution."},
    {"pdf", "x, a, b, loc=0, scale=1", stats_row<stats::truncnorm::pdf>,
     "The density of the truncated normal distribution."},
    {"cdf", "x, a, b, loc=0, scale=1", stats_row<stats::truncnorm::cdf>,
     "The cumulative distribution function of the truncated normal distribution."},
    {"logcdf", "x, a, b, loc=0, scale=1", stats_row<stats::truncnorm::logcdf>,
     "The logarithm of the cumulative distribution function of the truncated normal distribution."},
    {"sf", "x, a, b, loc=0, scale=1", stats_row<stats::truncnorm::sf>,
     "The survival function, 1 - cdf, of the truncated normal distribution."},
    {"logsf", "x, a, b, loc=0, scale=1", stats_row<stats::truncnorm::logsf>,
     "The logarithm of the survival function of the truncated normal distribution."},
};

const Function uniform_functions[] = {
    {"logpdf", "x, loc=0, scale=1", stats_row<stats::uniform::logpdf>,
     "The logarithm of the density of the uniform distribution."},
    {"pdf", "x, loc=0, scale=1", stats_row<stats::uniform::pdf>, "The density of the uniform distribution."},
    {"cdf", "x, loc=0, scale=1", stats_row<stats::uniform::cdf>,
     "The cumulative distribution function of the uniform distribution."},
    {"ppf", "q, loc=0, scale=1", stats_row<stats::uniform::ppf>,
     "The quantile function, inverse of cdf, of the uniform distribution."},
};

const Function vonmises_functions[] = {
    {"logpdf", "x, kappa", stats_row<stats::vonmises::logpdf>,
     "The logarithm of the density of the von Mises distribution."},
    {"pdf", "x, kappa", stats_row<stats::vonmises::pdf>, "The density of the von Mises distribution."},
};

const Function wrapcauchy_functions[] = {
    {"logpdf", "x, c", stats_row<stats::wrapcauchy::logpdf>,
     "The logarithm of the density of the wrapped Cauchy distribution."},
    {"pdf", "x, c", stats_row<stats::wrapcauchy::pdf>, "The density of the wrapped Cauchy distribution."},
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
