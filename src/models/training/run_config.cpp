// The config of a run as JSON: one list of fields for both writing and reading.
#include <capibara/training/run.h>

#include <string_view>

#include "io/files/json.h"

namespace capibara::training {

namespace {

// Visits each field by name, so that writing and reading cannot differ.
template <class Visit>
void for_each_field(RunConfig& config, Visit visit) {
  LanguageModelConfig& model = config.model;
  visit("vocabulary", model.vocabulary), visit("width", model.width), visit("layers", model.layers);
  visit("heads", model.heads), visit("key_heads", model.key_heads), visit("hidden", model.hidden);
  visit("experts", model.experts), visit("experts_per_token", model.experts_per_token);
  visit("state", model.state), visit("taps", model.taps), visit("expand", model.expand);
  visit("norm", model.norm), visit("positions", model.positions), visit("activation", model.activation);
  visit("bias", model.bias), visit("tied", model.tied), visit("max_length", model.max_length);
  visit("rope_base", model.rope_base), visit("norm_epsilon", model.norm_epsilon);
  visit("load_weight", model.load_weight), visit("checkpoint_every_n_layers", model.checkpoint_every_n_layers);
  visit("checkpoint_policy", model.checkpoint_policy);
  TrainerConfig& trainer = config.trainer;
  visit("steps", trainer.steps), visit("batch", trainer.batch), visit("length", trainer.length);
  visit("accumulate", trainer.accumulate), visit("optimizer", trainer.optimizer);
  visit("learning_rate", trainer.learning_rate), visit("warmup", trainer.warmup);
  visit("weight_decay", trainer.weight_decay), visit("max_norm", trainer.max_norm);
  visit("compute", trainer.compute), visit("checkpoint_every", trainer.checkpoint_every);
  visit("keep", trainer.keep), visit("spike_factor", trainer.spike_factor);
  visit("max_bad_steps", trainer.max_bad_steps), visit("seed", trainer.seed);
  visit("mesh", trainer.mesh), visit("num_workers", trainer.num_workers);
  visit("text", config.text), visit("held_out", config.held_out);
  visit("vocabulary_limit", config.vocabulary_limit);
}

Json as_json(int64_t value) { return value; }
Json as_json(uint64_t value) { return static_cast<int64_t>(value); }
Json as_json(double value) { return value; }
Json as_json(bool value) { return value; }
Json as_json(const std::string& value) { return value; }
Json as_json(DType value) { return to_string(value); }
Json as_json(const TrainingMesh& value) { return to_string(value); }
Json as_json(const std::vector<std::string>& value) { return Json::List(value.begin(), value.end()); }

// The description of a field's type for errors.
template <class T>
const char* expected_type(const T&) {
  if constexpr (std::is_same_v<T, bool>) return "true or false";
  if constexpr (std::is_same_v<T, int64_t>) return "a whole number";
  if constexpr (std::is_same_v<T, uint64_t>) return "a whole number of 0 or more";
  if constexpr (std::is_same_v<T, double>) return "a number";
  if constexpr (std::is_same_v<T, DType>) return "'float32' or 'bfloat16'";
  if constexpr (std::is_same_v<T, std::vector<std::string>>) return "a list of texts";
  return "a text";
}

template <class T>
bool read_field(const Json& json, T& field) {
  if constexpr (std::is_same_v<T, bool>) {
    if (!json.boolean()) return false;
    field = *json.boolean();
  } else if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, uint64_t>) {
    if (!json.integer() || (std::is_same_v<T, uint64_t> && *json.integer() < 0)) return false;
    field = static_cast<T>(*json.integer());
  } else if constexpr (std::is_same_v<T, double>) {
    if (!json.number()) return false;
    field = *json.number();
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!json.text()) return false;
    field = *json.text();
  } else if constexpr (std::is_same_v<T, TrainingMesh>) {
    if (!json.text()) return false;
    field = training_mesh_from_text(*json.text());
  } else if constexpr (std::is_same_v<T, DType>) {
    if (!json.text() || (*json.text() != "float32" && *json.text() != "bfloat16")) return false;
    field = *json.text() == "float32" ? DType::float32 : DType::bfloat16;
  } else {
    if (!json.list()) return false;
    field.clear();
    for (const Json& entry : *json.list()) {
      if (!entry.text()) return false;
      field.push_back(*entry.text());
    }
  }
  return true;
}

}  // namespace

std::string to_json(const RunConfig& config) {
  Json::Object object;
  RunConfig copy = config;
  for_each_field(copy, [&](const char* name, const auto& field) { object[name] = as_json(field); });
  return Json(object).dump();
}

RunConfig run_config_from_json(const std::string& text, const std::string& what) {
  const Json json = Json::parse(text, what);
  RunConfig config;
  for_each_field(config, [&](const char* name, auto& field) {
    const Json* value = json.find(name);
    for (const std::string_view newer : {"vocabulary_limit", "mesh", "num_workers"}) {
      if (!value && name == newer) return;  // missing in older runs
    }
    if (!value) throw ValueError(concat(what, ": the field '", name, "' is missing"));
    if (read_field(*value, field)) return;
    throw ValueError(concat(what, ": the field '", name, "' is ", expected_type(field), ", got ", value->dump()));
  });
  return config;
}

}  // namespace capibara::training
