// The parameters of the language model: names, shapes, initial values, and FLOPs.
#include <capibara/training/language_model.h>

#include <capibara/lax.h>
#include <capibara/random.h>

#include <cmath>

#include "models/training/layer_kinds.h"

namespace capibara::training {

namespace lax = jax::lax;

namespace {

enum class Start { normal, zero, one, decay, step };

struct Entry {
  Shape shape;
  Start start = Start::normal;
  double deviation = 0;    // of the normal distribution
  int64_t multiplied = 0;  // matmul multiplications for each token
  std::vector<std::string> axes = {};
};
using Entries = std::map<std::string, Entry>;

class Table {
 public:
  explicit Table(const LanguageModelConfig& config) : config_(config) {
    // Projections into the residual stream start smaller, so that its magnitude does not grow with depth.
    shrink_ = 1 / std::sqrt(2.0 * static_cast<double>(config.layers.size()));
    entries_["embedding"] = {{config.vocabulary, config.width},
                             Start::normal,
                             0.02,
                             config.tied ? config.vocabulary * config.width : 0,
                             {"vocab", "embed"}};
    if (config.positions == "learned") {
      entries_["positions"] = {{config.max_length, config.width}, Start::normal, 0.01, 0, {"", "embed"}};
    }
    add_norm("norm.");
    if (!config.tied) add_weight("head.", {"embed", "vocab"}, config.width, config.vocabulary, 1, false);
    for (std::size_t i = 0; i < config.layers.size(); ++i) {
      add_layer(concat("layers.", i, "."), layer_kind(config.layers[i]));
    }
  }
  const Entries& entries() const { return entries_; }

 private:
  void add_norm(const std::string& prefix) {
    entries_[prefix + "scale"] = {{config_.width}, Start::one, 0, 0, {""}};
    if (config_.norm == "layer") entries_[prefix + "bias"] = {{config_.width}, Start::zero, 0, 0, {""}};
  }

  using Axes = std::vector<std::string>;

  void add_weight(const std::string& prefix, Axes axes, int64_t inputs, int64_t outputs, double factor, bool bias) {
    // A bias after a sum over devices is replicated, and added once to the complete sum.
    const std::string last = axes.back() == "embed" ? "" : axes.back();
    const double deviation = factor / std::sqrt(static_cast<double>(inputs));
    entries_[prefix + "weight"] = {{inputs, outputs}, Start::normal, deviation, inputs * outputs, std::move(axes)};
    if (bias) entries_[prefix + "bias"] = {{outputs}, Start::zero, 0, 0, {last}};
  }

  void add_layer(const std::string& prefix, const LayerKind& kind) {
    const int64_t width = config_.width, hidden = config_.hidden;
    add_norm(prefix + "mixer_norm.");
    const std::string mixer = prefix + kind.mixer + ".";
    if (kind.mixer == "attention") {
      const int64_t joined = width / config_.heads * (config_.heads + 2 * config_.key_heads);
      add_weight(mixer + "qkv.", {"embed", "heads"}, width, joined, 1, config_.bias);
      add_weight(mixer + "out.", {"heads", "embed"}, width, width, shrink_, config_.bias);
    } else {
      add_mamba(mixer);
    }
    if (kind.feed_forward.empty()) return;
    add_norm(prefix + "feed_norm.");
    const std::string feed = prefix + kind.feed_forward + ".";
    if (kind.feed_forward == "moe") {
      add_weight_of_experts(feed);
    } else if (config_.activation == "silu") {
      add_weight(feed + "gate_up.", {"embed", "mlp"}, width, 2 * hidden, 1, config_.bias);
      add_weight(feed + "down.", {"mlp", "embed"}, hidden, width, shrink_, config_.bias);
    } else {
      add_weight(feed + "up.", {"embed", "mlp"}, width, hidden, 1, config_.bias);
      add_weight(feed + "down.", {"mlp", "embed"}, hidden, width, shrink_, config_.bias);
    }
  }

  void add_mamba(const std::string& prefix) {
    const int64_t width = config_.width, inner = config_.expand * width, rank = (width + 15) / 16;
    add_weight(prefix + "in.", {"embed", "mlp"}, width, 2 * inner, 1, false);
    entries_[prefix + "conv"] = {
        {config_.taps, inner}, Start::normal, 1 / std::sqrt(static_cast<double>(config_.taps)), 0, {"", "mlp"}};
    entries_[prefix + "conv_bias"] = {{inner}, Start::zero, 0, 0, {"mlp"}};
    add_weight(prefix + "x.", {"mlp", ""}, inner, rank + 2 * config_.state, 1, false);
    add_weight(prefix + "dt.", {"", "mlp"}, rank, inner, 1, false);
    entries_[prefix + "dt_bias"] = {{inner}, Start::step, 0, 0, {"mlp"}};
    entries_[prefix + "A_log"] = {{inner, config_.state}, Start::decay, 0, 0, {"mlp", ""}};
    entries_[prefix + "D"] = {{inner}, Start::one, 0, 0, {"mlp"}};
    add_weight(prefix + "out.", {"mlp", "embed"}, inner, width, shrink_, false);
  }

  void add_weight_of_experts(const std::string& prefix) {
    const int64_t width = config_.width, hidden = config_.hidden, experts = config_.experts;
    const double in = 1 / std::sqrt(static_cast<double>(width)), out = 1 / std::sqrt(static_cast<double>(hidden));
    const int64_t used = config_.experts_per_token * width * hidden;
    entries_[prefix + "router"] = {{width, experts}, Start::normal, 0.02, width * experts, {"embed", ""}};
    entries_[prefix + "gate"] = {{experts, width, hidden}, Start::normal, in, used, {"expert", "embed", "mlp"}};
    entries_[prefix + "up"] = {{experts, width, hidden}, Start::normal, in, used, {"expert", "embed", "mlp"}};
    entries_[prefix + "down"] = {
        {experts, hidden, width}, Start::normal, out * shrink_, used, {"expert", "mlp", "embed"}};
  }

  const LanguageModelConfig& config_;
  double shrink_ = 1;
  Entries entries_;
};

Array first_value(const Entry& entry, const Array& key) {
  switch (entry.start) {
    case Start::zero:
      return lax::full(entry.shape, 0.0f);
    case Start::one:
      return lax::full(entry.shape, 1.0f);
    case Start::decay: {  // log(1), log(2) ... along the state
      Array number = lax::broadcasted_iota(DType::float32, entry.shape, 1);
      return lax::log(number + 1);
    }
    case Start::step: {  // its softplus is distributed log-uniformly from 0.001 to 0.1
      Array u = jax::random::uniform(key, {.shape = entry.shape});
      Array step = lax::exp(std::log(0.001) + u * std::log(100.0));
      return step + lax::log(-lax::expm1(-step));
    }
    case Start::normal:
      break;
  }
  return entry.deviation * jax::random::normal(key, {.shape = entry.shape});
}

}  // namespace

std::map<std::string, Shape> LanguageModel::shapes() const {
  std::map<std::string, Shape> shapes;
  const Table table(config_);
  for (const auto& [name, entry] : table.entries()) shapes[name] = entry.shape;
  return shapes;
}

Parameters LanguageModel::init(const Array& key) const {
  Parameters parameters;
  const Table table(config_);
  int64_t number = 0;
  for (const auto& [name, entry] : table.entries()) {
    parameters[name] = first_value(entry, jax::random::fold_in(key, number++));
  }
  return parameters;
}

int64_t LanguageModel::parameter_count() const {
  int64_t count = 0;
  for (const auto& [name, shape] : shapes()) count += element_count(shape);
  return count;
}

LogicalAxes logical_axes_of(const LanguageModelConfig& config) {
  LogicalAxes axes;
  const Table table(config);
  for (const auto& [name, entry] : table.entries()) axes.of[name] = entry.axes;
  return axes;
}

ModelSizes sizes_of(const LanguageModel& model) {
  const LanguageModelConfig& config = model.config();
  ModelSizes sizes;
  sizes.layers = static_cast<int64_t>(config.layers.size());
  sizes.width = config.width;
  sizes.heads = config.heads;
  sizes.key_heads = config.key_heads;
  sizes.head_size = config.width / config.heads;
  sizes.hidden = config.hidden;
  sizes.vocabulary = config.vocabulary;
  sizes.gated = config.activation == "silu";
  sizes.tied = config.tied;
  sizes.parameters = model.parameter_count();
  int64_t experts = 0, recurrent = 0;
  for (const std::string& layer : config.layers) {
    experts += layer_kind(layer).feed_forward == "moe";
    recurrent += layer_kind(layer).mixer == "mamba";
  }
  if (experts > 0) {
    sizes.experts = config.experts;
    sizes.experts_per_token = config.experts_per_token;
  }
  // Plans support layers of one kind; if they differ, the plan is for a different model, as its assumptions state.
  if (recurrent > 0) {
    sizes.assumptions.push_back(concat(recurrent, " of ", sizes.layers, " layers are Mamba and planned as attention"));
  }
  if (experts > 0 && experts < sizes.layers) {
    sizes.assumptions.push_back(
        concat(experts, " of ", sizes.layers, " layers have experts; all are planned with them"));
  }
  sizes.inferred = !sizes.assumptions.empty();
  return sizes;
}

// Two per multiplication of a matmul; attention sees half of the keys on average; a step of the scan multiplies
// and adds about three times per element of the state.
double LanguageModel::flops_per_token(int64_t length) const {
  double multiplied = 0;
  const Table table(config_);
  for (const auto& [name, entry] : table.entries()) multiplied += static_cast<double>(entry.multiplied);
  for (const std::string& layer : config_.layers) {
    if (layer_kind(layer).mixer == "attention") {
      multiplied += static_cast<double>(length * config_.width);
    } else {
      multiplied += static_cast<double>(3 * config_.expand * config_.width * config_.state);
    }
  }
  return 2 * multiplied;
}

}  // namespace capibara::training
