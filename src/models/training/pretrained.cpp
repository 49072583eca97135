// Weights of GPT-2 and Llama under the names of LanguageModel: concatenated, and transposed if stored as the transpose.
#include <capibara/training/pretrained.h>

#include <capibara/lax.h>
#include <capibara/safetensors.h>

#include <filesystem>

#include "io/files/json.h"
#include "io/files/mapped_file.h"

namespace capibara::training {

namespace lax = jax::lax;

namespace {

// The config as published, with errors that name its fields.
class PublishedConfig {
 public:
  explicit PublishedConfig(const std::string& path) : path_(path) {
    const MappedFile file(path);
    json_ = Json::parse(file.text(), path);
  }
  std::string text(const char* name) const {
    const Json* value = json_.find(name);
    if (!value || !value->text()) throw ValueError(concat(path_, ": the field '", name, "' must be a text"));
    return *value->text();
  }
  int64_t integer(const char* name) const {
    const Json* value = json_.find(name);
    if (!value || !value->integer()) throw ValueError(concat(path_, ": the field '", name, "' must be an integer"));
    return *value->integer();
  }
  int64_t integer(const char* name, int64_t otherwise) const {
    const Json* value = json_.find(name);
    return value && !value->is_null() ? integer(name) : otherwise;
  }
  double number(const char* name, double otherwise) const {
    const Json* value = json_.find(name);
    if (!value || value->is_null()) return otherwise;
    if (!value->number()) throw ValueError(concat(path_, ": the field '", name, "' must be a number"));
    return *value->number();
  }
  bool truth(const char* name, bool otherwise) const {
    const Json* value = json_.find(name);
    if (!value || value->is_null()) return otherwise;
    if (!value->boolean()) throw ValueError(concat(path_, ": the field '", name, "' must be true or false"));
    return *value->boolean();
  }
  // Fields that would change the results but are not implemented.
  void require_absent(const char* name) const {
    const Json* value = json_.find(name);
    if (value && !value->is_null()) throw ValueError(concat(path_, ": '", name, "' is not supported"));
  }

 private:
  std::string path_;
  Json json_;
};

Array read_wide(const SafetensorsFile& file, const std::string& name) {
  return lax::convert_element_type(file.read(name), DType::float32);
}

// Stored as [outputs, inputs].
Array read_transposed(const SafetensorsFile& file, const std::string& name) {
  return lax::transpose(read_wide(file, name), {1, 0});
}

// Each layer has tensors of its own, so a config cannot claim more layers than the file has tensors.
int64_t layer_count(const PublishedConfig& published, const char* name, const SafetensorsFile& file) {
  const int64_t layers = published.integer(name);
  const auto most = static_cast<int64_t>(file.names().size());
  if (layers < 0 || layers > most)
    throw ValueError(concat("load_pretrained: '", name, "' is ", layers, ", but the file has ", most, " tensors"));
  return layers;
}

Array joined(const Arrays& parts) { return lax::concatenate(parts, 1); }

std::pair<LanguageModelConfig, Parameters> read_gpt2(const PublishedConfig& published, const SafetensorsFile& file) {
  LanguageModelConfig config;
  config.vocabulary = published.integer("vocab_size");
  config.width = published.integer("n_embd");
  config.heads = config.key_heads = published.integer("n_head");
  config.hidden = published.integer("n_inner", 4 * config.width);
  config.max_length = published.integer("n_positions");
  config.norm_epsilon = published.number("layer_norm_epsilon", 1e-5);
  config.norm = "layer", config.positions = "learned", config.activation = "gelu";
  config.bias = config.tied = true;
  const int64_t layers = layer_count(published, "n_layer", file);
  config.layers.assign(static_cast<std::size_t>(layers), "attention+mlp");
  const std::string root = file.has("transformer.wte.weight") ? "transformer." : "";
  Parameters parameters;
  auto take = [&](const std::string& to, const std::string& from) { parameters[to] = read_wide(file, root + from); };
  take("embedding", "wte.weight"), take("positions", "wpe.weight");
  take("norm.scale", "ln_f.weight"), take("norm.bias", "ln_f.bias");
  for (int64_t i = 0; i < layers; ++i) {
    const std::string to = concat("layers.", i, "."), from = concat("h.", i, ".");
    take(to + "mixer_norm.scale", from + "ln_1.weight"), take(to + "mixer_norm.bias", from + "ln_1.bias");
    take(to + "feed_norm.scale", from + "ln_2.weight"), take(to + "feed_norm.bias", from + "ln_2.bias");
    for (const char* part : {"weight", "bias"}) {
      take(to + "attention.qkv." + part, from + "attn.c_attn." + part);
      take(to + "attention.out." + part, from + "attn.c_proj." + part);
      take(to + "mlp.up." + part, from + "mlp.c_fc." + part);
      take(to + "mlp.down." + part, from + "mlp.c_proj." + part);
    }
  }
  return {config, parameters};
}

std::pair<LanguageModelConfig, Parameters> read_llama(const PublishedConfig& published, const SafetensorsFile& file) {
  LanguageModelConfig config;
  published.require_absent("rope_scaling");
  config.vocabulary = published.integer("vocab_size");
  config.width = published.integer("hidden_size");
  config.heads = published.integer("num_attention_heads");
  config.key_heads = published.integer("num_key_value_heads", config.heads);
  config.hidden = published.integer("intermediate_size");
  config.max_length = published.integer("max_position_embeddings", 2048);
  config.norm_epsilon = published.number("rms_norm_eps", 1e-6);
  config.rope_base = published.number("rope_theta", 10000);
  config.tied = published.truth("tie_word_embeddings", false);
  if (published.truth("attention_bias", false) || published.truth("mlp_bias", false)) {
    throw ValueError("load_pretrained: biases of Llama's projections are not supported");
  }
  const int64_t layers = layer_count(published, "num_hidden_layers", file);
  config.layers.assign(static_cast<std::size_t>(layers), "attention+mlp");
  Parameters parameters;
  parameters["embedding"] = read_wide(file, "model.embed_tokens.weight");
  parameters["norm.scale"] = read_wide(file, "model.norm.weight");
  if (!config.tied) parameters["head.weight"] = read_transposed(file, "lm_head.weight");
  for (int64_t i = 0; i < layers; ++i) {
    const std::string to = concat("layers.", i, "."), from = concat("model.layers.", i, ".");
    auto weight = [&](const std::string& name) { return read_transposed(file, from + name + ".weight"); };
    parameters[to + "mixer_norm.scale"] = read_wide(file, from + "input_layernorm.weight");
    parameters[to + "feed_norm.scale"] = read_wide(file, from + "post_attention_layernorm.weight");
    Array query = weight("self_attn.q_proj"), key = weight("self_attn.k_proj"), value = weight("self_attn.v_proj");
    parameters[to + "attention.qkv.weight"] = joined({query, key, value});
    parameters[to + "attention.out.weight"] = weight("self_attn.o_proj");
    Array gate = weight("mlp.gate_proj"), up = weight("mlp.up_proj");
    parameters[to + "mlp.gate_up.weight"] = joined({gate, up});
    parameters[to + "mlp.down.weight"] = weight("mlp.down_proj");
  }
  return {config, parameters};
}

}  // namespace

std::pair<LanguageModel, Parameters> load_pretrained(const std::string& folder) {
  const std::filesystem::path path(folder);
  const PublishedConfig published((path / "config.json").string());
  const SafetensorsFile file((path / "model.safetensors").string());
  const std::string kind = published.text("model_type");
  if (kind != "gpt2" && kind != "llama") {
    throw ValueError(concat("load_pretrained: model_type is 'gpt2' or 'llama', got '", kind, "'"));
  }
  auto [config, parameters] = kind == "gpt2" ? read_gpt2(published, file) : read_llama(published, file);
  LanguageModel model(config);
  for (const auto& [name, shape] : model.shapes()) {
    const Array& array = parameter(parameters, name);
    if (array.shape() == shape) continue;
    ArrayType expected;
    expected.shape = shape;
    throw ValueError(concat("load_pretrained: '", name, "' must be ", to_string(expected), " by config.json, got ",
                            to_string(array.type())));
  }
  return {std::move(model), std::move(parameters)};
}

}  // namespace capibara::training
