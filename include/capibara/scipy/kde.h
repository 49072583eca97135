// jax.scipy.stats.gaussian_kde: a density estimated by a Gaussian around every observation.
#pragma once

#include <capibara/array.h>

#include <functional>
#include <optional>
#include <string>
#include <variant>

namespace capibara::jax::scipy::stats {

class GaussianKde;

// "scott", "silverman", the factor itself, or a function that computes it from the observations.
using Bandwidth = std::variant<std::string, Array, std::function<Array(const GaussianKde&)>>;

struct GaussianKdeOptions {
  Bandwidth bw_method = "scott";
  std::optional<Array> weights = {};  // of the observations; equal by default
};

class GaussianKde {
 public:
  Array neff;     // 1 / sum of the squared weights, which sum to 1
  Array dataset;  // dimensions in rows, observations in columns
  Array weights;
  Array covariance;  // of the kernel: of the data, times the squared bandwidth factor
  Array inv_cov;

  GaussianKde() = default;
  explicit GaussianKde(const Array& observations, const GaussianKdeOptions& options = {});

  int64_t d() const { return dataset.shape()[0]; }
  int64_t n() const { return dataset.shape()[1]; }

  Array evaluate(const Array& points) const;  // the density at each column
  Array logpdf(const Array& points) const;
  Array integrate_gaussian(const Array& mean, const Array& cov) const;  // of the density times a Gaussian
  Array integrate_box_1d(const Array& low, const Array& high) const;
  Array integrate_kde(const GaussianKde& other) const;              // of the product of two densities
  Array resample(const Array& key, const Shape& shape = {}) const;  // draws, of shape (d, shape...)

 private:
  Array columns(const Array& points) const;
};

}  // namespace capibara::jax::scipy::stats
