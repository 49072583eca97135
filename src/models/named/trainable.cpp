// Compiled named models as trainable models: data keys become the arrays of a batch.
#include <capibara/models/protocol.h>

#include <capibara/lax.h>
#include <capibara/random.h>

#include <algorithm>

#include "models/named/body.h"

namespace capibara::models {

namespace {

void require_key(const char* option, const std::vector<std::string>& keys, const std::string& key) {
  if (contains(keys, key)) return;
  throw KeyError(concat("models.trainable: '", key, "' (option '", option, "') is none of ", quoted(keys)));
}

class Adapter {
 public:
  Adapter(const CompiledModel& model, const TrainableOptions& options) : model_(model), options_(options) {
    const std::vector<std::string> data = model.data_keys(), outputs = model.output_keys();
    if (options_.batch.empty()) options_.batch = data;
    for (const std::string& key : options_.batch) require_key("batch", data, key);
    for (const std::string& key : data) {
      if (contains(options_.batch, key)) continue;
      throw KeyError(concat("models.trainable: the data key '", key, "' is missing in the option 'batch', ",
                            quoted(options_.batch)));
    }
    if (options_.output.empty()) {
      std::vector<std::string> others = outputs;
      std::erase(others, options_.loss);
      if (others.size() == 1) options_.output = others[0];
    } else {
      require_key("output", outputs, options_.output);
    }
    if (options_.loss != TrainableOptions().loss) require_key("loss", outputs, options_.loss);
    has_loss_ = options_.loss_of || contains(outputs, options_.loss);
  }

  bool has_loss() const { return has_loss_; }
  bool has_output() const { return !options_.output.empty(); }

  Array apply(const Parameters& parameters, const Arrays& batch) const {
    return array(run("apply", parameters, batch), options_.output);
  }
  Array loss(const Parameters& parameters, const Arrays& batch) const {
    const ValueMap outputs = run("loss", parameters, batch);
    return options_.loss_of ? options_.loss_of(outputs, batch) : array(outputs, options_.loss);
  }

 private:
  ValueMap run(const char* operation, const Parameters& parameters, const Arrays& batch) const {
    const bool exact = !options_.loss_of;
    const std::vector<std::string>& keys = options_.batch;
    if (exact ? batch.size() != keys.size() : batch.size() < keys.size()) {
      throw ValueError(concat("models.trainable: ", operation, ": expected a batch of ", keys.size(), " arrays, for ",
                              quoted(keys), "; got ", batch.size()));
    }
    ValueMap values, data;
    for (const auto& [name, array] : parameters) values[name] = array;
    for (std::size_t i = 0; i < keys.size(); ++i) data[keys[i]] = batch[i];
    return model_.evaluate(values, data);
  }
  static const Array& array(const ValueMap& outputs, const std::string& key) { return outputs.at(key).array(); }

  CompiledModel model_;
  TrainableOptions options_;
  bool has_loss_ = false;
};

// Axes "mesh0", "mesh1": those of the mesh that the model was compiled for, split as in propose_shardings.
std::optional<LogicalAxes> proposed_axes(const CompiledModel& model, const ParameterTypes& types) {
  if (model.backend().device_mesh.empty()) return std::nullopt;
  LogicalAxes axes;
  for (const auto& [key, proposed] : model.propose_shardings()) {
    if (!types.contains(key)) continue;
    std::vector<std::string>& names = axes.of[key];
    for (int64_t axis : proposed) names.push_back(axis < 0 ? "" : concat("mesh", axis));
  }
  return axes;
}

}  // namespace

AnyModel trainable(const CompiledModel& model, const TrainableOptions& options) {
  const std::vector<std::string> keys = model.trainable_keys();
  if (keys.empty()) throw ValueError("models.trainable: the model has no trainable keys (argument 'model')");
  for (const auto& [key, value] : options.parameters) require_key("parameters", keys, key);
  auto adapter = std::make_shared<const Adapter>(model, options);
  ModelParts parts;
  parts.name = "named model";
  Parameters given;
  for (const auto& [key, value] : options.parameters) given[key] = value.array();
  const auto shapes = model.get_shapes();
  std::vector<std::string> unknown;
  for (const std::string& key : keys) {
    if (const auto it = given.find(key); it != given.end()) {
      parts.types[key] = it->second.type();
      continue;
    }
    ArrayType type;
    type.dtype = model.backend().dtype;
    const auto shape = shapes.find(key);
    bool known = shape != shapes.end() && shape->second;
    if (known) {
      for (const std::optional<int64_t>& size : *shape->second) {
        known = known && size;
        type.shape.push_back(size.value_or(0));
      }
    }
    if (!known) unknown.push_back(key);
    parts.types[key] = type;
  }
  if (!unknown.empty()) {
    throw KeyError(concat("models.trainable: the shape is not known of ", quoted(unknown),
                          "; give shapes of the inputs to compile, or parameters"));
  }
  // As in randomize_params, from a key that may be traced.
  parts.init = [given, types = parts.types](const Array& key) {
    Parameters parameters;
    int64_t number = 0;
    for (const auto& [name, type] : types) {
      const Array own = jax::random::fold_in(key, number++);
      const auto it = given.find(name);
      parameters[name] =
          it != given.end() ? it->second : jax::random::normal(own, {.shape = type.shape, .dtype = type.dtype});
    }
    return parameters;
  };
  if (adapter->has_output()) {
    parts.apply = [adapter](const Parameters& p, const Arrays& batch) { return adapter->apply(p, batch); };
  }
  if (adapter->has_loss()) {
    parts.loss = [adapter](const Parameters& p, const Arrays& batch) { return adapter->loss(p, batch); };
  }
  parts.logical_axes = proposed_axes(model, parts.types);
  auto source = std::make_shared<const CompiledModel>(model);
  parts.source = source;
  parts.source_type = &typeid(CompiledModel);
  return AnyModel(std::move(parts));
}

}  // namespace capibara::models
