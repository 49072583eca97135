// jax.random: uniform bits, numbers, permutations and choices.
#include "library/random/random_sampler.h"

#include <capibara/config.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lax/operators/explicit_x64.h"
#include "lax/reduce/monoid.h"

namespace capibara::jax::random {

namespace {

// Converts to another integer dtype, clamping values that are out of range.
Array convert_and_clip(const Array& x, DType dtype) {
  IntInfo to = iinfo(dtype), from = iinfo(x.dtype());
  // Bounds are weakly typed if the value is.
  auto bound = [&](int64_t value) {
    return x.weak_type() && from.bits <= 32 ? scalar_of(x.dtype(), static_cast<double>(value), true)
                                            : exact_scalar(x.dtype(), value);
  };
  Array low = bound(std::max(to.min, from.min)), high = bound(static_cast<int64_t>(std::min(to.max, from.max)));
  return lax::convert_element_type(clip(x, low, high), dtype, false);
}

Array integers(const Array& x) { return is_integer(x.dtype()) ? x : lax::convert_element_type(x, default_int()); }

// Stable sorts by fresh random keys until all strings of keys are almost surely distinct.
Array shuffle(const Array& key, const Array& x, int64_t axis) {
  return call("_shuffle", {key, x}, [&](std::span<const Array> in) {
    double size = static_cast<double>(std::max<int64_t>(1, in[1].size()));
    int rounds = static_cast<int>(std::ceil(3 * std::log(size) / std::log(4294967295.0)));
    Array state = in[0], result = in[1];
    for (int i = 0; i < rounds; ++i) {
      Arrays keys = split_keys(state, 2);
      state = keys[0];
      result = lax::sort_key_val(random_bits(keys[1], 32, result.shape()), result, {.dimension = axis}).second;
    }
    return result;
  });
}

int64_t concrete_integer(const char* function, const Array& x) {
  if (!is_integer(x.dtype()))
    throw TypeError(concat(function, ": x must be an integer or at least 1-dimensional, got ", to_string(x.type())));
  return x.item<int64_t>();
}

// The first position in a sorted vector at which a value could be inserted.
Array search_sorted(const Array& sorted, const Array& values) {
  int64_t size = sorted.shape(0);
  Array low = filled(values.shape(), DType::int32, 0),
        high = filled(values.shape(), DType::int32, static_cast<double>(size));
  for (int64_t reach = size; reach > 0; reach /= 2) {
    Array sum = lax::add(low, high), middle = lax::div(sum, filled(values.shape(), DType::int32, 2));
    Array left = lax::le(values, take(sorted, middle, 0));
    low = lax::select(left, low, middle);
    high = lax::select(left, middle, high);
  }
  return high;
}

// A 64-bit fraction in two words as a float32 with full precision.
Array fixed_point_to_float(const Array& high, const Array& low) {
  auto word = [&](int64_t value) { return lax::full_like(high, exact_scalar(DType::uint32, value)); };
  Array high_zeros = lax::clz(high), low_zeros = lax::clz(low);
  Array all_zero = lax::eq(high_zeros, word(32));
  Array shift_left_low = lax::shift_left(low, low_zeros);
  Array rest = lax::select(all_zero, shift_left_low, lax::shift_right_logical(low, lax::sub(word(32), high_zeros)));
  Array mantissa = lax::bitwise_or(lax::shift_left(high, high_zeros), rest);
  Array shift_right_logical_mantissa = lax::shift_right_logical(mantissa, word(8));
  mantissa = lax::bitwise_and(shift_right_logical_mantissa, word((1 << 23) - 1));
  Array zeros = lax::select(all_zero, lax::add(word(32), low_zeros), high_zeros);
  Array difference = lax::sub(word(126), zeros), exponent = lax::shift_left(difference, word(23));
  exponent = lax::bitwise_and(exponent, word((int64_t{1} << 30) - (1 << 22)));
  return lax::bitcast_convert_type(lax::bitwise_or(exponent, mantissa), DType::float32);
}

Array row(const Array& x, int64_t i) { return lax::index_in_dim(x, i, 0, false); }

Shape with_leading(int64_t size, Shape shape) {
  shape.insert(shape.begin(), size);
  return shape;
}

Array gumbel_highest(const Array& key, const Shape& shape) {
  Array bits = random_bits(key, 32, with_leading(2, shape));
  Array negated = lax::bitwise_not(bits);
  Array high = row(bits, 0), low = row(bits, 1);
  auto word = [&](int64_t value) { return lax::full_like(high, exact_scalar(DType::uint32, value)); };
  // 1 - bits in 64-bit fixed point: the carry of the low word is added to the high one.
  Array row_negated = row(negated, 1);
  Array carry = lax::convert_element_type(lax::eq(row_negated, word(0xFFFFFFFF)), DType::uint32, false);
  Array negated_high = lax::add(row(negated, 0), carry), row_value = row(negated, 1),
        negated_low = lax::add(row_value, word(1));
  Array small = lax::lt(high, word(int64_t{1} << 31));
  Array chosen = lax::select(small, high, negated_high);
  Array x = fixed_point_to_float(chosen, lax::select(small, low, negated_low));
  Array from_small = lax::neg(lax::log(lax::neg(lax::log1p(lax::neg(x)))));
  return lax::select(small, from_small, lax::neg(lax::log(lax::neg(lax::log(x)))));
}

}  // namespace

Array bits(const Array& key, const DrawOptions& options) {
  Array typed = checked_key("bits", key);
  DType dtype = requested(options.dtype, DType::uint64);
  if (!is_unsigned(dtype) || is_sub_byte(dtype)) {
    throw ValueError(concat("dtype argument to `bits` must be an unsigned int dtype, got ", dtype_name(dtype)));
  }
  return random_bits(typed, capibara::bits(dtype), checked_shape("bits", options.shape));
}

namespace {

// Bounds are combined with the draws elementwise, which raises TypeError if dimensions differ.
void require_bound_fits(const char* name, const Array& bound, const Shape& shape) {
  const auto rank = static_cast<int64_t>(shape.size());
  bool fits = rank == 0 || bound.ndim() <= rank;
  for (int64_t i = 1; fits && i <= std::min(rank, bound.ndim()); ++i) {
    const int64_t wanted = shape[static_cast<std::size_t>(rank - i)], got = bound.shape(-i);
    fits = got == wanted || got == 1 || wanted == 1;
  }
  if (fits) return;
  throw TypeError(concat("uniform: argument '", name, "' must broadcast to the ", rank, " dimensions of shape, got ",
                         to_string(bound.type())));
}

}  // namespace

Array uniform(const Array& key, const UniformOptions& options) {
  Array typed = checked_key("uniform", key);
  DType dtype = float_dtype("uniform", options.dtype);
  OptionalShape shape(checked_shape("uniform", options.shape));
  require_bound_fits("minval", options.minval, *shape);
  require_bound_fits("maxval", options.maxval, *shape);
  parameter_shape("uniform", shape, {options.minval.shape(), options.maxval.shape()});
  return draw_uniform(typed, *shape, dtype, options.minval, options.maxval);
}

Array randint(const Array& key, const Shape& shape, const Array& minval, const Array& maxval,
              const RandintOptions& options) {
  Array typed = checked_key("randint", key);
  DType dtype = options.dtype ? canonicalize(*options.dtype, capibara::config().enable_x64) : default_int();
  if (!is_integer(dtype)) throw TypeError(concat("randint only accepts integer dtypes, got ", dtype_name(dtype)));
  if (is_sub_byte(dtype))
    throw TypeError(concat("randint only accepts 8-, 16-, 32-, or 64-bit dtypes, got ", dtype_name(dtype)));
  parameter_shape("randint", OptionalShape(checked_shape("randint", shape)), {minval.shape(), maxval.shape()});
  IntInfo info = iinfo(dtype);
  Array lowest = minval, highest = maxval;
  DType sampled = dtype;
  if (info.bits < 32) {
    // Drawn in 32 bits, since with few bits the remainder is not uniform.
    sampled = DType::int32;
    auto limited = [&](const Array& x, int64_t above) {
      return clip(lax::convert_element_type(x, DType::int32, false), exact_scalar(DType::int32, info.min),
                  exact_scalar(DType::int32, static_cast<int64_t>(info.max) + above));
    };
    lowest = limited(minval, 0);
    highest = limited(maxval, 1);
  }
  Array drawn = call("_randint", {typed, lowest, highest}, [&](std::span<const Array> in) {
    int width = capibara::bits(sampled);
    int64_t rank = static_cast<int64_t>(shape.size());
    DType unsigned_dtype = unsigned_of_width(width);
    Array low = integers(in[1]), high = integers(in[2]);
    Array greatest = exact_scalar(sampled, static_cast<int64_t>(iinfo(sampled).max));
    Array beyond = lax::gt(high, convert_and_clip(greatest, high.dtype()));
    low = convert_and_clip(low, sampled);
    high = convert_and_clip(high, sampled);
    low = lax::broadcast_to_rank(low, rank);
    high = lax::broadcast_to_rank(high, rank);
    Arrays keys = split_keys(in[0], 2);
    Array higher = random_bits(keys[0], width, shape), lower = random_bits(keys[1], width, shape);
    Array span = lax::convert_element_type(lax::sub(high, low), unsigned_dtype, false);
    auto one = exact_scalar(unsigned_dtype, 1);
    // An empty range yields minval.
    Array empty = broadcast_to(lax::le(high, low), span.shape());
    span = lax::select(empty, lax::full_like(span, one), span);
    // A range that ends beyond the dtype is one larger; the full range wraps to 0, for which rem is the identity.
    Array longer = broadcast_to(beyond & lax::gt(high, low), span.shape());
    span = lax::select(longer, lax::add(span, one), span);
    Array multiplier = lax::rem(exact_scalar(unsigned_dtype, int64_t{1} << (width / 2)), span);
    multiplier = lax::rem(lax::mul(multiplier, multiplier), span);
    Array product = lax::mul(lax::rem(higher, span), multiplier);
    Array offset = lax::add(product, lax::rem(lower, span));
    offset = lax::rem(offset, span);
    return lax::add(low, lax::convert_element_type(offset, sampled, false));
  });
  return lax::convert_element_type(drawn, dtype, false);
}

Array permutation(const Array& key, const Array& x, const PermutationOptions& options) {
  Array typed = checked_key("permutation", key);
  if (x.ndim() == 0) {
    if (options.axis != 0 && options.axis != -1) {
      throw ValueError(
          concat("permutation: axis ", options.axis, " is out of range for an integer x (argument 'axis')"));
    }
    return shuffle(typed, lax::iota(default_int(), std::max<int64_t>(0, concrete_integer("permutation", x))), 0);
  }
  int64_t axis = checked_axis("permutation", options.axis, x.type());
  if (options.independent || x.ndim() == 1) return shuffle(typed, x, axis);
  return take(x, shuffle(typed, lax::iota(default_int(), x.shape(axis)), 0), axis);
}

Array choice(const Array& key, const Array& a, const ChoiceOptions& options) {
  Array typed = checked_key("choice", key);
  const Shape shape = checked_shape("choice", options.shape);
  bool range = a.ndim() == 0;
  int64_t axis = range ? 0 : checked_axis("choice", options.axis, a.type());
  int64_t inputs = range ? concrete_integer("choice", a) : a.shape(axis);
  int64_t draws = element_count(shape);
  DType result_dtype = range && a.weak_type() ? default_int() : a.dtype();
  if (draws == 0) return filled(shape, result_dtype, 0);
  if (inputs <= 0) throw ValueError("choice: a must be greater than 0 unless no samples are taken");
  if (!options.replace && draws > inputs) {
    throw ValueError(concat("Cannot take a larger sample (size ", draws, ") than population (size ", inputs,
                            ") when 'replace=False'"));
  }
  Array result;
  if (!options.p) {
    if (options.replace) {
      Array indices = randint(typed, shape, 0, inputs);
      result = range ? indices : take(a, indices, axis);
    } else {
      result = lax::slice_in_dim(permutation(typed, range ? Array(inputs) : a, {.axis = axis}), 0, draws, 1, axis);
    }
  } else {
    Array p = to_inexact(*options.p);
    if (p.shape() != Shape{inputs}) {
      throw ValueError(concat("choice: p must be None or a 1D vector with the same size as a.shape[axis]. p is ",
                              to_string(p.type()), " and a.shape[axis] is ", inputs, "."));
    }
    Array indices;
    if (options.replace) {
      Array cumulative = lax::cumsum(p);
      Array total = lax::index_in_dim(cumulative, inputs - 1, 0, false);
      Array r = lax::mul(total, lax::sub(scalar_of(p.dtype(), 1), draw_uniform(typed, shape, p.dtype())));
      indices = search_sorted(cumulative, r);
    } else {
      // The largest of independently perturbed log-probabilities are a sample without replacement.
      Array gumbel_typed = gumbel(typed, {.shape = {inputs}, .dtype = p.dtype(), .mode = options.mode});
      Array perturbed = lax::add(gumbel_typed, lax::log(p));
      indices = lax::top_k(perturbed, draws).second;
    }
    indices = lax::convert_element_type(indices, default_int(), false);
    result = range ? indices : take(a, indices, axis);
  }
  if (range) return lax::reshape(result, shape);
  Shape final_shape(a.shape().begin(), a.shape().begin() + axis);
  final_shape.insert(final_shape.end(), shape.begin(), shape.end());
  final_shape.insert(final_shape.end(), a.shape().begin() + axis + 1, a.shape().end());
  return lax::reshape(result, final_shape);
}

Array bernoulli(const Array& key, const BernoulliOptions& options) {
  if (options.mode != "high" && options.mode != "low") {
    throw ValueError(concat("bernoulli: got mode='", options.mode, "', expected 'high' or 'low'"));
  }
  Array typed = checked_key("bernoulli", key);
  DType dtype = options.p.dtype();
  if (!is_floating(dtype)) {
    throw TypeError(concat("bernoulli probability `p` must have a floating dtype, got ", dtype_name(dtype), "."));
  }
  Shape shape = parameter_shape("bernoulli", options.shape, {options.p.shape()});
  Array p = lax::convert_element_type(options.p, dtype, false);
  return call("_bernoulli", {typed, p}, [&](std::span<const Array> in) {
    if (options.mode == "low") return draw_uniform(in[0], shape, dtype) < in[1];
    // Two draws give twice the digits.
    Array both = draw_uniform(in[0], with_leading(2, shape), dtype);
    Array fine = lax::mul(row(both, 1), scalar_of(dtype, std::ldexp(1.0, -dtype_row(dtype).mantissa_bits)));
    return fine < in[1] - row(both, 0);
  });
}

Array rademacher(const Array& key, const DrawOptions& options) {
  Array typed = checked_key("rademacher", key);
  DType dtype = options.dtype ? canonicalize(*options.dtype, capibara::config().enable_x64) : default_int();
  Shape shape = checked_shape("rademacher", options.shape);
  return call("_rademacher", {typed}, [&](std::span<const Array> in) {
    Array ones = lax::convert_element_type(bernoulli(in[0], {.p = 0.5, .shape = shape}), dtype, false);
    return lax::convert_element_type(lax::sub(lax::mul(scalar_of(dtype, 2), ones), scalar_of(dtype, 1)), dtype, false);
  });
}

Array gumbel(const Array& key, const GumbelOptions& options) {
  Array typed = checked_key("gumbel", key);
  DType dtype = float_dtype("gumbel", options.dtype);
  Shape shape = checked_shape("gumbel", options.shape);
  std::string mode = options.mode.empty() ? "low" : options.mode;
  if (mode != "highest" && mode != "high" && mode != "low") {
    throw ValueError(concat("Must provide valid mode for gumbel got: ", mode));
  }
  FloatInfo info = finfo(dtype);
  return call("_gumbel", {typed}, [&](std::span<const Array> in) {
    if (mode == "highest" && dtype == DType::float32) return gumbel_highest(in[0], shape);
    if (mode == "low") {
      return lax::neg(lax::log(lax::neg(lax::log(draw_positive_uniform(in[0], shape, dtype, true)))));
    }
    Array both = draw_uniform(in[0], with_leading(2, shape), dtype, Array(0.0), Array(1.0), true);
    Array high = row(both, 0);
    Array fine = lax::mul(scalar_of(dtype, std::ldexp(1.0, -info.mantissa_bits)), row(both, 1));
    Array refined = lax::add(lax::add(high, fine), scalar_of(dtype, info.tiny));
    Array x = lax::select(lax::ge(high, scalar_of(dtype, 0.5)), high, refined);
    return lax::neg(lax::log(lax::neg(lax::log1p(lax::neg(x)))));
  });
}

Array categorical(const Array& key, const Array& logits, const CategoricalOptions& options) {
  Array typed = checked_key("categorical", key);
  int64_t axis = checked_axis("categorical", options.axis, logits.type());
  Shape batch = logits.shape();
  batch.erase(batch.begin() + axis);
  Shape shape = parameter_shape("categorical", options.shape ? options.shape : OptionalShape(batch), {batch});
  Shape prefix(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(batch.size()));
  DType dtype = logits.dtype();
  if (options.replace) {
    Shape drawn(shape.end() - static_cast<std::ptrdiff_t>(batch.size()), shape.end());
    drawn.insert(drawn.begin() + axis, logits.shape(axis));
    drawn.insert(drawn.begin(), prefix.begin(), prefix.end());
    Ints leading;
    for (std::size_t i = 0; i < prefix.size(); ++i) leading.push_back(static_cast<int64_t>(i));
    Array gumbel_typed = gumbel(typed, {.shape = drawn, .dtype = dtype, .mode = options.mode});
    Array perturbed = gumbel_typed + (leading.empty() ? logits : lax::expand_dims(logits, leading));
    return lax::argmax(perturbed, axis + static_cast<int64_t>(prefix.size()), default_int());
  }
  int64_t count = element_count(prefix);
  if (count > logits.shape(axis)) {
    throw ValueError(concat("Number of samples without replacement (", count, ") cannot exceed number of categories (",
                            logits.shape(axis), ")."));
  }
  Array perturbed = logits + gumbel(typed, {.shape = logits.shape(), .dtype = dtype, .mode = options.mode});
  Array indices = lax::top_k(move_axis(perturbed, axis, logits.ndim() - 1), count).second;
  return lax::reshape(move_axis(indices, indices.ndim() - 1, 0), shape);
}

}  // namespace capibara::jax::random
