// The language model: the order of its layers, and the loss.
#include <capibara/training/language_model.h>

#include <capibara/kernels/norms.h>
#include <capibara/lax.h>

#include <algorithm>

#include "models/protocol/checkpointing.h"
#include "models/protocol/finite.h"
#include "models/training/layer_kinds.h"

namespace capibara::training {

namespace lax = jax::lax;

namespace {

constexpr const char* embedding_name = "embedding";
constexpr const char* positions_name = "positions";

std::string layer_prefix(std::size_t layer) { return concat("layers.", layer, "."); }

void require_positive(const char* field, int64_t value) {
  if (value < 1) throw ValueError(concat("LanguageModelConfig: ", field, " must be positive, got ", value));
}

void require_one_of(const char* field, const std::string& value, const char* first, const char* second) {
  if (value == first || value == second) return;
  throw ValueError(concat("LanguageModelConfig: ", field, " is '", first, "' or '", second, "', got '", value, "'"));
}

Array mean_of_rows(const Array& losses) {
  return lax::reduce_sum(losses, {.axes = {0, 1}}) / static_cast<double>(losses.size());
}

}  // namespace

LayerKind layer_kind(const std::string& text) {
  const std::size_t plus = text.find('+');
  LayerKind kind = {text.substr(0, plus), plus == std::string::npos ? "" : text.substr(plus + 1)};
  const bool mixer = kind.mixer == "attention" || kind.mixer == "mamba";
  const bool follower = kind.feed_forward == "mlp" || kind.feed_forward == "moe" || plus == std::string::npos;
  if (mixer && follower) return kind;
  throw ValueError(concat(
      "LanguageModelConfig: a layer is 'attention' or 'mamba', alone or with '+mlp' or '+moe', got '", text, "'"));
}

LanguageModel::LanguageModel(LanguageModelConfig config) : config_(std::move(config)) {
  require_positive("vocabulary", config_.vocabulary);
  require_positive("width", config_.width);
  require_positive("heads", config_.heads);
  require_positive("key_heads", config_.key_heads);
  require_positive("hidden", config_.hidden);
  require_positive("experts", config_.experts);
  require_positive("state", config_.state);
  require_positive("expand", config_.expand);
  require_positive("max_length", config_.max_length);
  if (config_.taps < 2) throw ValueError(concat("LanguageModelConfig: taps must be at least 2, got ", config_.taps));
  if (config_.experts_per_token < 1 || config_.experts_per_token > config_.experts) {
    throw ValueError(concat("LanguageModelConfig: experts_per_token must be between 1 and experts = ", config_.experts,
                            ", got ", config_.experts_per_token));
  }
  if (config_.width % config_.heads != 0 || config_.width / config_.heads % 2 != 0) {
    throw ValueError(
        concat("LanguageModelConfig: width ", config_.width, " must be an even multiple of heads ", config_.heads));
  }
  if (config_.heads % config_.key_heads != 0) {
    throw ValueError(
        concat("LanguageModelConfig: heads ", config_.heads, " must be a multiple of key_heads ", config_.key_heads));
  }
  require_one_of("norm", config_.norm, "rms", "layer");
  require_one_of("positions", config_.positions, "rotary", "learned");
  require_one_of("activation", config_.activation, "silu", "gelu");
  if (config_.layers.empty()) throw ValueError("LanguageModelConfig: layers must name at least one layer");
  for (const std::string& layer : config_.layers) layer_kind(layer);
  if (config_.checkpoint_every_n_layers < 0) {
    throw ValueError(concat("enable_gradient_checkpointing: checkpoint_every_n_layers must not be negative, got ",
                            config_.checkpoint_every_n_layers));
  }
  checkpoint_policy_of(config_.checkpoint_policy);
}

LanguageModel enable_gradient_checkpointing(const LanguageModel& model, int64_t checkpoint_every_n_layers,
                                            const std::string& checkpoint_policy) {
  LanguageModelConfig config = model.config();
  config.checkpoint_every_n_layers = checkpoint_every_n_layers;
  config.checkpoint_policy = checkpoint_policy;
  return LanguageModel(std::move(config));
}

// ---- layers in order ---------------------------------------------------------------------------------------------

Array LanguageModel::start(const Parameters& parameters, const Array& tokens, const Array& position) const {
  const auto codes = find_codes(parameters, embedding_name, config_.width);
  Array x = codes ? kernels::quantized_rows(*codes, tokens, parameter(parameters, "norm.scale").dtype())
                  : embed(parameter(parameters, embedding_name), tokens);
  if (config_.positions == "rotary") return x;
  const Array table = parameter(parameters, positions_name);
  Array rows = lax::dynamic_slice_in_dim(table, position, tokens.shape(1), 0);
  return x + lax::broadcast_in_dim(rows, x.shape(), {1, 2});
}

std::pair<Array, Array> LanguageModel::run_layer(const Parameters& parameters, std::size_t layer, Array x,
                                                 CachePosition* cache, const Probe& probe, Array* shares) const {
  const LayerKind kind = layer_kind(config_.layers[layer]);
  const std::string prefix = layer_prefix(layer);
  const std::string mixer = prefix + kind.mixer + ".";
  Array load = lax::full({}, 0.0f);
  Array normed = normalize(parameters, prefix + "mixer_norm.", x, config_.norm_epsilon);
  if (kind.mixer == "attention") {
    AttentionOptions options = {.heads = config_.heads, .key_heads = config_.key_heads, .rope_base = config_.rope_base};
    if (config_.positions != "rotary") options.rope_base.reset();
    x = x + attention(parameters, mixer, normed, options, cache);
  } else {
    x = x + mamba(parameters, mixer, normed, {.state = config_.state}, cache);
  }
  if (probe) probe(prefix + kind.mixer, x);
  if (kind.feed_forward.empty()) return {x, load};
  const std::string feed = prefix + kind.feed_forward + ".";
  normed = normalize(parameters, prefix + "feed_norm.", x, config_.norm_epsilon);
  if (kind.feed_forward == "moe") {
    auto [output, aux] = expert_feed_forward(parameters, feed, normed, config_.experts_per_token);
    x = x + output;
    load = lax::convert_element_type(aux, DType::float32);
    if (shares) *shares = expert_shares(parameters, feed, normed, config_.experts_per_token);
  } else {
    x = x + (config_.activation == "silu" ? gated_feed_forward(parameters, feed, normed)
                                          : gelu_feed_forward(parameters, feed, normed));
  }
  if (probe) probe(prefix + kind.feed_forward, x);
  return {x, load};
}

std::pair<Array, Array> LanguageModel::run_layers(const Parameters& parameters, Array x, std::size_t first,
                                                  std::size_t last, const Probe& probe) const {
  Array load = lax::full({}, 0.0f);
  for (std::size_t layer = first; layer < last; ++layer) {
    auto [next, own] = run_layer(parameters, layer, x, nullptr, probe);
    x = next;
    load = load + own;
  }
  return {x, load};
}

Array LanguageModel::head(const Parameters& parameters, Array x) const {
  x = normalize(parameters, "norm.", x, config_.norm_epsilon);
  if (!config_.tied) return linear(parameters, "head.", x);
  if (const auto codes = find_codes(parameters, embedding_name, config_.width)) {
    return kernels::quantized_matmul(x, *codes);
  }
  return tied_head(parameter(parameters, embedding_name), x);
}

LanguageModel::Output LanguageModel::run(const Parameters& parameters, const Array& tokens, const Probe& probe) const {
  if (tokens.ndim() != 2 || !is_integer(tokens.dtype())) {
    throw ValueError(
        concat("LanguageModel: expected integers [batch, length] (argument 'tokens'), got ", to_string(tokens.type())));
  }
  Array x = start(parameters, tokens, lax::full({}, 0, DType::int32));
  if (probe) probe(embedding_name, x);
  const std::size_t count = config_.layers.size();
  const auto group = static_cast<std::size_t>(config_.checkpoint_every_n_layers);
  Array load = lax::full({}, 0.0f);
  for (std::size_t first = 0; first < count;) {
    const std::size_t last = group == 0 ? count : std::min(count, first + group);
    std::pair<Array, Array> result;
    if (group == 0 || probe) {
      result = run_layers(parameters, x, first, last, probe);
    } else {
      // Only the parameters of the group are operands of the checkpointed call.
      Parameters own;
      for (std::size_t layer = first; layer < last; ++layer) {
        const std::string prefix = layer_prefix(layer);
        for (auto it = parameters.lower_bound(prefix); it != parameters.end() && it->first.starts_with(prefix); ++it) {
          own.insert(*it);
        }
      }
      auto body = [this, first, last](const Parameters& some, const Array& input) {
        return run_layers(some, input, first, last, {});
      };
      result = jax::checkpoint(body, {.policy = checkpoint_policy_of(config_.checkpoint_policy)})(own, x);
    }
    x = result.first;
    load = load + result.second;
    first = last;
  }
  Array logits = head(parameters, x);
  if (probe) probe("head", logits);
  return {logits, load};
}

// ---- public interface -----------------------------------------------------------------------------------------------

Array LanguageModel::apply(const Parameters& parameters, const Array& tokens) const {
  return run(parameters, tokens, {}).logits;
}

namespace {

// The length of windows of tokens [batch, length + 1].
int64_t length_of(const char* operation, const Array& tokens) {
  if (tokens.ndim() == 2 && tokens.shape(1) >= 2 && is_integer(tokens.dtype())) return tokens.shape(1) - 1;
  throw ValueError(concat("LanguageModel.", operation,
                          ": expected integers [batch, length + 1] (argument 'tokens'), got ",
                          to_string(tokens.type())));
}

}  // namespace

Array LanguageModel::loss(const Parameters& parameters, const Array& tokens) const {
  const int64_t length = length_of("loss", tokens);
  return loss_of(run(parameters, lax::slice_in_dim(tokens, 0, length, 1, 1), {}), tokens);
}

Array LanguageModel::loss_of(const Output& output, const Array& tokens) const {
  Array labels = lax::slice_in_dim(tokens, 1, tokens.shape(1), 1, 1);
  return mean_of_rows(kernels::cross_entropy(output.logits, labels)) + config_.load_weight * output.load;
}

Array LanguageModel::cross_entropy(const Parameters& parameters, const Array& tokens) const {
  const int64_t length = length_of("cross_entropy", tokens);
  Array logits = apply(parameters, lax::slice_in_dim(tokens, 0, length, 1, 1));
  return mean_of_rows(kernels::cross_entropy(logits, lax::slice_in_dim(tokens, 1, length + 1, 1, 1)));
}

Array LanguageModel::loss_in(DType compute, const Parameters& parameters, const Array& tokens) const {
  Parameters cast;
  for (const auto& [name, array] : parameters) {
    const auto is_part_of_codes = [&](const char* ending) {
      return name.ends_with(ending) && parameters.count(name.substr(0, name.rfind('.')) + ".codes") != 0;
    };
    const bool kept = !is_floating(array.dtype()) || is_part_of_codes(".scale") || is_part_of_codes(".codebook");
    cast[name] = kept ? array : lax::convert_element_type(array, compute);
  }
  return lax::convert_element_type(loss(cast, tokens), DType::float32);
}

ModelCache LanguageModel::make_cache(int64_t batch, int64_t capacity, DType dtype) const {
  ModelCache cache;
  const int64_t inner = config_.expand * config_.width, head_dim = config_.width / config_.heads;
  for (const std::string& layer : config_.layers) {
    if (layer_kind(layer).mixer == "attention") {
      const Shape shape = {batch, config_.key_heads, capacity, head_dim};  // two arrays, since callers donate them
      cache.layers.push_back({lax::full(shape, 0.0, dtype), lax::full(shape, 0.0, dtype)});
    } else {
      cache.layers.push_back({lax::full({batch, config_.taps - 1, inner}, 0.0, dtype),
                              lax::full({batch, inner, config_.state}, 0.0, DType::float32)});
    }
  }
  cache.position = lax::full({}, 0, DType::int32);
  return cache;
}

std::pair<Array, ModelCache> LanguageModel::extend(const Parameters& parameters, const Array& tokens,
                                                   const ModelCache& cache) const {
  Array x = start(parameters, tokens, cache.position);
  ModelCache next;
  for (std::size_t layer = 0; layer < config_.layers.size(); ++layer) {
    CachePosition own = {cache.layers[layer], cache.position};
    x = run_layer(parameters, layer, x, &own, {}).first;
    next.layers.push_back(own.arrays);
  }
  next.position = cache.position + static_cast<int32_t>(tokens.shape(1));
  return {head(parameters, x), next};
}

ModelParts LanguageModel::parts() const {
  const auto model = std::make_shared<const LanguageModel>(*this);
  auto tokens_of = [](const char* operation, const Arrays& batch) -> const Array& {
    if (batch.size() == 1) return batch[0];
    throw ValueError(concat("LanguageModel.", operation, ": expected one array of tokens (argument 'batch'), got ",
                            batch.size(), " arrays"));
  };
  auto inputs_of = [tokens_of](const Arrays& batch) {
    const Array& tokens = tokens_of("loss", batch);
    return lax::slice_in_dim(tokens, 0, length_of("loss", tokens), 1, 1);
  };
  ModelParts parts;
  parts.name = "LanguageModel";
  parts.init = [model](const Array& key) { return model->init(key); };
  for (const auto& [name, shape] : shapes()) parts.types[name].shape = shape;  // float32
  parts.apply = [=](const Parameters& p, const Arrays& batch) { return model->apply(p, tokens_of("apply", batch)); };
  parts.loss = [=](const Parameters& p, const Arrays& batch) { return model->loss(p, tokens_of("loss", batch)); };
  parts.evaluate = [=](const Parameters& p, const Arrays& batch) {
    return model->cross_entropy(p, tokens_of("evaluate", batch));
  };
  parts.first_bad_value = [=](const Parameters& p, const Arrays& batch) {
    return model->first_bad_layer(p, inputs_of(batch));
  };
  ModelLayers layers;
  layers.count = static_cast<int64_t>(config_.layers.size());
  for (std::size_t layer = 0; layer < config_.layers.size(); ++layer) layers.prefixes.push_back(layer_prefix(layer));
  // The carry: the activations, and the shares of the layers with experts, [1, layers, 2, experts], which each layer
  // shifts by one. The leading dimension is not one of examples.
  const auto mixtures = std::count_if(config_.layers.begin(), config_.layers.end(),
                                      [](const std::string& text) { return layer_kind(text).feed_forward == "moe"; });
  layers.start = [=](const Parameters& p, const Arrays& batch) {
    const Array x = model->start(p, inputs_of(batch), lax::full({}, 0, DType::int32));
    if (mixtures == 0) return Arrays{x};
    return Arrays{x, lax::full({1, mixtures, 2, model->config().experts}, 0.0, DType::float32)};
  };
  layers.run = [=](const Parameters& p, int64_t layer, const Arrays& carry) {
    Array shares;
    const Array x = model->run_layer(p, static_cast<std::size_t>(layer), carry.at(0), nullptr, {}, &shares).first;
    if (carry.size() == 1) return Arrays{x};
    if (layer_kind(model->config().layers[static_cast<std::size_t>(layer)]).feed_forward != "moe") {
      return Arrays{x, carry[1]};
    }
    const Array others = lax::slice_in_dim(carry[1], 1, mixtures, 1, 1);
    return Arrays{x, lax::concatenate({others, lax::expand_dims(shares, {0, 1})}, 1)};
  };
  layers.finish = [=](const Parameters& p, const Arrays& carry, const Arrays& batch) {
    const Array load = carry.size() == 1 ? lax::full({}, 0.0f) : load_of_shares(lax::squeeze(carry[1], {0}));
    return model->loss_of({model->head(p, carry.at(0)), load}, tokens_of("loss", batch));
  };
  layers.checkpoint_every_n_layers = config_.checkpoint_every_n_layers;
  layers.checkpoint_policy = config_.checkpoint_policy;
  parts.layers = std::move(layers);
  parts.checkpointed = [model](int64_t every, const std::string& policy) {
    ModelParts made = enable_gradient_checkpointing(*model, every, policy).parts();
    return made;
  };
  parts.logical_axes = logical_axes_of(config_);
  parts.sizes = sizes_of(*model);
  parts.source = model;
  parts.source_type = &typeid(LanguageModel);
  return parts;
}

std::string LanguageModel::first_bad_layer(const Parameters& parameters, const Array& tokens) const {
  for (const auto& [name, array] : parameters) {
    if (!all_finite(array)) return concat("parameter ", name);
  }
  std::string bad;
  run(parameters, tokens, [&](const std::string& name, const Array& value) {
    if (bad.empty() && !all_finite(value)) bad = name;
  });
  return bad;
}

}  // namespace capibara::training
