// jax.scipy.stats: multivariate distributions.
#include <capibara/linalg.h>
#include <capibara/scipy/special.h>
#include <capibara/scipy/stats.h>

#include <cmath>

#include "library/nn/terms.h"

namespace capibara::jax::scipy::stats {

using namespace terms;

namespace dirichlet {

namespace {

Array in_simplex(const Array& x) {
  const Array total = sum(x, {.axis = 0});
  Array reduce_and_lax = lax::reduce_and(x > 0, {{0}});
  return reduce_and_lax & (lax::abs(total - 1) < 1e-6);
}

}  // namespace

Array logpdf(const Array& x_in, const Array& alpha_in) {
  const Arrays in = promote_dtypes_inexact({x_in, alpha_in});
  Array x = in[0], alpha = in[1];
  if (alpha.ndim() != 1) {
    throw ValueError(concat("dirichlet.logpdf: alpha must have one dimension, got ", to_string(alpha.type())));
  }
  if (x.ndim() == 0) throw IndexError("dirichlet.logpdf: x must have at least one dimension, got a scalar");
  const int64_t count = alpha.shape(0);
  if (x.shape(0) != count && x.shape(0) != count - 1) {
    throw ValueError(concat("dirichlet.logpdf: x must have as many entries as alpha, or one less, got ",
                            to_string(x.type()), " and ", to_string(alpha.type())));
  }
  const Array one = constant(x, 1);
  if (x.shape(0) != count) x = lax::concatenate({x, one - sum(x, {.axis = 0, .keepdims = true})}, 0);
  const Array total = sum(lax::lgamma(alpha), {.axis = 0});
  const Array normalizer = total - lax::lgamma(sum(alpha, {.axis = 0}));
  Shape column(static_cast<std::size_t>(x.ndim()), 1);
  column[0] = count;
  const Array kernel = special::xlogy(lax::reshape(alpha, column) - one, x);
  Array in_simplex_x = in_simplex(x);
  return where(in_simplex_x, sum(kernel, {.axis = 0}) - normalizer, -infinity);
}

Array pdf(const Array& x, const Array& alpha) { return lax::exp(logpdf(x, alpha)); }

}  // namespace dirichlet

namespace multinomial {

Array logpmf(const Array& x_in, const Array& n_in, const Array& p_in) {
  const Array p = promote_inexact("multinomial.logpmf", p_in);
  const Arrays counts = promote_args("multinomial.logpmf", {x_in, n_in});
  if (!is_integer(counts[0].dtype())) {
    throw ValueError(concat("multinomial.logpmf: x and n must be integers, got ", to_string(x_in.type()), " and ",
                            to_string(n_in.type())));
  }
  const Array x = lax::convert_element_type(counts[0], p.dtype(), false);
  const Array n = lax::convert_element_type(counts[1], p.dtype(), false);
  const Array xlogy_x = special::xlogy(x, p);
  const Array terms = xlogy_x - lax::lgamma(x + 1);
  const Array log_gamma = lax::lgamma(n + 1);
  const Array value = log_gamma + sum(terms, {.axis = -1});
  return where(sum(x) == n, value, -infinity);
}

Array pmf(const Array& x, const Array& n, const Array& p) { return lax::exp(logpmf(x, n, p)); }

}  // namespace multinomial

namespace multivariate_normal {

namespace {

Array sum_last(const Array& x) { return sum(x, {.axis = -1}); }

// solve(L, y) for each vector y along the last axis.
Array whiten(const Array& factor_in, const Array& y_in) {
  const int64_t size = factor_in.shape(-1);
  const Shape matrix_batch(factor_in.shape().begin(), factor_in.shape().end() - 2);
  const Shape vector_batch(y_in.shape().begin(), y_in.shape().end() - 1);
  Shape batch = lax::broadcast_shapes({matrix_batch, vector_batch}), matrices = batch, vectors = batch;
  matrices.insert(matrices.end(), {size, size});
  vectors.push_back(size);
  const Array factor = broadcast_to("multivariate_normal.logpdf", factor_in, matrices);
  const Array y = broadcast_to("multivariate_normal.logpdf", y_in, vectors);
  const Array solution =
      lax::linalg::triangular_solve(factor, lax::expand_dims(y, {y.ndim()}), {.left_side = true, .lower = true});
  return lax::squeeze(solution, {y.ndim()});
}

Array sum_of_log_diagonal(const Array& factor) {
  const Array rows = lax::broadcasted_iota(DType::int32, factor.shape(), factor.ndim() - 2);
  const Array columns = lax::broadcasted_iota(DType::int32, factor.shape(), factor.ndim() - 1);
  const Array is_equal = rows == columns;
  const Array diagonal = where(is_equal, factor, lax::zeros_like(factor));
  return sum_last(lax::log(sum_last(diagonal)));
}

}  // namespace

Array logpdf(const Array& x_in, const Array& mean_in, const Array& cov_in) {
  const Arrays in = promote_dtypes_inexact({x_in, mean_in, cov_in});
  const Array &mean = in[1], &cov = in[2], y = in[0] - mean;
  const double log_two_pi = std::log(2 * pi);
  if (mean.ndim() == 0) {
    Array quotient = -0.5 * lax::square(y) / cov;
    return quotient - 0.5 * (log_two_pi + lax::log(cov));
  }
  const int64_t n = mean.shape(-1);
  const double half_n = static_cast<double>(n) / 2;
  if (cov.ndim() == 0) {
    Array first_quotient = -0.5 * sum_last(y * y) / cov;
    return first_quotient - half_n * (log_two_pi + lax::log(cov));
  }
  if (cov.ndim() < 2 || cov.shape(-1) != n || cov.shape(-2) != n) {
    throw ValueError(concat("multivariate_normal.logpdf: cov must be ", n, " x ", n, ", got ", to_string(cov.type())));
  }
  const Array factor = lax::linalg::cholesky(cov), white = whiten(factor, y);
  Array difference = -0.5 * sum_last(white * white) - half_n * log_two_pi;
  return difference - sum_of_log_diagonal(factor);
}

Array pdf(const Array& x, const Array& mean, const Array& cov) { return lax::exp(logpdf(x, mean, cov)); }

}  // namespace multivariate_normal

}  // namespace capibara::jax::scipy::stats
