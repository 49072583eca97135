// jax.nn.initializers: functions that return functions that draw initial values of weights.
#pragma once

#include <capibara/array.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace capibara::jax::nn::initializers {

// Called as init(key, shape) or init(key, shape, dtype); without a dtype, the one given to the maker, or the default
// float.
class Initializer {
 public:
  using Function = std::function<Array(const Array& key, const Shape& shape, DType dtype)>;
  Initializer(std::optional<DType> dtype, Function function) : dtype_(dtype), function_(std::move(function)) {}
  Array operator()(const Array& key, const Shape& shape, std::optional<DType> dtype = std::nullopt) const;

 private:
  std::optional<DType> dtype_;
  Function function_;
};

// Zeros, regardless of the key.
Array zeros(const Array& key, const Shape& shape, std::optional<DType> dtype = std::nullopt);
// Ones, regardless of the key.
Array ones(const Array& key, const Shape& shape, std::optional<DType> dtype = std::nullopt);

// An initializer that fills with a value.
Initializer constant(const Array& value, std::optional<DType> dtype = std::nullopt);
// An initializer that draws uniformly from [0, scale).
Initializer uniform(const Array& scale = 0.01, std::optional<DType> dtype = std::nullopt);
// An initializer that draws from the normal distribution with this standard deviation.
Initializer normal(const Array& stddev = 0.01, std::optional<DType> dtype = std::nullopt);

struct TruncatedNormalOptions {
  Array stddev = 0.01;
  std::optional<DType> dtype = {};
  Array lower = -2.0, upper = 2.0;  // before scaling
};
// An initializer that draws from the normal distribution cut off at lower and upper, then scales.
Initializer truncated_normal(const TruncatedNormalOptions& options = {});

// The axes of a weight's inputs, outputs and batches; all others are its receptive field.
struct FanOptions {
  std::vector<int64_t> in_axis = {-2}, out_axis = {-1}, batch_axis = {};
  std::optional<DType> dtype = {};
};
// An initializer whose variance is scale divided by the fan that the mode names. Modes are "fan_in", "fan_out",
// "fan_avg" and "fan_geo_avg", distributions "truncated_normal", "normal" and "uniform".
Initializer variance_scaling(double scale, const std::string& mode, const std::string& distribution,
                             const FanOptions& options = {});
// Uniform with variance 1 / average fan.
Initializer glorot_uniform(const FanOptions& options = {});
// Truncated normal with variance 1 / average fan.
Initializer glorot_normal(const FanOptions& options = {});
// Uniform with variance 1 / average fan: glorot_uniform.
Initializer xavier_uniform(const FanOptions& options = {});
// Truncated normal with variance 1 / average fan: glorot_normal.
Initializer xavier_normal(const FanOptions& options = {});
// Uniform with variance 1 / fan in.
Initializer lecun_uniform(const FanOptions& options = {});
// Truncated normal with variance 1 / fan in.
Initializer lecun_normal(const FanOptions& options = {});
// Uniform with variance 2 / fan in.
Initializer he_uniform(const FanOptions& options = {});
// Truncated normal with variance 2 / fan in.
Initializer he_normal(const FanOptions& options = {});
// Uniform with variance 2 / fan in: he_uniform.
Initializer kaiming_uniform(const FanOptions& options = {});
// Truncated normal with variance 2 / fan in: he_normal.
Initializer kaiming_normal(const FanOptions& options = {});

struct OrthogonalOptions {
  Array scale = 1.0;
  int64_t column_axis = -1;
  std::optional<DType> dtype = {};
};
// An initializer of orthonormal columns, or rows where there are fewer, times scale.
Initializer orthogonal(const OrthogonalOptions& options = {});
// An initializer of convolution kernels: orthogonal in the middle, zero elsewhere.
Initializer delta_orthogonal(const OrthogonalOptions& options = {});

}  // namespace capibara::jax::nn::initializers
