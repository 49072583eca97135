// Loads of devices from counts and timings, and the changes that balance them.
#include <capibara/numpy.h>
#include <capibara/tpu/loads.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "core/array/format.h"

namespace capibara::tpu {

namespace {

void require_division(const char* operation, int64_t experts, int64_t devices) {
  if (devices >= 1 && experts >= 1 && experts % devices == 0) return;
  throw ValueError(concat(operation, ": devices must divide the ", experts, " experts, got devices=", devices));
}

std::vector<double> counts_of(const char* operation, const Array& counts) {
  if (counts.ndim() != 1) {
    throw ValueError(concat(operation, ": counts is a vector with one entry for each expert, got shape ",
                            shape_tuple(counts.shape())));
  }
  std::vector<double> found = counts.to_vector<double>();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] >= 0) continue;
    throw ValueError(concat(operation, ": counts are 0 or more, got ", found[i], " of expert ", i));
  }
  return found;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool is_router(const std::string& name) {
  return ends_with(name, "router") || ends_with(name, "router.weight") || ends_with(name, "router.kernel");
}

}  // namespace

Array device_load(const std::vector<double>& amounts, int64_t rows, int64_t columns, double headroom) {
  if (rows < 1 || columns < 1 || static_cast<int64_t>(amounts.size()) != rows * columns) {
    throw ValueError(
        concat("device_load: expected an amount for each of ", rows, " x ", columns, " devices, got ", amounts.size()));
  }
  if (!(headroom > 0)) throw ValueError(concat("device_load: headroom is a positive number, got ", headroom));
  double sum = 0;
  for (const double amount : amounts) {
    if (!(amount >= 0) || std::isinf(amount))
      throw ValueError(concat("device_load: amounts are finite and 0 or more, got ", amount));
    sum += amount;
  }
  const double room = headroom * sum / static_cast<double>(amounts.size());
  std::vector<float> load;
  for (const double amount : amounts) load.push_back(room > 0 ? static_cast<float>(amount / room) : 0.0F);
  return Array::from_host(DType::float32, {rows, columns}, load.data());
}

std::vector<double> tokens_by_device(const Array& counts, int64_t devices) {
  const std::vector<double> tokens = counts_of("tokens_by_device", counts);
  require_division("tokens_by_device", counts.shape(0), devices);
  const std::size_t each = tokens.size() / static_cast<std::size_t>(devices);
  std::vector<double> sums(static_cast<std::size_t>(devices));
  for (std::size_t i = 0; i < tokens.size(); ++i) sums[i / each] += tokens[i];
  return sums;
}

std::vector<double> device_seconds(const std::function<Array(const Array& part)>& function, const Array& array,
                                   int repeats) {
  if (repeats < 1) throw ValueError(concat("device_seconds: repeats is at least 1, got ", repeats));
  std::vector<double> seconds;
  for (const Array& part : jax::addressable_shards(array)) {
    function(part).block_until_ready();
    double shortest = 0;
    for (int i = 0; i < repeats; ++i) {
      const auto started = std::chrono::steady_clock::now();
      function(part).block_until_ready();
      const double taken = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
      shortest = i == 0 ? taken : std::min(shortest, taken);
    }
    seconds.push_back(shortest);
  }
  return seconds;
}

std::vector<int64_t> balance_experts(const Array& counts, int64_t devices) {
  const std::vector<double> tokens = counts_of("balance_experts", counts);
  require_division("balance_experts", counts.shape(0), devices);
  const std::size_t each = tokens.size() / static_cast<std::size_t>(devices);
  std::vector<int64_t> by_tokens(tokens.size());
  std::iota(by_tokens.begin(), by_tokens.end(), 0);
  std::stable_sort(by_tokens.begin(), by_tokens.end(), [&](int64_t a, int64_t b) {
    return tokens[static_cast<std::size_t>(a)] > tokens[static_cast<std::size_t>(b)];
  });
  std::vector<std::vector<int64_t>> held(static_cast<std::size_t>(devices));
  std::vector<double> work(held.size());
  for (const int64_t expert : by_tokens) {
    std::size_t least = held.size();
    for (std::size_t device = 0; device < held.size(); ++device) {
      if (held[device].size() < each && (least == held.size() || work[device] < work[least])) least = device;
    }
    held[least].push_back(expert);
    work[least] += tokens[static_cast<std::size_t>(expert)];
  }
  std::vector<int64_t> order;
  for (const std::vector<int64_t>& experts : held) order.insert(order.end(), experts.begin(), experts.end());
  return order;
}

std::map<std::string, std::size_t> expert_dimensions(const ParameterTypes& types, const LogicalAxes& axes,
                                                     const std::string& prefix) {
  std::map<std::string, std::size_t> dimensions;
  bool has_router = false, has_expert = false;
  for (const auto& [name, type] : types) {
    if (name.rfind(prefix, 0) != 0) continue;
    if (is_router(name) && !type.shape.empty()) {
      dimensions[name] = type.shape.size() - 1;
      has_router = true;
      continue;
    }
    const auto named = axes.of.find(name);
    if (named == axes.of.end()) continue;
    const auto expert = std::find(named->second.begin(), named->second.end(), "expert");
    if (expert == named->second.end()) continue;
    dimensions[name] = static_cast<std::size_t>(expert - named->second.begin());
    has_expert = true;
  }
  if (!has_router || !has_expert) {
    throw ValueError(concat("reorder_experts: no parameter that begins with '", prefix, "' is ",
                            has_expert ? "a router, whose name ends in router" : "split over the logical axis 'expert'",
                            " (argument 'prefix')"));
  }
  int64_t experts = -1;
  for (const auto& [name, dim] : dimensions) {
    const int64_t size = types.at(name).shape.at(dim);
    if (experts >= 0 && size != experts) {
      throw ValueError(concat("reorder_experts: '", name, "' is of ", size, " experts, others that begin with '",
                              prefix, "' of ", experts, " (argument 'prefix')"));
    }
    experts = size;
  }
  return dimensions;
}

void require_order(const std::vector<int64_t>& order, int64_t experts) {
  std::vector<int64_t> sorted = order, numbers(order.size());
  std::sort(sorted.begin(), sorted.end());
  std::iota(numbers.begin(), numbers.end(), 0);
  if (sorted == numbers && static_cast<int64_t>(order.size()) == experts) return;
  throw ValueError(concat("reorder_experts: expected each number from 0 to ", experts - 1,
                          " once (argument 'order'), got ", order.size(), " numbers"));
}

AnyModel reorder_experts(const AnyModel& model, const std::string& prefix, const std::vector<int64_t>& order) {
  ModelParts parts = model.parts();
  if (parts.parameters.empty()) {
    throw TypeError(concat("reorder_experts: ", model.name(),
                           " has no parameters yet (argument 'model'); give it those ", "that its init(key) makes"));
  }
  const std::map<std::string, std::size_t> dimensions = expert_dimensions(model.types(), model.logical_axes(), prefix);
  const int64_t experts = model.types().at(dimensions.begin()->first).shape[dimensions.begin()->second];
  require_order(order, experts);
  std::vector<int32_t> places(order.begin(), order.end());
  const Array indices = Array::from_host(DType::int32, {experts}, places.data());
  for (const auto& [name, dim] : dimensions) {
    Array& array = parts.parameters.at(name);
    const std::optional<NamedSharding> placement = jax::placement(array);
    jax::numpy::TakeOptions along;
    along.axis = static_cast<int64_t>(dim);
    array = jax::numpy::take(array, indices, along);
    if (placement) array = jax::device_put(array, *placement);
  }
  return AnyModel(std::move(parts));
}

PartitionSpec fitted_spec(const PartitionSpec& spec, const Shape& shape, const Mesh& mesh) {
  PartitionSpec fitted;
  fitted.dims.resize(shape.size());
  const std::size_t last = std::min(shape.size(), spec.dims.size());
  for (std::size_t i = 0; i < last; ++i) {
    const std::size_t dim = shape.size() - last + i;
    const AxisList& axes = spec.dims[spec.dims.size() - last + i];
    int64_t parts = 1;
    for (const std::string& axis : axes) parts *= mesh.axis_size(axis);
    if (shape[dim] % parts == 0) fitted.dims[dim] = axes;
  }
  return fitted;
}

AnyModel reshard(const AnyModel& model, const NamedSharding& devices, const PartitionSpec& spec) {
  ModelParts parts = model.parts();
  if (parts.parameters.empty()) {
    throw TypeError(concat("reshard: ", model.name(),
                           " has no parameters yet (argument 'model'); give it those that its ", "init(key) makes"));
  }
  for (auto& [name, array] : parts.parameters) {
    if (static_cast<std::size_t>(array.ndim()) < spec.dims.size()) continue;
    NamedSharding placement = devices;
    placement.spec = fitted_spec(spec, array.shape(), devices.mesh);
    array = jax::device_put(array, placement);
  }
  return AnyModel(std::move(parts));
}

}  // namespace capibara::tpu
