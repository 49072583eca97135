// jax.random: distributions of counts.
#include "library/random/random_sampler.h"

#include <capibara/config.h>

#include <cmath>
#include <limits>

#include "core/array/promotion.h"
#include "lax/operators/plain_number.h"
#include "lax/reduce/monoid.h"
#include "program/trace/stage.h"

namespace capibara::jax::random {

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

Array is_nan(const Array& x) { return lax::ne(x, x); }
Array both(const Array& a, const Array& b) { return lax::bitwise_and(a, b); }
Array either(const Array& a, const Array& b) { return lax::bitwise_or(a, b); }

// A counter of rounds, so that no input can cause an infinite loop.
struct Rounds {
  DType dtype = default_int();
  double limit;

  explicit Rounds(double most) : limit(most) {}
  Array start() const { return scalar_of(dtype, 0, true); }
  Array next(const Array& i) const { return lax::add(i, scalar_of(dtype, 1, true)); }
  Array left(const Array& i) const {
    IntInfo info = iinfo(dtype);
    int64_t most =
        limit >= static_cast<double>(info.max) ? static_cast<int64_t>(info.max) : static_cast<int64_t>(limit);
    return lax::lt(lax::convert_element_type(i, dtype, false), exact_scalar(dtype, most));
  }
};

// Knuth: multiplies uniform numbers until their product falls below exp(-lam).
Array poisson_by_products(const Array& key, const Array& lam, DType dtype, const Rounds& rounds) {
  const Shape& shape = lam.shape();
  auto unfinished = [&](const Array& log_product) { return lax::gt(log_product, lax::neg(lam)); };
  Arrays out = while_loop(
      [&](std::span<const Array> s) {
        Array any_s = any(unfinished(s[3]));
        return both(any_s, rounds.left(s[0]));
      },
      [&](std::span<const Array> s) {
        Arrays keys = split_keys(s[2], 2);
        Array unfinished_s = unfinished(s[3]);
        Array count = lax::select(unfinished_s, lax::add(s[1], exact_scalar(dtype, 1)), s[1]);
        Array u = draw_uniform(keys[1], shape, DType::float32);
        return Arrays{rounds.next(s[0]), count, keys[0], lax::add(s[3], lax::log(u))};
      },
      {rounds.start(), filled(shape, dtype, 0), key, filled(shape, DType::float32, 0)});
  return lax::sub(out[1], exact_scalar(dtype, 1));
}

// Hoermann, "The transformed rejection method for generating Poisson random variables", 1993 (PTRS).
Array poisson_by_rejection(const Array& key, const Array& lam, DType dtype, const Rounds& rounds) {
  const Shape& shape = lam.shape();
  Array log_lam = lax::log(lam);
  Array b = multiply_add(Array(2.53), lax::sqrt(lam), Array(0.931));
  Array a = multiply_add(Array(0.02483), b, Array(-0.059));
  Array inverse_alpha = Array(1.1239) + Array(1.1328) / (b - Array(3.4));
  Array v_r = Array(0.9277) - Array(3.6224) / (b - Array(2));
  Arrays out = while_loop(
      [&](std::span<const Array> s) {
        Array any_s = any(lax::bitwise_not(s[2]));
        return both(any_s, rounds.left(s[0]));
      },
      [&](std::span<const Array> s) {
        Arrays keys = split_keys(s[3], 3);
        Array u = draw_uniform(keys[1], shape, lam.dtype()) - Array(0.5);
        Array v = draw_uniform(keys[2], shape, lam.dtype());
        Array shifted = Array(0.5) - lax::abs(u);
        Array k = lax::floor(multiply_add(Array(2) * a / shifted + b, u, lam) + Array(0.43));
        Array product = v * inverse_alpha, log_ratio = lax::log(product / (a / (shifted * shifted) + b));
        Array multiply_add_k = multiply_add(k, log_lam, -lam), bound = multiply_add_k - lax::lgamma(k + Array(1));
        Array is_at_least = shifted >= Array(0.07), quick = both(is_at_least, v <= v_r);
        Array is_less = k < Array(0), is_less_shifted = shifted < Array(0.013);
        Array reject = either(is_less, both(is_less_shifted, v > shifted));
        Array slow = lax::le(log_ratio, bound);
        Array accept = either(quick, both(lax::bitwise_not(reject), slow));
        Array chosen = lax::select(accept, k, s[1]), accepted = either(s[2], accept);
        return Arrays{rounds.next(s[0]), chosen, accepted, keys[0]};
      },
      {rounds.start(), filled(shape, lam.dtype(), -1), lax::full(shape, exact_scalar(DType::bool_, 0)), key});
  return lax::convert_element_type(out[1], dtype, false);
}

// The remainder of Stirling's formula for log k!, from a table for k up to 9.
Array stirling_tail(const Array& x) {
  static const double values[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
                                  0.0166446911898211,  0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
                                  0.00925546218271273, 0.00833056343336287};
  Array table = lax::convert_element_type(array<double>(std::vector<double>(std::begin(values), std::end(values))),
                                          x.dtype(), false);
  Array small = x <= Array(9);
  Array k = lax::clamp(constant(x, 0), x, constant(x, 9));
  Array next = k + Array(1);
  Array square = next * next;
  Array series = (Array(1.0 / 12) - (Array(1.0 / 360) - Array(1.0 / 1260) / square) / square) / next;
  Array known = take(table, lax::convert_element_type(lax::floor(k), DType::int32, false), 0);
  return lax::select(small, known, series);
}

// Few successes: sums geometric gaps until they exceed the number of trials.
Array binomial_by_gaps(const Array& key, const Array& count, const Array& prob, DType dtype, const Rounds& rounds) {
  const Shape& shape = prob.shape();
  Array log_failure = lax::log1p(lax::neg(prob));
  Arrays out = while_loop(
      [&](std::span<const Array> s) {
        Array any_s = any(lax::le(s[2], count));
        return both(any_s, rounds.left(s[0]));
      },
      [&](std::span<const Array> s) {
        Arrays keys = split_keys(s[3], 2);
        Array is_at_most = lax::le(s[2], count), gaps = lax::select(is_at_most, s[1] + Array(1), s[1]);
        Array u = draw_uniform(keys[0], shape, prob.dtype());
        Array sum = lax::add(s[2], lax::ceil(lax::div(lax::log(u), log_failure)));
        return Arrays{rounds.next(s[0]), gaps, sum, keys[1]};
      },
      {rounds.start(), filled(shape, prob.dtype(), 0), filled(shape, prob.dtype(), 0), key});
  return lax::convert_element_type(out[1] - Array(1), dtype, false);
}

// Hoermann, "The generation of binomial random variates", 1993 (BTRS).
Array binomial_by_rejection(const Array& key, const Array& count, const Array& prob, DType dtype,
                            const Rounds& rounds) {
  const Shape& shape = prob.shape();
  Array product = count * prob, deviation = lax::sqrt(product * (Array(1) - prob));
  Array b = multiply_add(Array(2.53), deviation, Array(1.15));
  Array a = multiply_add(Array(0.01), prob, multiply_add(Array(0.0248), b, Array(-0.0873)));
  Array c = multiply_add(count, prob, Array(0.5));
  Array v_r = Array(0.92) - Array(4.2) / b;
  Array odds = prob / (Array(1) - prob);
  Array alpha = (Array(2.83) + Array(5.1) / b) * deviation;
  Array m = lax::floor((count + Array(1)) * prob);
  Arrays out = while_loop(
      [&](std::span<const Array> s) {
        Array any_s = any(lax::bitwise_not(s[2]));
        return both(any_s, rounds.left(s[0]));
      },
      [&](std::span<const Array> s) {
        Arrays keys = split_keys(s[3], 3);
        Array u = draw_uniform(keys[1], shape, prob.dtype());
        Array v = draw_uniform(keys[2], shape, prob.dtype());
        u = u - Array(0.5);
        Array us = Array(0.5) - lax::abs(u);
        Array is_at_least = us >= Array(0.07), quick = both(is_at_least, v <= v_r);
        Array k = lax::floor(multiply_add(Array(2) * a / us + b, u, c));
        Array is_less = k < Array(0), reject = either(is_less, k > count);
        Array product_v = v * alpha;
        v = lax::log(product_v / (a / (us * us) + b));
        Array sum = m + Array(1), at_mode = lax::log(sum / (odds * (count - m + Array(1))));
        Array sum_count = count - m + Array(1), between = lax::log(sum_count / (count - k + Array(1)));
        Array product_odds = odds * (count - k + Array(1)), at_draw = lax::log(product_odds / (k + Array(1)));
        Array sum_m = m + Array(0.5), bound = multiply_add(sum_m, at_mode, (count + Array(1)) * between);
        Array multiply_add_value = multiply_add(k + Array(0.5), at_draw, bound);
        Array first_sum = multiply_add_value + stirling_tail(m), second_sum = first_sum + stirling_tail(count - m);
        Array difference = second_sum - stirling_tail(k);
        bound = difference - stirling_tail(count - k);
        Array slow = lax::le(v, bound);
        Array accept = either(quick, both(lax::bitwise_not(reject), slow));
        Array chosen = lax::select(accept, k, s[1]), accepted = either(s[2], accept);
        return Arrays{rounds.next(s[0]), chosen, accepted, keys[0]};
      },
      {rounds.start(), filled(shape, prob.dtype(), -1), lax::full(shape, exact_scalar(DType::bool_, 0)), key});
  return lax::convert_element_type(out[1], dtype, false);
}

Array draw_binomial(const Array& key, const Array& n, const Array& p, const Shape& shape, DType dtype) {
  Array prob = to_inexact(p);
  prob = broadcast_to(lax::convert_element_type(prob, prob.dtype(), false), shape);
  Array count = broadcast_to(lax::convert_element_type(n, prob.dtype(), false), shape);
  auto all = [&](const Array& like, double value) { return filled(shape, like.dtype(), value); };
  // The less likely outcome is counted.
  Array rare = prob < Array(0.5);
  Array q = lax::select(rare, prob, Array(1.0) - prob);
  Array is_nan_count = is_nan(count), bad_count = either(is_nan_count, count < Array(0.0));
  Array infinite = lax::eq(lax::abs(count), constant(count, infinity));
  Array bad_q = is_nan(q), negative_q = q < Array(0.0);
  Array either_bad_q = either(bad_q, negative_q);
  q = lax::select(either_bad_q, all(q, 0.01), q);
  Array few = either(bad_count, count * q <= Array(10.0));
  count = lax::floor(count);
  Rounds rounds(finfo(dtype).max);
  Array by_gaps = binomial_by_gaps(key, lax::select(few, count, all(count, 0)), q, dtype, rounds);
  Array chosen = lax::select(few, all(count, 1e4), count);
  Array by_rejection = binomial_by_rejection(key, chosen, lax::select(few, all(q, 0.5), q), dtype, rounds);
  Array samples = lax::select(few, by_gaps, by_rejection);
  Array invalid = either(either(negative_q, bad_q), bad_count);
  samples = lax::select(invalid, all(samples, not_a_number), samples);
  Array both_infinite = both(infinite, lax::bitwise_not(invalid));
  samples = lax::select(both_infinite, all(samples, infinity), samples);
  Array either_rare = either(rare, bad_count), as_drawn = either(either_rare, either(bad_q, infinite));
  return lax::select(as_drawn, samples, lax::sub(lax::convert_element_type(count, dtype, false), samples));
}

}  // namespace

Array poisson(const Array& key, const Array& lam, const ParameterOptions& options) {
  Array typed = checked_key("poisson", key);
  DType dtype = options.dtype ? canonicalize(*options.dtype, capibara::config().enable_x64) : default_int();
  if (!is_integer(dtype))
    throw ValueError(concat("dtype argument to `poisson` must be an int dtype, got ", dtype_name(dtype)));
  if (typed.dtype() != DType::key_fry) {
    throw NotImplementedError(concat("`poisson` is only implemented for the threefry2x32 RNG, not ", key_impl(typed)));
  }
  Shape shape = options.shape ? checked_shape("poisson", *options.shape) : lam.shape();
  Array rate = lax::convert_element_type(broadcast_to(lam, shape), DType::float32, false);
  return call("_poisson", {typed, rate}, [&](std::span<const Array> in) {
    const Array& x = in[1];
    Rounds rounds(static_cast<double>(iinfo(dtype).max));
    Array is_nan_x = is_nan(x), small = either(is_nan_x, x < Array(10));
    Array small_rate = lax::select(small, x, filled(shape, x.dtype(), 0));
    Array great_rate = lax::select(small, filled(shape, x.dtype(), 1e5), x);
    Array by_products = call("_poisson_knuth", {in[0], small_rate},
                             [&](std::span<const Array> a) { return poisson_by_products(a[0], a[1], dtype, rounds); });
    Array by_rejection = call("_poisson_rejection", {in[0], great_rate}, [&](std::span<const Array> a) {
      return poisson_by_rejection(a[0], a[1], dtype, rounds);
    });
    Array result = lax::select(small, by_products, by_rejection);
    Array is_equal = x == Array(0);
    return lax::select(is_equal, filled(shape, dtype, 0), result);
  });
}

Array binomial(const Array& key, const Array& n, const Array& p, const ParameterOptions& options) {
  Array typed = checked_key("binomial", key);
  DType dtype = float_dtype("binomial", options.dtype);
  Shape shape = parameter_shape("binomial", options.shape, {n.shape(), p.shape()});
  return draw_binomial(typed, n, p, shape, dtype);
}

Array multinomial(const Array& key, const Array& n, const Array& p, const MultinomialOptions& options) {
  Array typed = checked_key("multinomial", key);
  ScalarType to = promote_types({n.dtype(), n.weak_type()}, {p.dtype(), p.weak_type()}, capibara::config().enable_x64);
  if (!is_inexact(to.dtype)) to.dtype = default_float();
  if (p.ndim() < 1) throw ValueError("multinomial requires p.ndim >= 1, got p.ndim == 0");
  Shape shape = options.shape ? checked_shape("multinomial", *options.shape) : p.shape();
  if (shape.empty()) throw ValueError("multinomial: the shape must end with the number of outcomes, got ()");
  Shape batch(shape.begin(), shape.end() - 1);
  Array total = broadcast_to(array_as(n, to.dtype, false), batch);
  Array probs = move_axis(broadcast_to(array_as(p, to.dtype, false), shape), static_cast<int64_t>(shape.size()) - 1, 0);
  // Each outcome takes its share of the trials that remain.
  Array remaining = lax::cumsum(probs, {.axis = 0, .reverse = true});
  Array ratios = lax::div(probs, where(remaining == Array(0), Array(1), remaining));
  int64_t outcomes = ratios.shape(0);
  Array keys = split(typed, outcomes);
  Types types = {total.type(), total.type(), keys.type().with_shape({})};
  Staged staged = stage(
      [&](std::span<const Array> in) {
        Array ratio = clip(in[1], constant(in[1], 0), constant(in[1], 1));
        Array count = binomial(in[2], in[0], ratio, {.shape = std::nullopt, .dtype = in[0].dtype()});
        return Arrays{lax::sub(in[0], count), count};
      },
      types, "f");
  Arrays out = bind_scan(staged, 1, outcomes, Arrays{total, ratios, keys}, false, options.unroll);
  Array counts = move_axis(out[1], 0, out[1].ndim() - 1);
  return options.dtype ? lax::convert_element_type(counts, *options.dtype)
                       : lax::convert_element_type(counts, default_float());
}

Array geometric(const Array& key, const Array& p, const ParameterOptions& options) {
  Array typed = checked_key("geometric", key);
  DType dtype = options.dtype ? canonicalize(*options.dtype, capibara::config().enable_x64) : default_int();
  if (!is_integer(dtype)) {
    throw ValueError(concat("dtype argument to `geometric` must be an int dtype, got ", dtype_name(dtype)));
  }
  Shape shape = parameter_shape("geometric", options.shape, {p.shape()});
  return call("_geometric", {typed, p}, [&](std::span<const Array> in) {
    Array prob = to_inexact(in[1]);
    Array u = draw_uniform(in[0], shape, prob.dtype());
    u = where(u == Array(0), Array(1), u);  // the logarithm of 0 is infinite
    Array log_u = lax::log(u);
    Array log_failure = broadcast_to(lax::log1p(lax::neg(prob)), shape);
    Array g = lax::floor(lax::div(log_u, log_failure)) + Array(1);
    return lax::convert_element_type(g, dtype, false);
  });
}

}  // namespace capibara::jax::random
