// jax.nn.initializers: functions that make functions which draw the first values of weights.
#pragma once

#include <capibara/array.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace capibara::jax::nn::initializers {

// Called as init(key, shape) or init(key, shape, dtype); without a dtype, that given to the maker, or the default float.
class Initializer {
 public:
  using Function = std::function<Array(const Array& key, const Shape& shape, DType dtype)>;
  Initializer(std::optional<DType> dtype, Function function) : dtype_(dtype), function_(std::move(function)) {}
  Array operator()(const Array& key, const Shape& shape, std::optional<DType> dtype = std::nullopt) const;

 private:
  std::optional<DType> dtype_;
  Function function_;
};

Array zeros(const Array& key, const Shape& shape, std::optional<DType> dtype = std::nullopt);
Array ones(const Array& key, const Shape& shape, std::optional<DType> dtype = std::nullopt);

Initializer constant(const Array& value, std::optional<DType> dtype = std::nullopt);
Initializer uniform(const Array& scale = 0.01, std::optional<DType> dtype = std::nullopt);  // in [0, scale)
Initializer normal(const Array& stddev = 0.01, std::optional<DType> dtype = std::nullopt);

struct TruncatedNormalOptions {
  Array stddev = 0.01;
  std::optional<DType> dtype = {};
  Array lower = -2.0, upper = 2.0;  // before scaling
};
Initializer truncated_normal(const TruncatedNormalOptions& options = {});

// The axes of a weight's inputs, outputs and batches; all others are its receptive field.
struct FanOptions {
  std::vector<int64_t> in_axis = {-2}, out_axis = {-1}, batch_axis = {};
  std::optional<DType> dtype = {};
};
// Variance scale / n, where n is the mode's: "fan_in", "fan_out", "fan_avg" or "fan_geo_avg"; the distribution is
// "truncated_normal", "normal" or "uniform".
Initializer variance_scaling(double scale, const std::string& mode, const std::string& distribution,
                             const FanOptions& options = {});
Initializer glorot_uniform(const FanOptions& options = {});
Initializer glorot_normal(const FanOptions& options = {});
Initializer xavier_uniform(const FanOptions& options = {});
Initializer xavier_normal(const FanOptions& options = {});
Initializer lecun_uniform(const FanOptions& options = {});
Initializer lecun_normal(const FanOptions& options = {});
Initializer he_uniform(const FanOptions& options = {});
Initializer he_normal(const FanOptions& options = {});
Initializer kaiming_uniform(const FanOptions& options = {});
Initializer kaiming_normal(const FanOptions& options = {});

struct OrthogonalOptions {
  Array scale = 1.0;
  int64_t column_axis = -1;
  std::optional<DType> dtype = {};
};
Initializer orthogonal(const OrthogonalOptions& options = {});
// Orthogonal in the middle of a convolution's kernel, zero elsewhere.
Initializer delta_orthogonal(const OrthogonalOptions& options = {});

}  // namespace capibara::jax::nn::initializers
