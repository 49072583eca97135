// jax.nn.initializers: initial values of weights, drawn as in jax.
#include <capibara/arithmetic_error.h>
#include <capibara/nn/initializers.h>
#include <capibara/numpy/manipulation.h>
#include <capibara/random.h>

#include <cmath>
#include <complex>

#include "library/nn/terms.h"

namespace capibara::jax::nn::initializers {

using namespace terms;

namespace {

Array scalar(const Array& value, DType dtype) { return lax::convert_element_type(value, dtype, false); }

int64_t size_along(const Shape& shape, const Ints& axes) {
  const int64_t rank = static_cast<int64_t>(shape.size());
  int64_t size = 1;
  for (int64_t axis : axes) {
    if (axis < -rank || axis >= rank) {
      throw IndexError(concat("variance_scaling: axis ", axis, " is out of range for a shape of rank ", rank));
    }
    size *= shape[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)];
  }
  return size;
}

// The number of inputs to one output, and the number of outputs of one input.
struct Fans {
  double in, out;
};

Fans fans_of(const Shape& shape, const FanOptions& options) {
  if (shape.size() < 2 && options.in_axis == Ints{-2}) {
    throw ValueError(concat("variance_scaling: the default in_axis needs at least two dimensions, got a shape of rank ",
                            shape.size()));
  }
  const double in = static_cast<double>(size_along(shape, options.in_axis));
  const double out = static_cast<double>(size_along(shape, options.out_axis));
  const double batch = static_cast<double>(size_along(shape, options.batch_axis));
  if (in * out * batch == 0) {
    throw ZeroDivisionError("variance_scaling: division by zero: an axis of inputs, outputs or batches has size 0");
  }
  const double receptive_field = static_cast<double>(element_count(shape)) / in / out / batch;
  return {in * receptive_field, out * receptive_field};
}

double denominator_of(const std::string& mode, Fans fans) {
  if (mode == "fan_in") return fans.in;
  if (mode == "fan_out") return fans.out;
  if (mode == "fan_avg") return (fans.in + fans.out) / 2;
  if (mode == "fan_geo_avg") return std::sqrt(fans.in * fans.out);
  throw ValueError(
      concat("variance_scaling: mode must be 'fan_in', 'fan_out', 'fan_avg' or 'fan_geo_avg', got '", mode, "'"));
}

// radius * exp(i angle) with a uniform angle.
Array with_uniform_angle(const Array& radius, const Array& key, const Shape& shape, DType dtype) {
  const Array fraction = random::uniform(key, {.shape = shape, .dtype = real_dtype(dtype)});
  const Array angle = (2 * pi) * lax::convert_element_type(fraction, dtype, false);
  return radius * lax::exp(Array(std::complex<double>(0, 1)) * angle);
}

// Uniform in the disc of radius sqrt(2): unit variance.
Array complex_uniform(const Array& key, const Shape& shape, DType dtype) {
  const Arrays keys = lax::unstack(random::split(key), 0);
  const Array u = random::uniform(keys[0], {.shape = shape, .dtype = real_dtype(dtype)});
  return with_uniform_angle(lax::convert_element_type(lax::sqrt(2 * u), dtype, false), keys[1], shape, dtype);
}

// Normal, truncated at radius `upper`.
Array complex_truncated_normal(const Array& key, double upper, const Shape& shape, DType dtype) {
  const Arrays keys = lax::unstack(random::split(key), 0);
  const Array u = random::uniform(keys[0], {.shape = shape, .dtype = real_dtype(dtype)});
  const Array mass = 1 - lax::exp(lax::full({}, -upper * upper, dtype));
  const Array radius = lax::sqrt(-lax::log(1 - mass * lax::convert_element_type(u, dtype, false)));
  return with_uniform_angle(radius, keys[1], shape, dtype);
}

Array draw_scaled(const Array& key, const Shape& shape, DType dtype, const std::string& distribution, double variance) {
  const Array spread = lax::full({}, variance, dtype);
  if (distribution == "truncated_normal") {
    // The standard deviations of the unit normal truncated at 2, real and complex.
    const double deviation = is_complex(dtype) ? .95311164380491208 : .87962566103423978;
    const Array root = lax::sqrt(spread);
    const Array scale = root / lax::full({}, deviation, dtype);
    if (is_complex(dtype)) return complex_truncated_normal(key, 2, shape, dtype) * scale;
    return random::truncated_normal(key, -2, 2, {.shape = shape, .dtype = dtype}) * scale;
  }
  if (distribution == "normal") {
    Array normal_draw = random::normal(key, {.shape = shape, .dtype = dtype});
    return normal_draw * lax::sqrt(spread);
  }
  if (distribution == "uniform") {
    if (is_complex(dtype)) {
      Array complex_uniform_key = complex_uniform(key, shape, dtype);
      return complex_uniform_key * lax::sqrt(spread);
    }
    Array uniform_draw = random::uniform(key, {.shape = shape, .dtype = dtype, .minval = -1});
    return uniform_draw * lax::sqrt(3 * spread);
  }
  throw ValueError(concat("variance_scaling: distribution must be 'truncated_normal', 'normal' or 'uniform', got '",
                          distribution, "'"));
}

Array draw_orthogonal(const Array& key, const Shape& shape, DType dtype, const Array& scale, int64_t column_axis) {
  if (shape.size() < 2) throw ValueError(concat("orthogonal: at least two dimensions are needed, got ", shape.size()));
  if (element_count(shape) == 0) return lax::full(shape, 0, dtype);
  const int64_t column = canonical_axis("orthogonal", column_axis, static_cast<int64_t>(shape.size()));
  const int64_t columns = shape[static_cast<std::size_t>(column)], rows = element_count(shape) / columns;
  const Array matrix = random::orthogonal(key, rows, {.dtype = dtype, .m = columns});
  Shape rest = shape;
  rest.erase(rest.begin() + column);
  rest.push_back(columns);
  Array scalar_scale = scalar(scale, dtype);
  return scalar_scale * numpy::moveaxis(lax::reshape(matrix, rest), -1, column);
}

}  // namespace

Array Initializer::operator()(const Array& key, const Shape& shape, std::optional<DType> dtype) const {
  return function_(key, shape, canonical(dtype ? *dtype : dtype_.value_or(default_float())));
}

Array zeros(const Array&, const Shape& shape, std::optional<DType> dtype) {
  return lax::full(shape, 0, dtype.value_or(default_float()));
}

Array ones(const Array&, const Shape& shape, std::optional<DType> dtype) {
  return lax::full(shape, 1, dtype.value_or(default_float()));
}

Initializer constant(const Array& value, std::optional<DType> dtype) {
  return {dtype, [value](const Array&, const Shape& shape, DType to) {
            return broadcast_to("full", scalar(value, to), shape);
          }};
}

Initializer uniform(const Array& scale, std::optional<DType> dtype) {
  return {dtype, [scale](const Array& key, const Shape& shape, DType to) {
            Array uniform_draw = random::uniform(key, {.shape = shape, .dtype = to});
            return uniform_draw * scalar(scale, to);
          }};
}

Initializer normal(const Array& stddev, std::optional<DType> dtype) {
  return {dtype, [stddev](const Array& key, const Shape& shape, DType to) {
            Array normal_draw = random::normal(key, {.shape = shape, .dtype = to});
            return normal_draw * scalar(stddev, to);
          }};
}

Initializer truncated_normal(const TruncatedNormalOptions& options) {
  return {options.dtype, [options](const Array& key, const Shape& shape, DType to) {
            const Array draws =
                random::truncated_normal(key, options.lower, options.upper, {.shape = shape, .dtype = to});
            return draws * scalar(options.stddev, to);
          }};
}

Initializer variance_scaling(double scale, const std::string& mode, const std::string& distribution,
                             const FanOptions& options) {
  return {options.dtype, [=](const Array& key, const Shape& shape, DType to) {
            const double variance = scale / denominator_of(mode, fans_of(shape, options));
            return draw_scaled(key, shape, to, distribution, variance);
          }};
}

Initializer glorot_uniform(const FanOptions& options) { return variance_scaling(1, "fan_avg", "uniform", options); }
Initializer glorot_normal(const FanOptions& options) {
  return variance_scaling(1, "fan_avg", "truncated_normal", options);
}
Initializer xavier_uniform(const FanOptions& options) { return glorot_uniform(options); }
Initializer xavier_normal(const FanOptions& options) { return glorot_normal(options); }
Initializer lecun_uniform(const FanOptions& options) { return variance_scaling(1, "fan_in", "uniform", options); }
Initializer lecun_normal(const FanOptions& options) {
  return variance_scaling(1, "fan_in", "truncated_normal", options);
}
Initializer he_uniform(const FanOptions& options) { return variance_scaling(2, "fan_in", "uniform", options); }
Initializer he_normal(const FanOptions& options) { return variance_scaling(2, "fan_in", "truncated_normal", options); }
Initializer kaiming_uniform(const FanOptions& options) { return he_uniform(options); }
Initializer kaiming_normal(const FanOptions& options) { return he_normal(options); }

Initializer orthogonal(const OrthogonalOptions& options) {
  return {options.dtype, [options](const Array& key, const Shape& shape, DType to) {
            return draw_orthogonal(key, shape, to, options.scale, options.column_axis);
          }};
}

Initializer delta_orthogonal(const OrthogonalOptions& options) {
  return {options.dtype, [options](const Array& key, const Shape& shape, DType to) {
            const std::size_t rank = shape.size();
            if (rank < 3 || rank > 5) {
              throw ValueError(concat("delta_orthogonal: a shape of 3, 4 or 5 dimensions is needed, got ", rank));
            }
            if (shape[rank - 1] < shape[rank - 2]) {
              throw ValueError(concat("delta_orthogonal: fan_in must not exceed fan_out, got ", shape[rank - 2],
                                      " and ", shape[rank - 1]));
            }
            const Shape square(shape.end() - 2, shape.end());
            const Array matrix = draw_orthogonal(key, square, to, options.scale, options.column_axis);
            std::vector<Index> middle;
            for (std::size_t i = 0; i + 2 < rank; ++i) middle.emplace_back((shape[i] - 1) / 2);
            return IndexUpdate(lax::full(shape, 0, to), middle).set(matrix);
          }};
}

}  // namespace capibara::jax::nn::initializers
