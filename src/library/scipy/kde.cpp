// jax.scipy.stats.gaussian_kde: estimation, evaluation, integrals and draws.
#include <capibara/lax.h>
#include <capibara/numpy/contraction.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/indexing.h>
#include <capibara/numpy/linalg.h>
#include <capibara/numpy/manipulation.h>
#include <capibara/numpy/reductions.h>
#include <capibara/numpy/statistics.h>
#include <capibara/random.h>
#include <capibara/scipy/kde.h>
#include <capibara/scipy/linalg.h>
#include <capibara/scipy/special.h>

#include <cmath>
#include <numbers>

#include "lax/operators/promote.h"

namespace capibara::jax::scipy::stats {

namespace {

Array bandwidth_factor(const GaussianKde& kde, const Bandwidth& method) {
  const double d = static_cast<double>(kde.d());
  if (const auto* given = std::get_if<Array>(&method)) return *given;
  if (const auto* function = std::get_if<2>(&method)) return (*function)(kde);
  const std::string& name = std::get<std::string>(method);
  if (name == "scott") return numpy::power(kde.neff, -1.0 / (d + 4));
  if (name == "silverman") return numpy::power(kde.neff * (d + 2) / 4.0, -1.0 / (d + 4));
  throw ValueError(
      concat("gaussian_kde: bw_method should be 'scott', 'silverman', a scalar, or a callable, got '", name, "'"));
}

// The value of the kernel, or its logarithm, for every point (a row of the result) and every observation.
Array kernel_logarithms(const GaussianKde& kde, const Array& points) {
  const Arrays promoted =
      promote_dtypes_inexact({numpy::matrix_transpose(kde.dataset), numpy::matrix_transpose(points), kde.inv_cov});
  const Array whitening = scipy::linalg::cholesky(promoted[2], true);
  const Array observed = numpy::dot(promoted[0], whitening), located = numpy::dot(promoted[1], whitening);
  const double normalizer = 0.5 * static_cast<double>(kde.d()) * std::log(2 * std::numbers::pi);
  const Array scale = numpy::sum(numpy::log(numpy::diag(whitening))) - normalizer;
  const Array expanded = numpy::expand_dims(observed, 0);
  const Array difference = expanded - numpy::expand_dims(located, 1);
  return scale - 0.5 * numpy::sum(numpy::square(difference), {.axis = -1});
}

// The integral of a density times a Gaussian around `mean`, given the factor of the sum of both covariances.
Array convolve(const std::pair<Array, bool>& factor, const Array& normalizer, const GaussianKde& kde,
               const Array& mean) {
  const Array difference = kde.dataset - numpy::expand_dims(mean, 1);
  const Array solved = scipy::linalg::cho_solve(factor, difference);
  const Array exponent = 0.5 * numpy::sum(difference * solved, {.axis = 0});
  return normalizer * numpy::sum(numpy::exp(-exponent) * kde.weights);
}

Array normalizer_of(const std::pair<Array, bool>& factor, int64_t d) {
  const double root = std::pow(std::sqrt(2 * std::numbers::pi), static_cast<double>(d));
  return 1.0 / (root * numpy::prod(numpy::diag(factor.first)));
}

}  // namespace

GaussianKde::GaussianKde(const Array& observations, const GaussianKdeOptions& options) {
  dataset = numpy::atleast_2d(observations);
  if (is_complex(dataset.dtype())) throw NotImplementedError("gaussian_kde does not support complex data");
  if (dataset.size() <= 1) throw ValueError("gaussian_kde: `dataset` input should have multiple elements.");
  if (options.weights) {
    const Arrays both = promote_dtypes_inexact({dataset, *options.weights});
    dataset = both[0];
    weights = numpy::atleast_1d(both[1]);
    weights = weights / numpy::sum(weights);
    if (weights.ndim() != 1) throw ValueError("gaussian_kde: `weights` input should be one-dimensional.");
    if (weights.shape()[0] != n())
      throw ValueError(concat("gaussian_kde: `weights` input should be of length n = ", n()));
  } else {
    dataset = promote_inexact("gaussian_kde", dataset);
    weights = lax::full({n()}, Array(1.0 / static_cast<double>(n())), dataset.dtype());
  }
  neff = 1 / numpy::sum(numpy::square(weights));
  const Array factor = bandwidth_factor(*this, options.bw_method);
  const Array of_data = numpy::atleast_2d(numpy::cov(dataset, {.aweights = weights}));
  const Array squared = numpy::square(factor);
  covariance = of_data * squared;
  inv_cov = numpy::linalg::inv(of_data) / squared;
}

Array GaussianKde::columns(const Array& points) const {
  if (is_complex(points.dtype())) throw NotImplementedError("gaussian_kde does not support complex coordinates");
  const Array all = numpy::atleast_2d(points);
  const int64_t rows = all.shape()[0];
  if (rows == d()) return all;
  if (rows == 1 && all.shape()[1] == d()) return lax::reshape(all, {d(), 1});
  throw ValueError(concat("points have dimension ", rows, ", dataset has dimension ", d()));
}

Array GaussianKde::evaluate(const Array& points) const {
  const Array logarithms = kernel_logarithms(*this, columns(points));
  return numpy::sum(weights * numpy::exp(logarithms), {.axis = -1});
}

Array GaussianKde::logpdf(const Array& points) const {
  Array logarithm = numpy::log(weights);
  return special::logsumexp(logarithm + kernel_logarithms(*this, columns(points)), {.axis = -1});
}

Array GaussianKde::integrate_gaussian(const Array& mean, const Array& cov) const {
  const Array center = numpy::atleast_1d(numpy::squeeze(mean)), spread = numpy::atleast_2d(cov);
  if (center.shape() != Shape{d()}) throw ValueError(concat("mean does not have dimension ", d()));
  if (spread.shape() != Shape{d(), d()}) throw ValueError(concat("covariance does not have dimension ", d()));
  const auto factor = scipy::linalg::cho_factor(covariance + spread);
  return convolve(factor, normalizer_of(factor, d()), *this, center);
}

Array GaussianKde::integrate_box_1d(const Array& low, const Array& high) const {
  if (d() != 1) throw ValueError("integrate_box_1d() only handles 1D pdfs");
  if (low.ndim() != 0 || high.ndim() != 0) {
    throw ValueError("the limits of integration in integrate_box_1d must be scalars");
  }
  const Array sigma = numpy::squeeze(numpy::sqrt(covariance));
  const Array below = numpy::squeeze((low - dataset) / sigma), above = numpy::squeeze((high - dataset) / sigma);
  Array ndtr_above = special::ndtr(above);
  return numpy::sum(weights * (ndtr_above - special::ndtr(below)));
}

Array GaussianKde::integrate_kde(const GaussianKde& other) const {
  if (other.d() != d()) throw ValueError("KDEs are not the same dimensionality");
  const auto factor = scipy::linalg::cho_factor(covariance + other.covariance);
  const Array normalizer = normalizer_of(factor, d());
  const GaussianKde& small = n() < other.n() ? *this : other;
  const GaussianKde& large = n() < other.n() ? other : *this;
  // All pairs at once: differences of the columns of both.
  const Array expanded = numpy::expand_dims(large.dataset, 2);
  const Array difference = expanded - numpy::expand_dims(small.dataset, 1);
  const Array flat = lax::reshape(difference, {d(), large.n() * small.n()});
  const Array exponent = 0.5 * numpy::sum(flat * scipy::linalg::cho_solve(factor, flat), {.axis = 0});
  const Array values = lax::reshape(numpy::exp(-exponent), {large.n(), small.n()});
  const Array inner = normalizer * numpy::sum(values * numpy::expand_dims(large.weights, 1), {.axis = 0});
  return numpy::sum(inner * small.weights);
}

Array GaussianKde::resample(const Array& key, const Shape& shape) const {
  const Array keys = random::split(key);
  const Array chosen = random::choice(keys[0], Array(n()), {.shape = shape, .p = weights});
  const Array center = lax::full({d()}, Array(0), covariance.dtype());
  const Array noise =
      random::multivariate_normal(keys[1], center, covariance, {.shape = shape, .dtype = dataset.dtype()});
  Array taken = numpy::take(dataset, chosen, {.axis = 1});
  return taken + numpy::transpose(noise);
}

}  // namespace capibara::jax::scipy::stats
