// The parameters of the language model: names, shapes, first values, and the operations they cost.
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
  double deviation = 0;    // of normal numbers
  int64_t multiplied = 0;  // matmul multiplications for each token
};
using Entries = std::map<std::string, Entry>;

class Table {
 public:
  explicit Table(const LanguageModelConfig& config) : config_(config) {
    // What is added to the residual stream begins smaller, so that its size does not grow with the depth.
    shrink_ = 1 / std::sqrt(2.0 * static_cast<double>(config.layers.size()));
    entries_["embedding"] = {
        {config.vocabulary, config.width}, Start::normal, 0.02, config.tied ? config.vocabulary * config.width : 0};
    if (config.positions == "learned") {
      entries_["positions"] = {{config.max_length, config.width}, Start::normal, 0.01};
    }
    add_norm("norm.");
    if (!config.tied) add_weight("head.", config.width, config.vocabulary, 1, false);
    for (std::size_t i = 0; i < config.layers.size(); ++i) {
      add_layer(concat("layers.", i, "."), layer_kind(config.layers[i]));
    }
  }
  const Entries& entries() const { return entries_; }

 private:
  void add_norm(const std::string& prefix) {
    entries_[prefix + "scale"] = {{config_.width}, Start::one};
    if (config_.norm == "layer") entries_[prefix + "bias"] = {{config_.width}, Start::zero};
  }

  void add_weight(const std::string& prefix, int64_t inputs, int64_t outputs, double factor, bool bias) {
    entries_[prefix + "weight"] = {
        {inputs, outputs}, Start::normal, factor / std::sqrt(static_cast<double>(inputs)), inputs * outputs};
    if (bias) entries_[prefix + "bias"] = {{outputs}, Start::zero};
  }

  void add_layer(const std::string& prefix, const LayerKind& kind) {
    const int64_t width = config_.width, hidden = config_.hidden;
    add_norm(prefix + "mixer_norm.");
    const std::string mixer = prefix + kind.mixer + ".";
    if (kind.mixer == "attention") {
      const int64_t joined = width / config_.heads * (config_.heads + 2 * config_.key_heads);
      add_weight(mixer + "qkv.", width, joined, 1, config_.bias);
      add_weight(mixer + "out.", width, width, shrink_, config_.bias);
    } else {
      add_mamba(mixer);
    }
    if (kind.feed_forward.empty()) return;
    add_norm(prefix + "feed_norm.");
    const std::string feed = prefix + kind.feed_forward + ".";
    if (kind.feed_forward == "moe") {
      add_weight_of_experts(feed);
    } else if (config_.activation == "silu") {
      add_weight(feed + "gate_up.", width, 2 * hidden, 1, config_.bias);
      add_weight(feed + "down.", hidden, width, shrink_, config_.bias);
    } else {
      add_weight(feed + "up.", width, hidden, 1, config_.bias);
      add_weight(feed + "down.", hidden, width, shrink_, config_.bias);
    }
  }

  void add_mamba(const std::string& prefix) {
    const int64_t width = config_.width, inner = config_.expand * width, rank = (width + 15) / 16;
    add_weight(prefix + "in.", width, 2 * inner, 1, false);
    entries_[prefix + "conv"] = {
        {config_.taps, inner}, Start::normal, 1 / std::sqrt(static_cast<double>(config_.taps))};
    entries_[prefix + "conv_bias"] = {{inner}, Start::zero};
    add_weight(prefix + "x.", inner, rank + 2 * config_.state, 1, false);
    add_weight(prefix + "dt.", rank, inner, 1, false);
    entries_[prefix + "dt_bias"] = {{inner}, Start::step};
    entries_[prefix + "A_log"] = {{inner, config_.state}, Start::decay};
    entries_[prefix + "D"] = {{inner}, Start::one};
    add_weight(prefix + "out.", inner, width, shrink_, false);
  }

  void add_weight_of_experts(const std::string& prefix) {
    const int64_t width = config_.width, hidden = config_.hidden, experts = config_.experts;
    const double in = 1 / std::sqrt(static_cast<double>(width)), out = 1 / std::sqrt(static_cast<double>(hidden));
    const int64_t used = config_.experts_per_token * width * hidden;
    entries_[prefix + "router"] = {{width, experts}, Start::normal, 0.02, width * experts};
    entries_[prefix + "gate"] = {{experts, width, hidden}, Start::normal, in, used};
    entries_[prefix + "up"] = {{experts, width, hidden}, Start::normal, in, used};
    entries_[prefix + "down"] = {{experts, hidden, width}, Start::normal, out * shrink_, used};
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
    case Start::step: {  // softplus of it is spread evenly over the logarithms of 0.001 to 0.1
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

// Two for each multiplication of a matmul; attention sees half of the keys on average; a step of the scan multiplies
// and adds about three times for each element of the state.
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
