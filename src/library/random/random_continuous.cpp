// jax.random: continuous distributions derived from uniform and normal draws.
#include "library/random/random_sampler.h"

#include <capibara/config.h>

#include <cmath>
#include <limits>

#include "core/array/promotion.h"
#include "lax/operators/plain_number.h"

namespace capibara::jax::random {

namespace {

// Converts both to their common floating dtype.
std::pair<Array, Array> promote_inexact(const Array& a, const Array& b) {
  ScalarType to = promote_types({a.dtype(), a.weak_type()}, {b.dtype(), b.weak_type()}, capibara::config().enable_x64);
  if (!is_inexact(to.dtype)) to.dtype = default_float();
  return {array_as(a, to.dtype, to.weak), array_as(b, to.dtype, to.weak)};
}

Array power(const Array& x, const Array& y) {
  auto [base, exponent] = promote_inexact(x, y);
  Shape shape = lax::broadcast_shapes({base.shape(), exponent.shape()});
  Array broadcasted = broadcast_to(base, shape);
  return lax::pow(broadcasted, broadcast_to(exponent, shape));
}

Array swap_last(const Array& x) { return move_axis(x, x.ndim() - 1, x.ndim() - 2); }

Array symmetrized(const Array& x) { return lax::div(lax::add(x, swap_last(x)), scalar_of(x.dtype(), 2)); }

// True where row >= column, in the shape of x.
Array on_or_below_diagonal(const Array& x) {
  Array positions = lax::broadcasted_iota(DType::int32, x.shape(), x.ndim() - 2);
  return lax::ge(positions, lax::broadcasted_iota(DType::int32, x.shape(), x.ndim() - 1));
}

// columns * sqrt(weights), one weight per column.
Array weighted_columns(const Array& columns, const Array& weights) {
  return lax::mul(columns, lax::expand_dims(lax::sqrt(weights), {weights.ndim() - 1}));
}

// A matrix whose product with its transpose is the covariance.
Array covariance_factor(const Array& cov, const std::string& method) {
  if (method == "svd") {
    static const Primitive svd = primitive("svd");
    Arrays out = capibara::bind(
        svd, Arrays{cov},
        {{"algorithm", Attr()}, {"compute_uv", true}, {"full_matrices", true}, {"subset_by_index", Attr()}});
    return weighted_columns(out[1], out[0]);
  }
  if (method == "eigh") {
    static const Primitive eigh = primitive("eigh");
    Arrays out = capibara::bind(
        eigh, Arrays{symmetrized(cov)},
        {{"algorithm", Attr()}, {"lower", true}, {"sort_eigenvalues", true}, {"subset_by_index", Attr()}});
    return weighted_columns(out[0], out[1]);
  }
  static const Primitive cholesky = primitive("cholesky");
  Array factor = bind1(cholesky, {symmetrized(cov)});
  Array on_or_below_diagonal_factor = on_or_below_diagonal(factor);
  return lax::select(on_or_below_diagonal_factor, factor, filled(factor.shape(), factor.dtype(), 0));
}

// factor[..., i, j] times vectors[..., j].
Array apply_factor(const Array& factor, const Array& vectors) {
  if (factor.ndim() == 2) {
    return lax::dot_general(
        vectors, factor,
        {.lhs_contracting = {vectors.ndim() - 1}, .rhs_contracting = {1}, .lhs_batch = {}, .rhs_batch = {}});
  }
  int64_t n = factor.shape(-1);
  Shape batch(vectors.shape().begin(), vectors.shape().end() - 1), matrices = batch;
  matrices.insert(matrices.end(), {n, n});
  Ints dims;
  for (std::size_t i = 0; i < batch.size(); ++i) dims.push_back(static_cast<int64_t>(i));
  int64_t last = static_cast<int64_t>(batch.size());
  return lax::dot_general(
      broadcast_to(factor, matrices), vectors,
      {.lhs_contracting = {last + 1}, .rhs_contracting = {last}, .lhs_batch = dims, .rhs_batch = dims});
}

}  // namespace

// ---- normal -------------------------------------------------------------------------------------------------------

Array normal(const Array& key, const DrawOptions& options) {
  Array typed = checked_key("normal", key);
  DType dtype = options.dtype ? canonicalize(*options.dtype, capibara::config().enable_x64) : default_float();
  if (!is_inexact(dtype)) {
    throw ValueError(concat("dtype argument to `normal` must be a float or complex dtype, got ", dtype_name(dtype)));
  }
  return draw_normal(typed, checked_shape("normal", options.shape), dtype);
}

Array truncated_normal(const Array& key, const Array& lower, const Array& upper, const ParameterOptions& options) {
  Array typed = checked_key("truncated_normal", key);
  DType dtype = float_dtype("truncated_normal", options.dtype);
  Shape shape = parameter_shape("truncated_normal", options.shape, {lower.shape(), upper.shape()});
  return call("_truncated_normal", {typed, lower, upper}, [&](std::span<const Array> in) {
    Array root_two = scalar_of(dtype, std::sqrt(2.0));
    Array low = lax::convert_element_type(in[1], dtype, false), high = lax::convert_element_type(in[2], dtype, false);
    Array a = lax::erf(lax::div(low, root_two)), b = lax::erf(lax::div(high, root_two));
    Array out = lax::mul(root_two, lax::erf_inv(draw_uniform(in[0], shape, dtype, a, b)));
    // Rounding must not leave the open interval.
    Array least = lax::nextafter(lax::stop_gradient(low), scalar_of(dtype, infinity));
    Array greatest = lax::nextafter(lax::stop_gradient(high), scalar_of(dtype, -infinity));
    int64_t rank = out.ndim();
    auto fit = [&](const Array& x) { return x.ndim() == 0 ? x : lax::broadcast_to_rank(x, rank); };
    Array fit_least = fit(least);
    return clip(out, fit_least, fit(greatest));
  });
}

Array multivariate_normal(const Array& key, const Array& mean, const Array& cov,
                          const MultivariateNormalOptions& options) {
  Array typed = checked_key("multivariate_normal", key);
  auto [m, c] = promote_inexact(mean, cov);
  if (options.method != "svd" && options.method != "eigh" && options.method != "cholesky") {
    throw ValueError(
        concat("multivariate_normal: method must be one of {'svd', 'eigh', 'cholesky'}, got '", options.method, "'"));
  }
  DType dtype = float_dtype("multivariate_normal", options.dtype ? options.dtype : std::optional(m.dtype()));
  if (m.ndim() < 1) throw ValueError("multivariate_normal requires mean.ndim >= 1, got mean.ndim == 0");
  if (c.ndim() < 2) throw ValueError(concat("multivariate_normal requires cov.ndim >= 2, got cov.ndim == ", c.ndim()));
  int64_t n = m.shape(-1);
  if (c.shape(-1) != n || c.shape(-2) != n) {
    throw ValueError(concat("multivariate_normal requires cov.shape == (..., n, n) for n=", n, ", but got ",
                            to_string(c.type()), "."));
  }
  Shape shape =
      parameter_shape("normal", options.shape,
                      {Shape(m.shape().begin(), m.shape().end() - 1), Shape(c.shape().begin(), c.shape().end() - 2)});
  return call("_multivariate_normal", {typed, m, c}, [&](std::span<const Array> in) {
    Shape drawn = shape;
    drawn.push_back(n);
    Array factor = covariance_factor(in[2], options.method);
    Array samples = draw_normal(in[0], drawn, dtype);
    ScalarType to = promote_types({factor.dtype(), factor.weak_type()}, {samples.dtype(), samples.weak_type()},
                                  capibara::config().enable_x64);
    Array array_as_factor = array_as(factor, to.dtype, to.weak);
    return in[1] + apply_factor(array_as_factor, array_as(samples, to.dtype, to.weak));
  });
}

Array lognormal(const Array& key, const LognormalOptions& options) {
  Array typed = checked_key("lognormal", key);
  DType dtype = options.dtype ? canonicalize(*options.dtype, capibara::config().enable_x64) : default_float();
  if (!is_inexact(dtype)) {
    throw ValueError(concat("dtype argument to `lognormal` must be a float or complex dtype, got ", dtype_name(dtype)));
  }
  Shape shape = parameter_shape("lognormal", options.shape, {options.sigma.shape()});
  require_safe_cast("lognormal", dtype, {options.sigma});
  Array draw_normal_typed = draw_normal(typed, shape, dtype);
  return lax::exp(draw_normal_typed * lax::convert_element_type(options.sigma, dtype, false));
}

Array generalized_normal(const Array& key, const Array& p, const DrawOptions& options) {
  Array typed = checked_key("generalized_normal", key);
  DType dtype = float_dtype("generalized_normal", options.dtype);
  Shape shape = checked_shape("generalized_normal", options.shape);
  return call("_generalized_normal", {typed, p}, [&](std::span<const Array> in) {
    Arrays keys = split_keys(in[0], 2);
    Array inverse = Array(1) / in[1];
    Array g = gamma(keys[0], inverse, {.shape = shape, .dtype = dtype});
    Array rademacher_keys = rademacher(keys[1], {.shape = shape, .dtype = dtype});
    return rademacher_keys * power(g, inverse);
  });
}

// ---- by inverting the distribution function -------------------------------------------------------------------------

Array exponential(const Array& key, const DrawOptions& options) {
  Array typed = checked_key("exponential", key);
  DType dtype = float_dtype("exponential", options.dtype);
  return draw_exponential(typed, checked_shape("exponential", options.shape), dtype);
}

Array laplace(const Array& key, const DrawOptions& options) {
  Array typed = checked_key("laplace", key);
  DType dtype = float_dtype("laplace", options.dtype);
  Shape shape = checked_shape("laplace", options.shape);
  return call("_laplace", {typed}, [&](std::span<const Array> in) {
    Array u = draw_uniform(in[0], shape, dtype, scalar_of(dtype, -1 + finfo(dtype).epsneg), Array(1.0));
    Array sign_of_value = lax::sign(u);
    return lax::mul(sign_of_value, lax::log1p(lax::neg(lax::abs(u))));
  });
}

Array logistic(const Array& key, const DrawOptions& options) {
  Array typed = checked_key("logistic", key);
  DType dtype = float_dtype("logistic", options.dtype);
  Shape shape = checked_shape("logistic", options.shape);
  return call("_logistic", {typed}, [&](std::span<const Array> in) {
    Array x = draw_positive_uniform(in[0], shape, dtype);
    Array logarithm = lax::log(x);
    return lax::sub(logarithm, lax::log1p(lax::neg(x)));
  });
}

Array cauchy(const Array& key, const DrawOptions& options) {
  Array typed = checked_key("cauchy", key);
  DType dtype = float_dtype("cauchy", options.dtype);
  Shape shape = checked_shape("cauchy", options.shape);
  return call("_cauchy", {typed}, [&](std::span<const Array> in) {
    Array u = draw_uniform(in[0], shape, dtype, scalar_of(dtype, finfo(dtype).eps), Array(1.0));
    return lax::tan(lax::mul(constant(u, 3.14159265358979323846), lax::sub(u, constant(u, 0.5))));
  });
}

Array pareto(const Array& key, const Array& b, const ParameterOptions& options) {
  Array typed = checked_key("pareto", key);
  DType dtype = float_dtype("pareto", options.dtype);
  Shape shape = parameter_shape("pareto", options.shape, {b.shape()});
  require_safe_cast("pareto", dtype, {b});
  return call("_pareto", {typed, b}, [&](std::span<const Array> in) {
    Array scale = lax::convert_element_type(in[1], dtype, false);
    return lax::exp(draw_exponential(in[0], shape, dtype) / scale);
  });
}

Array weibull_min(const Array& key, const Array& scale, const Array& concentration, const DrawOptions& options) {
  Array typed = checked_key("weibull_min", key);
  DType dtype = float_dtype("weibull_min", options.dtype);
  Shape shape = checked_shape("weibull_min", options.shape);
  return call("_weibull_min", {typed, scale, concentration}, [&](std::span<const Array> in) {
    Array u = draw_uniform(in[0], shape, dtype, Array(0), Array(1));
    Array negated = lax::neg(lax::log1p(lax::neg(u)));
    return power(negated, Array(1.0) / in[2]) * in[1];
  });
}

Array rayleigh(const Array& key, const Array& scale, const ParameterOptions& options) {
  Array typed = checked_key("rayleigh", key);
  DType dtype = float_dtype("rayleigh", options.dtype);
  Shape shape = parameter_shape("rayleigh", options.shape, {scale.shape()});
  require_safe_cast("rayleigh", dtype, {scale});
  return call("_rayleigh", {typed, scale}, [&](std::span<const Array> in) {
    Array u = draw_uniform(in[0], shape, dtype);
    Array factor = broadcast_to(lax::convert_element_type(in[1], dtype, false), shape);
    return lax::mul(factor, lax::sqrt(lax::mul(lax::log(u), constant(factor, -2))));
  });
}

Array triangular(const Array& key, const Array& left, const Array& mode, const Array& right,
                 const ParameterOptions& options) {
  Array typed = checked_key("triangular", key);
  DType dtype = float_dtype("triangular", options.dtype);
  Shape shape = parameter_shape("triangular", options.shape, {left.shape(), mode.shape(), right.shape()});
  require_safe_cast("triangular", dtype, {left, mode, right});
  auto fit = [&](const Array& x) { return broadcast_to(lax::convert_element_type(x, dtype, false), shape); };
  Array low = fit(left), high = fit(right), middle = fit(mode);
  Array difference = lax::sub(middle, low), share = lax::div(difference, lax::sub(high, low));
  Array u = draw_uniform(typed, shape, dtype);
  Array product = u * (high - low), rising = low + lax::sqrt(product * (middle - low));
  Array complement = Array(1) - u, first_product = complement * (high - low);
  Array falling = high - lax::sqrt(first_product * (high - middle));
  return lax::select(lax::lt(u, share), rising, falling);
}

// ---- from normal draws ----------------------------------------------------------------------------------------------

Array maxwell(const Array& key, const DrawOptions& options) {
  Array typed = checked_key("maxwell", key);
  DType dtype = float_dtype("maxwell", options.dtype);
  Shape shape = checked_shape("maxwell", options.shape);
  shape.push_back(3);
  return call("_maxwell", {typed}, [&](std::span<const Array> in) {
    Array x = draw_normal(in[0], shape, dtype);
    return call("norm", {x}, [](std::span<const Array> v) { return lax::sqrt(sum_last(lax::mul(v[0], v[0]))); });
  });
}

Array double_sided_maxwell(const Array& key, const Array& loc, const Array& scale, const DrawOptions& options) {
  Array typed = checked_key("double_sided_maxwell", key);
  DType dtype = float_dtype("double_sided_maxwell", options.dtype);
  Shape parameters = lax::broadcast_shapes({loc.shape(), scale.shape()});
  Shape shape = options.shape.empty() ? parameters : checked_shape("double_sided_maxwell", options.shape);
  shape.insert(shape.end(), parameters.begin(), parameters.end());
  return call("_double_sided_maxwell", {typed, loc, scale}, [&](std::span<const Array> in) {
    Arrays keys = split_keys(in[0], 2);
    Array size = maxwell(keys[0], {.shape = shape, .dtype = dtype});
    return rademacher(keys[1], {.shape = shape, .dtype = dtype}) * size * in[2] + in[1];
  });
}

// The inverse Gaussian distribution, by the transformation with two roots of Michael, Schucany and Haas.
Array wald(const Array& key, const Array& mean, const ParameterOptions& options) {
  Array typed = checked_key("wald", key);
  DType dtype = float_dtype("wald", options.dtype);
  Shape shape = parameter_shape("wald", options.shape, {mean.shape()});
  require_safe_cast("wald", dtype, {mean});
  return call("_wald", {typed, mean}, [&](std::span<const Array> in) {
    Arrays keys = split_keys(in[0], 2);
    Array m = broadcast_to(lax::convert_element_type(in[1], dtype, false), shape);
    Array v = draw_normal(keys[0], shape, dtype), z = draw_uniform(keys[1], shape, dtype);
    Array y = lax::integer_pow(v, 2);
    Array y_squared = lax::integer_pow(y, 2), m_squared = lax::integer_pow(m, 2);
    Array product = Array(4) * m * y, root = lax::sqrt(product + m_squared * y_squared);
    Array sum = m + m_squared * y / Array(2), x = sum - m / Array(2) * root;
    Array is_at_most = lax::le(z, m / (m + x));
    return lax::select(is_at_most, x, m_squared / x);
  });
}

Array ball(const Array& key, int64_t d, const BallOptions& options) {
  Array typed = checked_key("ball", key);
  DType dtype = float_dtype("ball", options.dtype);
  Shape shape = checked_shape("ball", options.shape);
  Shape points = shape;
  points.push_back(d);
  checked_shape("ball", points);
  return call("_ball", {typed, options.p}, [&](std::span<const Array> in) {
    Arrays keys = split_keys(in[0], 2);
    Array g = generalized_normal(keys[0], in[1], {.shape = points, .dtype = dtype});
    Array e = draw_exponential(keys[1], shape, dtype);
    Array sum = sum_last(power(lax::abs(g), in[1])) + e, radius = power(sum, Array(1) / in[1]);
    return g / lax::expand_dims(radius, {radius.ndim()});
  });
}

Array orthogonal(const Array& key, int64_t n, const OrthogonalOptions& options) {
  Array typed = checked_key("orthogonal", key);
  DType dtype = options.dtype ? canonicalize(*options.dtype, capibara::config().enable_x64) : default_float();
  int64_t m = options.m.value_or(n), rows = std::max(n, m), columns = std::min(n, m);
  Shape shape = checked_shape("orthogonal", options.shape);
  shape.insert(shape.end(), {rows, columns});
  checked_shape("orthogonal", shape);
  return call("_orthogonal", {typed}, [&](std::span<const Array> in) {
    static const Primitive qr = primitive("qr");
    Arrays out = capibara::bind(qr, Arrays{draw_normal(in[0], shape, dtype)},
                                {{"full_matrices", false}, {"pivoting", false}, {"use_magma", Attr()}});
    const Array &q = out[0], &r = out[1];
    Array positions = lax::broadcasted_iota(DType::int32, r.shape(), r.ndim() - 2);
    Array is_diagonal = lax::eq(positions, lax::broadcasted_iota(DType::int32, r.shape(), r.ndim() - 1));
    Array diagonal = sum_last(lax::select(is_diagonal, r, filled(r.shape(), r.dtype(), 0)));
    Array x = lax::mul(q, lax::expand_dims(lax::sign(diagonal), {diagonal.ndim() - 1}));
    return n < m ? swap_last(x) : x;
  });
}

}  // namespace capibara::jax::random
