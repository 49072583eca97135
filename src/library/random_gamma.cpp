// jax.random: the gamma distribution and those made of it.
#include "library/random_sampler.h"

#include <cmath>

#include "lax/random.h"
#include "program/derive.h"

namespace capibara {

namespace {

namespace lax = jax::lax;
using namespace jax::random;

// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000. For alpha < 1 a draw of alpha + 1 is
// multiplied by U^(1/alpha); in log space that product is a sum, which does not underflow.
Array gamma_one(const Array& first_key, const Array& alpha, bool log_space) {
  DType dtype = alpha.dtype();
  auto number = [&](double value) { return scalar_of(dtype, value); };
  Array direct = lax::ge(alpha, number(1));
  Array boosted = lax::select(direct, alpha, lax::add(alpha, number(1)));
  Array d = lax::sub(boosted, number(1.0 / 3.0));
  Array c = lax::div(number(1.0 / 3.0), lax::sqrt(d));

  auto rejected = [&](std::span<const Array> state) {
    const Array &square = state[1], &cube = state[2], &u = state[3];
    Array outside = lax::ge(u, lax::sub(number(1), lax::mul(number(0.0331), lax::mul(square, square))));
    Array product = lax::mul(square, number(0.5)), difference = lax::sub(number(1), cube);
    Array bound = lax::add(product, lax::mul(d, lax::add(difference, lax::log(cube))));
    return lax::bitwise_and(outside, lax::ge(lax::log(u), bound));
  };
  auto propose = [&](std::span<const Array> state) {
    Arrays keys = split_keys(state[0], 3);
    Arrays proposal = while_loop([&](std::span<const Array> s) { return lax::le(s[2], number(0)); },
                                 [&](std::span<const Array> s) {
                                   Arrays next = split_keys(s[0], 2);
                                   Array x = draw_normal(next[1], {}, dtype);
                                   return Arrays{next[0], x, lax::add(number(1), lax::mul(x, c))};
                                 },
                                 {keys[1], number(0), number(-1)});
    const Array &x = proposal[1], &v = proposal[2];
    return Arrays{keys[0], lax::mul(x, x), lax::mul(lax::mul(v, v), v), draw_uniform(keys[2], {}, dtype)};
  };
  Arrays keys = split_keys(first_key, 2);
  Array cube = while_loop(rejected, propose, {keys[0], number(0), number(1), number(2)})[2];

  Array inverse = lax::div(number(1), alpha);
  if (log_space) {
    Array log_draw = lax::neg(draw_exponential(keys[1], {}, dtype));
    Array plain = lax::bitwise_or(direct, lax::eq(log_draw, number(0)));
    Array boost = lax::select(plain, number(0), lax::mul(log_draw, inverse));
    Array logarithm = lax::log(d);
    return lax::add(lax::add(logarithm, lax::log(cube)), boost);
  }
  Array draw = lax::sub(number(1), draw_uniform(keys[1], {}, dtype));
  Array boost = lax::select(direct, number(1), lax::pow(draw, inverse));
  return lax::mul(lax::mul(d, cube), boost);
}

}  // namespace

Array draw_gamma(const Array& keys, const Array& a, bool log_space) {
  static const Primitive split = primitive("random_split");
  int64_t count = a.size();
  if (count == 0) return a;
  Array each = bind1(split, {lax::reshape(keys, {keys.size()})}, {{"shape", Shape{count / keys.size()}}});
  Arrays inputs = {lax::reshape(each, {count}), lax::reshape(a, {count})};
  auto one = [&](std::span<const Array> in) { return Arrays{gamma_one(in[0], in[1], log_space)}; };
  if (keys.dtype() == DType::key_fry) {
    const int64_t dims[] = {0, 0};
    return lax::reshape(vmap_flat(one, inputs, dims, {0}, MappedAxis{"", count})[0], a.shape());
  }
  // The other generators would draw all elements from the first key: one element after the other.
  static const Primitive scan = primitive("scan");
  Types types = {inputs[0].type().with_shape({}), inputs[1].type().with_shape({}).strong()};
  Staged staged = stage(one, types, "gamma_one");
  Arrays operands = staged.captured;
  operands.insert(operands.end(), inputs.begin(), inputs.end());
  Arrays out = capibara::bind(scan, operands,
                              {{"jaxpr", staged.program},
                               {"length", count},
                               {"num_carry", 0},
                               {"num_consts", static_cast<int64_t>(staged.captured.size())},
                               {"reverse", false},
                               {"unroll", 1}});
  return lax::reshape(out[0], a.shape());
}

namespace jax::random {

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

}  // namespace jax::random
}  // namespace capibara
