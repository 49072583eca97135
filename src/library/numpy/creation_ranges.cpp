// jax.numpy's evenly spaced values: arange, linspace, logspace, geomspace.
#include <capibara/config.h>
#include <capibara/lax.h>
#include <capibara/numpy/creation.h>

#include <cmath>
#include <limits>

#include "core/array/element.h"
#include "lax/operators/explicit_x64.h"
#include "library/numpy/elementwise_operands.h"
#include "program/trace/trace.h"

namespace capibara::jax::numpy {

namespace {

// The value of a bound of arange, which determines a shape.
double concrete_bound(const char* argument, const RangeBound& bound) {
  const Array& x = bound.array();
  if (!x.defined()) return bound.real();
  if (x.is_tracer()) {
    throw ConcretizationTypeError(
        concat("Abstract tracer value encountered where concrete value is expected: a traced array of type ",
               to_string(x.type()), ". It arose in the jnp.arange argument '", argument,
               "', which decides the shape of the result.", origin_line(x)));
  }
  if (x.ndim() != 0) {
    throw ValueError(
        concat("jax.numpy.arange: arguments must be scalars; got ", argument, " of type ", to_string(x.type())));
  }
  if (is_complex(x.dtype()))
    throw ValueError(concat("Passing complex start/stop/step to jnp.arange is no longer supported: argument '",
                            argument, "' must be real"));
  return x.item<double>();
}

ScalarType type_of(const RangeBound& bound) {
  if (bound.array().defined()) return {bound.array().dtype(), bound.array().weak_type()};
  return {bound.is_integer() ? default_int() : default_float(), true};
}

// A bound as a scalar of the dtype that arange computes in; integers wrap around.
Array bound_as(const RangeBound& bound, DType dtype) {
  if (bound.array().defined()) return lax::convert_element_type(bound.array(), dtype, false);
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(storage_size(dtype)));
  const int64_t integer = bound.integer();
  const double real = bound.real();
  if (bound.is_integer()) {
    convert_elements(DType::int64, &integer, dtype, buffer.mutable_data(), 1);
  } else {
    convert_elements(DType::float64, &real, dtype, buffer.mutable_data(), 1);
  }
  return Array::from_buffer(ArrayType{{}, dtype, false, false, {}}, std::move(buffer));
}

int64_t length(double count) { return count > 0 ? static_cast<int64_t>(std::ceil(count)) : 0; }

// Differences and quotients are rounded in the operands' dtype.
double rounded(double value, bool in_single) {
  return in_single ? static_cast<double>(static_cast<float>(value)) : value;
}

struct Interval {
  Array start, stop;
  DType dtype, computed_in;
};

Interval interval(const char* name, const Array& start, const Array& stop, std::optional<DType> dtype) {
  const DType to = dtype ? requested(dtype, *dtype) : inexact_dtype(result_type({start, stop}).dtype);
  const DType computed_in = inexact_dtype(to);
  if (!start.defined() || !stop.defined()) throw TypeError(concat(name, ": start or stop is an empty Array"));
  return {lax::convert_element_type(start, computed_in, false), lax::convert_element_type(stop, computed_in, false), to,
          computed_in};
}

Shape with_axis(Shape shape, int64_t axis, int64_t size) {
  shape.insert(shape.begin() + axis, size);
  return shape;
}

struct Samples {
  Array values, step;
};

Samples samples(const Array& start, const Array& stop, const LinspaceOptions& options) {
  const Interval in = interval("linspace", start, stop, options.dtype);
  const Shape bounds = lax::broadcast_shapes({in.start.shape(), in.stop.shape()});
  const int64_t rank = static_cast<int64_t>(bounds.size());
  const int64_t axis = options.axis < 0 ? options.axis + rank + 1 : options.axis;
  if (axis < 0 || axis > rank) {
    throw IndexError(concat("linspace: argument 'axis' must lie in [", -rank - 1, ", ", rank, "], got ", options.axis));
  }
  const Array first = broadcast_to("linspace", in.start, bounds), last = broadcast_to("linspace", in.stop, bounds);
  const Shape with_one = with_axis(bounds, axis, 1);
  const int64_t intervals = options.endpoint ? options.num - 1 : options.num;
  Array values, step;
  if (options.num > 1) {
    step = (in.stop - in.start) / strong_constant(in.computed_in, intervals);
    const DType real = real_dtype(in.computed_in);
    Shape along(with_one.size(), 1);
    along[static_cast<std::size_t>(axis)] = intervals;
    const Array counts = lax::reshape(lax::iota(real, intervals), along);
    const Array portion = lax::convert_element_type(counts / strong_constant(real, intervals), in.computed_in, false);
    Array reshaped = lax::reshape(first, with_one), product = reshaped * (1 - portion);
    values = product + lax::reshape(last, with_one) * portion;
    if (options.endpoint) values = lax::concatenate({values, lax::expand_dims(last, {axis})}, axis);
  } else if (options.num == 1) {
    step = options.endpoint ? strong_constant(in.computed_in, std::nan("")) : in.stop - in.start;
    values = lax::reshape(first, with_one);
  } else {
    step = strong_constant(in.computed_in, std::nan(""));
    values = zeros(with_axis(bounds, axis, 0), {.dtype = in.dtype});
  }
  if (is_integer(in.dtype) && !is_integer(values.dtype())) values = lax::floor(values);
  return {lax::convert_element_type(values, in.dtype, false), step};
}

void require_count(const char* name, int64_t num) {
  if (num < 0) throw ValueError(concat(name, ": argument 'num' must be non-negative, got ", num));
}

}  // namespace

Array arange(const RangeBound& start, const std::optional<RangeBound>& stop, const std::optional<RangeBound>& step,
             const FillOptions& options) {
  std::vector<ScalarType> types = {type_of(start)};
  bool has_array = start.array().defined();
  for (const std::optional<RangeBound>& bound : {stop, step}) {
    if (!bound) continue;
    types.push_back(type_of(*bound));
    has_array = has_array || bound->array().defined();
  }
  const bool only_stop = !stop && !step;
  double first = concrete_bound(only_stop ? "stop" : "start", start);
  double last = stop ? concrete_bound("stop", *stop) : first;
  const ScalarType common = promote_types(types, capibara::config().enable_x64);
  const DType dtype = requested(options.dtype, common.dtype);
  const bool in_single = has_array && is_floating(common.dtype) && bits(common.dtype) <= 32;
  const double stride = rounded(step ? concrete_bound("step", *step) : 1, in_single);
  RangeBound begin = start;
  if (!stop) {
    begin = 0;
    first = 0;
  }
  const double distance = rounded(rounded(last, in_single) - rounded(first, in_single), in_single);
  if (!step) {
    const Array counts = lax::iota(dtype, length(distance));
    return first == 0 ? counts : lax::add(bound_as(begin, dtype), counts);
  }
  const bool is_narrow = is_floating(dtype) && bits(dtype) < 32;
  const DType computed_in = is_narrow ? DType::float32 : dtype;
  const Array counts = lax::iota(computed_in, length(rounded(distance / stride, in_single)));
  const Array moved = lax::mul(bound_as(*step, computed_in), counts);
  return lax::convert_element_type(lax::add(bound_as(begin, computed_in), moved), dtype, false);
}

Array linspace(const Array& start, const Array& stop, const LinspaceOptions& options) {
  return linspace_and_step(start, stop, options).first;
}

std::pair<Array, Array> linspace_and_step(const Array& start, const Array& stop, const LinspaceOptions& options) {
  require_count("linspace", options.num);
  const Samples result = samples(start, stop, options);
  return {result.values, result.step};
}

Array logspace(const Array& start, const Array& stop, const LogspaceOptions& options) {
  require_count("logspace", options.num);
  const Interval in = interval("logspace", start, stop, options.dtype);
  const Array exponents =
      linspace(in.start, in.stop, {.num = options.num, .endpoint = options.endpoint, .axis = options.axis});
  return lax::convert_element_type(power(options.base, exponents), in.dtype, false);
}

Array geomspace(const Array& start, const Array& stop, const LinspaceOptions& options) {
  require_count("geomspace", options.num);
  const Interval in = interval("geomspace", start, stop, options.dtype);
  // The start's sign is divided out of both ends before taking logarithms.
  const Array side = sign(in.start);
  const Array log10_in = log10(in.start / side);
  const Array exponents = logspace(log10_in, log10(in.stop / side),
                                   {.num = options.num, .endpoint = options.endpoint, .dtype = in.computed_in});
  Array result = side * exponents;
  const int64_t axis = canonical_axis("geomspace", options.axis, result.ndim());
  if (axis != 0) {
    Ints permutation;
    for (int64_t i = 1; i <= axis; ++i) permutation.push_back(i);
    permutation.push_back(0);
    for (int64_t i = axis + 1; i < result.ndim(); ++i) permutation.push_back(i);
    result = lax::transpose(result, permutation);
  }
  return lax::convert_element_type(result, in.dtype, false);
}

}  // namespace capibara::jax::numpy
