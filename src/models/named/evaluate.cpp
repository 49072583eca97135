// Evaluation of compiled models: outputs, gradients, random parameters, and the program behind them.
#include "models/named/compiled.h"

#include <capibara/numpy.h>
#include <capibara/random.h>
#include <capibara/transforms.h>

#include <algorithm>

namespace capibara::models {

// A flat list of arrays with the dictionary they came from, which keeps everything that is not an array.
class Packed {
 public:
  Arrays arrays;
  std::string structure;

  Value add(const Value& value) {
    if (value.is_array()) {
      structure += "*";
      arrays.push_back(value.array());
      return Value();
    }
    if (value.is_list()) {
      List list;
      structure += "[";
      for (const Value& entry : value.list()) list.push_back(add(entry));
      structure += "]";
      return list;
    }
    structure += value.to_string();
    return value;
  }

  static Value fill(const Value& hole, const Arrays& arrays, std::size_t& next) {
    if (!hole.given()) return arrays[next++];
    if (!hole.is_list()) return hole;
    List list;
    for (const Value& entry : hole.list()) list.push_back(fill(entry, arrays, next));
    return list;
  }
};

using Functions = std::function<std::vector<Array>(const std::vector<Array>&)>;

// The compiled functions of a model by kind; each has its own cache by types.
class CompiledFunctions {
 public:
  jax::Jitted<Functions> find(const std::string& key, const std::function<Functions()>& make) {
    std::lock_guard lock(mutex_);
    auto found = functions_.find(key);
    if (found == functions_.end()) found = functions_.emplace(key, jax::jit(make(), {.name = "model"})).first;
    return found->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, jax::Jitted<Functions>> functions_;
};

std::shared_ptr<CompiledFunctions> make_functions() { return std::make_shared<CompiledFunctions>(); }

namespace {

// The values of all free inputs, checked: trainable ones may be in either dictionary.
ValueMap inputs_of(const CompiledBody& body, const ValueMap& params, const ValueMap& data) {
  ValueMap inputs;
  std::set<std::string> wanted(body.trainable.begin(), body.trainable.end());
  wanted.insert(body.data.begin(), body.data.end());
  auto add = [&](const ValueMap& from, const char* argument) {
    for (const auto& [key, value] : from) {
      if (!wanted.count(key)) {
        // Inputs that the outputs do not need are accepted; unknown names are not.
        if (body.graph.by_name.count(key)) continue;
        std::vector<std::string> names(wanted.begin(), wanted.end());
        throw KeyError(concat("models: evaluate: ", argument, " has '", key, "', which the model does not have",
                              hint(key, names)));
      }
      int edge = body.graph.by_name.at(key);
      const Edge& source = *body.graph.edges[at(edge)].source;
      bool plain = source.tensor && !*source.tensor;
      bool list = value.is_list() && !value.list().empty() && (value.list()[0].is_array());
      Value converted = plain || list || value.is_none() ? value : Value(to_array(value, body.backend.dtype));
      if (converted.is_array()) {
        const auto& dims = body.shapes->dims(edge);
        const Shape& shape = converted.array().shape();
        bool fits = !dims || dims->size() == shape.size();
        for (std::size_t i = 0; fits && dims && i < shape.size(); ++i) {
          std::optional<int64_t> size = body.shapes->size((*dims)[i]);
          fits = !size || *size == shape[i];
        }
        if (!fits) {
          throw ValueError(concat("models: evaluate: '", key, "' in ", argument, " has the type ",
                                  capibara::to_string(converted.array().type()),
                                  "; the model was compiled for the shape ", body.shapes->text(edge)));
        }
      }
      inputs[key] = converted;
    }
  };
  add(params, "params");
  add(data, "data");
  std::string missing;
  for (const std::string& key : wanted) {
    if (!inputs.count(key)) missing += (missing.empty() ? "'" : ", '") + key + "'";
  }
  if (!missing.empty()) throw KeyError(concat("models: evaluate: no value was given for ", missing));
  return inputs;
}

// Conversion between a dictionary and a flat list of arrays.
struct PackedMap {
  std::vector<std::pair<std::string, Value>> holes;
  Packed packed;

  explicit PackedMap(const ValueMap& map) {
    for (const auto& [key, value] : map) {
      packed.structure += key + "=";
      Value hole = packed.add(value);
      holes.emplace_back(key, hole);
      packed.structure += ";";
    }
  }
};

ValueMap unpack(const std::vector<std::pair<std::string, Value>>& holes, const Arrays& arrays, std::size_t& next) {
  ValueMap map;
  for (const auto& [key, hole] : holes) map[key] = Packed::fill(hole, arrays, next);
  return map;
}

// The structure of the outputs: known after the function has been traced.
struct OutputForm {
  std::vector<Value> holes;
};

Arrays pack_outputs(const std::vector<Value>& outputs, OutputForm& form) {
  Packed packed;
  form.holes.clear();
  for (const Value& output : outputs) form.holes.push_back(packed.add(output));
  return packed.arrays;
}

ValueMap unpack_outputs(const CompiledBody& body, const OutputForm& form, const Arrays& arrays, std::size_t& next) {
  ValueMap map;
  for (std::size_t i = 0; i < body.output_keys.size(); ++i)
    map[body.output_keys[i]] = Packed::fill(form.holes[i], arrays, next);
  return map;
}

std::vector<Array> call(const CompiledBody& body, const std::string& key, const std::function<Functions()>& make,
                        const Arrays& arrays) {
  if (!body.options.jit && !body.backend.jit) return make()(arrays);
  return body.functions->find(key, make)(arrays);
}

bool is_floating_array(const Array& array) { return is_floating(array.dtype()); }

}  // namespace

ValueMap CompiledModel::evaluate(const ValueMap& params, const ValueMap& data) const {
  ConfigScope scope(config_for(body_->backend));
  const CompiledBody& body = *body_;
  PackedMap inputs(inputs_of(body, params, data));
  auto form = std::make_shared<OutputForm>();
  auto make = [&body, holes = inputs.holes, form]() -> Functions {
    return [&body, holes, form](const std::vector<Array>& arrays) {
      std::size_t next = 0;
      return pack_outputs(body.run(unpack(holes, arrays, next)), *form);
    };
  };
  // The structure of the outputs follows from that of the inputs; if a cached program ran, it is traced again.
  Arrays results = call(body, "f:" + inputs.packed.structure, make, inputs.packed.arrays);
  if (form->holes.empty()) {
    if (results.size() == body.output_keys.size())
      form->holes.resize(results.size());
    else
      jax::eval_shape(make(), inputs.packed.arrays);
  }
  std::size_t next = 0;
  return unpack_outputs(body, *form, results, next);
}

Evaluation CompiledModel::evaluate(const ValueMap& params, const ValueMap& data,
                                   const ValueMap& output_gradients) const {
  ConfigScope scope(config_for(body_->backend));
  const CompiledBody& body = *body_;
  if (body.options.inference) {
    throw ValueError("models: evaluate: the model was compiled with inference=True and has no gradients");
  }
  ValueMap all = inputs_of(body, params, data), trained, rest;
  for (const auto& [key, value] : all) {
    bool train = std::find(body.trainable.begin(), body.trainable.end(), key) != body.trainable.end();
    (train ? trained : rest)[key] = value;
  }
  ValueMap cotangents;
  for (const auto& [key, value] : output_gradients) {
    if (std::find(body.output_keys.begin(), body.output_keys.end(), key) == body.output_keys.end()) {
      throw KeyError(concat("models: evaluate: output_gradients has '", key, "', which is not an output",
                            hint(key, body.output_keys)));
    }
    cotangents[key] = value.is_list() && !value.list().empty() && value.list()[0].is_array()
                          ? value
                          : Value(to_array(value, body.backend.dtype));
  }
  PackedMap variables(trained), others(rest), gradients(cotangents);
  auto form = std::make_shared<OutputForm>();
  auto make = [&body, variables = variables.holes, others = others.holes, gradients = gradients.holes,
               count = variables.packed.arrays.size(), form]() -> Functions {
    return [&body, variables, others, gradients, count, form](const std::vector<Array>& arrays) {
      std::size_t next = count;
      ValueMap fixed = unpack(others, arrays, next);
      ValueMap weights = unpack(gradients, arrays, next);
      // The outputs, and their inner product with the given gradients.
      auto loss = [&](const std::vector<Array>& changing) -> std::tuple<Array, std::vector<Array>> {
        std::size_t at_variable = 0;
        ValueMap given = fixed;
        for (auto& [key, value] : unpack(variables, changing, at_variable)) given[key] = value;
        std::vector<Value> outputs = body.run(given);
        Array total = jax::numpy::zeros({}, {.dtype = body.backend.dtype});
        for (std::size_t i = 0; i < outputs.size(); ++i) {
          auto weight = weights.find(body.output_keys[i]);
          if (weight == weights.end()) continue;
          Array output = to_array(outputs[i], body.backend.dtype);
          Array gradient = weight->second.array();
          if (gradient.shape() != output.shape() && gradient.size() != 1) {
            throw ValueError(concat("output_gradients['", body.output_keys[i], "'] has the type ",
                                    capibara::to_string(gradient.type()), ", the output ",
                                    capibara::to_string(output.type())));
          }
          if (!is_floating_array(output)) continue;
          total = total + jax::numpy::sum(output * gradient.astype(output.dtype()));
        }
        return {total.astype(body.backend.dtype), pack_outputs(outputs, *form)};
      };
      std::vector<Array> changing(arrays.begin(), arrays.begin() + static_cast<std::ptrdiff_t>(count));
      if (changing.empty()) return std::get<1>(loss(changing));
      auto [values, derivatives] = jax::value_and_grad(loss)(changing);
      std::vector<Array> results = std::get<1>(values);
      results.insert(results.end(), derivatives.begin(), derivatives.end());
      return results;
    };
  };
  Arrays arrays = variables.packed.arrays;
  arrays.insert(arrays.end(), others.packed.arrays.begin(), others.packed.arrays.end());
  arrays.insert(arrays.end(), gradients.packed.arrays.begin(), gradients.packed.arrays.end());
  for (const auto& [key, value] : trained) {
    if (value.is_array() && !is_floating_array(value.array())) {
      throw TypeError(concat("models: evaluate: '", key, "' is trainable and needs floating-point values, got ",
                             capibara::to_string(value.array().type())));
    }
  }
  Arrays results =
      call(body, "g:" + variables.packed.structure + "|" + others.packed.structure + "|" + gradients.packed.structure,
           make, arrays);
  if (form->holes.empty()) {
    if (results.size() == body.output_keys.size() + variables.packed.arrays.size()) {
      form->holes.resize(body.output_keys.size());
    } else {
      jax::eval_shape(make(), arrays);
    }
  }
  std::size_t next = 0;
  Evaluation evaluation;
  evaluation.outputs = unpack_outputs(body, *form, results, next);
  evaluation.gradients = unpack(variables.holes, results, next);
  return evaluation;
}

Evaluation CompiledModel::evaluate_with_gradients(const ValueMap& params, const ValueMap& data) const {
  ConfigScope scope(config_for(body_->backend));
  ValueMap gradients;
  bool cost = std::find(body_->output_keys.begin(), body_->output_keys.end(), "final_cost") != body_->output_keys.end();
  if (cost) {
    gradients["final_cost"] = to_array(1.0, body_->backend.dtype);
  } else {
    for (const auto& [key, value] : evaluate(params, data)) {
      if (value.is_array() && is_floating_array(value.array())) gradients[key] = jax::numpy::ones_like(value.array());
    }
  }
  return evaluate(params, data, gradients);
}

ValueMap CompiledModel::randomize_params(int64_t seed) const {
  ConfigScope scope(config_for(body_->backend));
  ValueMap params;
  std::string unknown;
  Array key = jax::random::key(seed);
  int64_t number = 0;
  for (const std::string& name : body_->trainable) {
    int edge = body_->graph.by_name.at(name);
    std::optional<Shape> shape = body_->full_shape(edge);
    if (!shape) {
      std::string text = body_->shapes->text(edge);
      unknown += (unknown.empty() ? "'" : ", '") + name + "'" + (text.empty() ? "" : " " + text);
      continue;
    }
    params[name] =
        jax::random::normal(jax::random::fold_in(key, number++), {.shape = *shape, .dtype = body_->backend.dtype});
  }
  if (!unknown.empty()) {
    throw KeyError(concat("models: randomize_params: the shape is not known of ", unknown,
                          "; give shapes={...} of the inputs to compile"));
  }
  return params;
}

std::map<std::string, std::optional<std::vector<std::optional<int64_t>>>> CompiledModel::get_shapes() const {
  std::map<std::string, std::optional<std::vector<std::optional<int64_t>>>> result;
  for (std::size_t i = 0; i < body_->graph.edges.size(); ++i) {
    const FlatEdge& edge = body_->graph.edges[i];
    const auto& dims = body_->shapes->dims(static_cast<int>(i));
    if (!dims) {
      bool plain = body_->values[i].given() || (edge.source->tensor && !*edge.source->tensor);
      if (!plain) result[edge.name] = std::nullopt;
      continue;
    }
    std::vector<std::optional<int64_t>> sizes;
    for (DimId dim : *dims) sizes.push_back(body_->shapes->size(dim));
    result[edge.name] = sizes;
  }
  return result;
}

std::vector<std::string> CompiledModel::input_keys() const {
  std::vector<std::string> keys = body_->trainable;
  keys.insert(keys.end(), body_->data.begin(), body_->data.end());
  return keys;
}
std::vector<std::string> CompiledModel::output_keys() const { return body_->output_keys; }
std::vector<std::string> CompiledModel::trainable_keys() const { return body_->trainable; }
std::vector<std::string> CompiledModel::data_keys() const { return body_->data; }
std::vector<std::string> CompiledModel::static_keys() const { return body_->statics; }
std::vector<std::string> CompiledModel::discarded_keys() const { return body_->discarded; }
const Backend& CompiledModel::backend() const { return body_->backend; }

int64_t CompiledModel::parameter_count() const {
  int64_t count = 0;
  for (const std::string& key : body_->trainable) {
    if (std::optional<Shape> shape = body_->full_shape(body_->graph.by_name.at(key))) count += element_count(*shape);
  }
  return count;
}

Program CompiledModel::program(const ValueMap& params, const ValueMap& data) const {
  ConfigScope scope(config_for(body_->backend));
  const CompiledBody& body = *body_;
  PackedMap inputs(inputs_of(body, params, data));
  OutputForm form;
  Functions function = [&](const std::vector<Array>& arrays) {
    std::size_t next = 0;
    return pack_outputs(body.run(unpack(inputs.holes, arrays, next)), form);
  };
  return jax::make_jaxpr(function, "model")(inputs.packed.arrays);
}

std::map<std::string, std::vector<int64_t>> CompiledModel::propose_shardings() const {
  std::map<std::string, std::vector<int64_t>> result;
  const std::vector<int64_t>& mesh = body_->backend.device_mesh;
  auto propose = [&](const std::string& key, bool batch) {
    std::optional<Shape> shape = body_->full_shape(body_->graph.by_name.at(key));
    if (!shape) return;
    std::vector<int64_t> axes(shape->size(), -1);
    // Data is split along its first dimension by the first mesh axis, weights along their largest one by the last.
    const std::size_t axis = batch || mesh.empty() ? 0 : mesh.size() - 1;
    if (!mesh.empty() && !shape->empty()) {
      std::size_t dim = 0;
      if (!batch) dim = static_cast<std::size_t>(std::max_element(shape->begin(), shape->end()) - shape->begin());
      if ((*shape)[dim] % mesh[axis] == 0) axes[dim] = static_cast<int64_t>(axis);
    }
    result[key] = axes;
  };
  for (const std::string& key : body_->trainable) propose(key, false);
  for (const std::string& key : body_->data) propose(key, true);
  return result;
}

}  // namespace capibara::models
