// jax.random: the gamma distribution and those derived from it.
#include "library/random/random_sampler.h"

#include <cmath>

namespace capibara::jax::random {

Array draw_log_gamma(const Array& key, const Array& a, const Shape& shape, DType dtype, bool log_space) {
  return call("_gamma", {key, a}, [&](std::span<const Array> in) {
    static const Primitive p = primitive("random_gamma");
    Array alpha = broadcast_to(lax::convert_element_type(in[1], dtype, false), shape);
    return bind1(p, {in[0], alpha}, {{"log_space", log_space}});
  });
}

Array gamma(const Array& key, const Array& a, const ParameterOptions& options) {
  Array typed = checked_key("gamma", key);
  DType dtype = float_dtype("gamma", options.dtype);
  return draw_log_gamma(typed, a, parameter_shape("gamma", options.shape, {a.shape()}), dtype, false);
}

Array loggamma(const Array& key, const Array& a, const ParameterOptions& options) {
  Array typed = checked_key("loggamma", key);
  DType dtype = float_dtype("loggamma", options.dtype);
  return draw_log_gamma(typed, a, parameter_shape("gamma", options.shape, {a.shape()}), dtype, true);
}

Array beta(const Array& key, const Array& a, const Array& b, const ParameterOptions& options) {
  Array typed = checked_key("beta", key);
  DType dtype = float_dtype("beta", options.dtype);
  require_safe_cast("beta", dtype, {a, b});
  Shape shape = parameter_shape("beta", options.shape, {a.shape(), b.shape()});
  return call("_beta", {typed, a, b}, [&](std::span<const Array> in) {
    Array first = lax::convert_element_type(in[1], dtype, false);
    Array second = lax::convert_element_type(in[2], dtype, false);
    Arrays keys = split_keys(in[0], 2);
    first = broadcast_to(first, shape);
    second = broadcast_to(second, shape);
    Array log_a = draw_log_gamma(keys[0], first, shape, dtype, true);
    Array log_b = draw_log_gamma(keys[1], second, shape, dtype, true);
    // a / (a + b), scaled so that neither underflows.
    Array greatest = lax::max(log_a, log_b);
    Array scaled_a = lax::exp(lax::sub(log_a, greatest)), scaled_b = lax::exp(lax::sub(log_b, greatest));
    return lax::div(scaled_a, lax::add(scaled_a, scaled_b));
  });
}

Array dirichlet(const Array& key, const Array& alpha, const ParameterOptions& options) {
  Array typed = checked_key("dirichlet", key);
  DType dtype = float_dtype("dirichlet", options.dtype);
  if (alpha.ndim() < 1) throw ValueError("dirichlet requires alpha.ndim >= 1, got alpha.ndim == 0");
  Shape shape = parameter_shape("dirichlet", options.shape, {Shape(alpha.shape().begin(), alpha.shape().end() - 1)});
  shape.push_back(alpha.shape(-1));
  return call("_dirichlet", {typed, alpha}, [&](std::span<const Array> in) {
    Array concentration = lax::convert_element_type(in[1], dtype, false);
    Array logs = draw_log_gamma(in[0], concentration, shape, dtype, true);
    Array greatest = lax::stop_gradient(lax::reduce_max(logs, {.axes = {logs.ndim() - 1}}));
    Array weights = lax::exp(logs - lax::expand_dims(greatest, {greatest.ndim()}));
    Array total = sum_last(weights);
    return weights / lax::expand_dims(total, {total.ndim()});
  });
}

Array t(const Array& key, const Array& df, const ParameterOptions& options) {
  Array typed = checked_key("t", key);
  DType dtype = float_dtype("t", options.dtype);
  Shape shape = parameter_shape("t", options.shape, {df.shape()});
  require_safe_cast("t", dtype, {df});
  return call("_t", {typed, df}, [&](std::span<const Array> in) {
    Array freedom = lax::convert_element_type(in[1], dtype, false);
    Arrays keys = split_keys(in[0], 2);
    Array n = draw_normal(keys[0], shape, dtype);
    Array half = lax::div(freedom, scalar_of(dtype, 2));
    Array g = draw_log_gamma(keys[1], half, shape, dtype, false);
    return n * lax::sqrt(half / g);
  });
}

Array chisquare(const Array& key, const Array& df, const ParameterOptions& options) {
  Array typed = checked_key("chisquare", key);
  DType dtype = float_dtype("chisquare", options.dtype);
  Shape shape = parameter_shape("chisquare", options.shape, {df.shape()});
  require_safe_cast("chisquare", dtype, {df});
  return call("_chisquare", {typed, df}, [&](std::span<const Array> in) {
    Array two = scalar_of(dtype, 2);
    Array half = lax::div(lax::convert_element_type(in[1], dtype, false), two);
    return lax::mul(lax::exp(draw_log_gamma(in[0], half, shape, dtype, true)), two);
  });
}

Array f(const Array& key, const Array& dfnum, const Array& dfden, const ParameterOptions& options) {
  Array typed = checked_key("f", key);
  DType dtype = float_dtype("f", options.dtype);
  Shape shape = parameter_shape("f", options.shape, {dfnum.shape(), dfden.shape()});
  require_safe_cast("f", dtype, {dfnum, dfden});
  return call("_f", {typed, dfnum, dfden}, [&](std::span<const Array> in) {
    Array denominator_freedom = lax::convert_element_type(in[2], dtype, false);
    Array numerator_freedom = lax::convert_element_type(in[1], dtype, false);
    Arrays keys = split_keys(in[0], 2);
    Array above = chisquare(keys[1], numerator_freedom, {.shape = shape, .dtype = dtype});
    Array below = chisquare(keys[0], denominator_freedom, {.shape = shape, .dtype = dtype});
    Array numerator = above / numerator_freedom;
    return lax::div(numerator, below / denominator_freedom);
  });
}

}  // namespace capibara::jax::random
