// Compilation: folds constants, drops repeated and unused operations, and assigns each key its role.
//
// The passes of src/compiler/optimise later do the same to programs, which a model becomes when it is called. Here,
// what is constant, merged and live has names that users read: static_keys(), the required keys, text() and
// summary(). It must be known while shapes are still open, and for values that no program holds, such as tuples, types
// and indices.
#include "models/named/compiled.h"

#include <algorithm>
#include <fstream>
#include <iostream>

namespace capibara::models {

namespace {

bool has_arrays(const Value& value) {
  if (value.is_array()) return true;
  if (!value.is_list()) return false;
  return std::any_of(value.list().begin(), value.list().end(), has_arrays);
}

// Values that hold arrays are equal only if they are the same edge.
std::string identity(const Value& value, int edge) {
  return value.given() && !has_arrays(value) && !value.is_tensor() ? value.to_string() : concat("#", edge);
}

}  // namespace

Config config_for(const Backend& backend) {
  Config settings = config();
  settings.enable_x64 = backend.dtype == DType::float64 || settings.enable_x64;
  if (!backend.precision.empty()) settings.default_matmul_precision = backend.precision;
  return settings;
}

CompiledBody::CompiledBody(const Model& source, const Backend& device, const CompileOptions& requested)
    : model(source), backend(device), options(requested) {
  ConfigScope scope(config_for(backend));
  if (model.body()->parent.lock()) {
    throw ValueError(concat("models: compile: ", model.body()->label(), " is part of ",
                            model.body()->parent.lock()->label(), "; compile that"));
  }
  if (model.output_keys().empty()) {
    throw KeyError(concat("models: compile: Models with no output keys can not be compiled. ", model.body()->label(),
                          " has no output: add an operation, or expose a key"));
  }
  graph = flatten(*model.body());
  values.resize(graph.edges.size());
  same.resize(graph.edges.size());
  for (std::size_t i = 0; i < same.size(); ++i) same[i] = static_cast<int>(i);
  set_constants();
  infer();
  fold();
  choose_outputs();
  merge_repeated();
  find_live();
  assign_roles();
}

int CompiledBody::edge_of(const std::string& key, const char* argument) const {
  const ModelBody& body = *model.body();
  if (body.has(key)) return graph.edge_of(body, key);
  auto found = graph.by_name.find(key);
  if (found != graph.by_name.end()) return found->second;
  std::vector<std::string> names;
  for (const std::string& name : body.keys) {
    if (!body.generated(name)) names.push_back(name);
  }
  throw KeyError(concat("models: compile: ", argument, " names '", key, "', which ", body.label(), " does not have",
                        hint(key, names)));
}

void CompiledBody::set_constants() {
  for (std::size_t i = 0; i < graph.edges.size(); ++i) {
    const Edge& source = *graph.edges[i].source;
    if (!source.value.given()) continue;
    bool becomes_array = source.value.is_tensor() || (source.tensor.value_or(false) && !source.value.is_none());
    values[i] = becomes_array ? Value(to_array(source.value, backend.dtype)) : source.value;
  }
  const char* names[] = {"constant_keys", "data_keys", "trainable_keys", "discard_keys"};
  std::map<int, const char*> claimed;
  auto claim = [&](const std::string& key, std::size_t kind) {
    auto [slot, added] = claimed.try_emplace(edge_of(key, names[kind]), names[kind]);
    if (!added && slot->second != names[kind]) {
      throw ValueError(concat("models: compile: '", key, "' is in ", slot->second, " and in ", names[kind]));
    }
  };
  for (const auto& entry : options.constant_keys) claim(entry.first, 0);
  for (const std::string& key : options.data_keys) claim(key, 1);
  for (const std::string& key : options.trainable_keys) claim(key, 2);
  for (const std::string& key : options.discard_keys) claim(key, 3);
  for (const auto& [key, value] : options.constant_keys) {
    int edge = edge_of(key, "constant_keys");
    if (values[at(edge)].given()) {
      throw ValueError(concat("models: compile: '", key, "' has the value ", values[at(edge)].to_string(),
                              " in the model and cannot be given another by constant_keys"));
    }
    const Edge& source = *graph.edges[at(edge)].source;
    bool plain = source.tensor && !*source.tensor;
    if (value.is_list() && !value.list().empty() && has_arrays(value)) plain = true;
    values[at(edge)] = plain || (value.is_number() && !source.tensor) || value.is_none() || value.is<DType>()
                           ? value
                           : Value(to_array(value, backend.dtype));
  }
}

void CompiledBody::infer() {
  shapes = std::make_unique<ShapeSystem>(graph, options.safe_shapes);
  for (const auto& [key, shape] : options.shapes) {
    shapes->require(edge_of(key, "shapes"), shape, concat("shapes['", key, "']"));
  }
  shapes->solve(values, backend.dtype);
}

void CompiledBody::fold() {
  for (const FlatOperation& operation : graph.operations) {
    std::vector<Value> inputs;
    bool known = true;
    for (int edge : operation.inputs) {
      known = known && values[at(edge)].given();
      inputs.push_back(values[at(edge)]);
    }
    int output = operation.outputs[0];
    if (!known || values[at(output)].given()) continue;
    values[at(output)] =
        operation.record->compute(Operands(operation.ports.all, inputs, operation.body->arguments, backend.dtype));
  }
}

void CompiledBody::choose_outputs() {
  // The canonical output of a model without named outputs keeps the name given by its operation.
  for (const std::string& key : model.output_keys()) {
    int edge = graph.edge_of(*model.body(), key);
    std::string name = graph.edges[at(edge)].name;
    if (model.body()->generated(key)) {
      const FlatOperation& writer = graph.operations[at(graph.edges[at(edge)].writer)];
      std::string plain = writer.ports.all.back().key;
      if (!graph.by_name.count(plain)) {
        graph.by_name.erase(name);
        graph.by_name[plain] = edge;
        name = graph.edges[at(edge)].name = plain;
      } else if (graph.by_name[plain] != edge && !graph.edges[at(graph.by_name[plain])].named) {
        std::swap(graph.edges[at(graph.by_name[plain])].name, graph.edges[at(edge)].name);
        std::swap(graph.by_name[plain], graph.by_name[name]);
        name = plain;
      }
    }
    output_keys.push_back(name);
    outputs.push_back(edge);
  }
  // An output with other readers is computed but not returned; one without is dropped, with everything only it needs.
  std::vector<int> readers(graph.edges.size(), 0);
  for (const FlatOperation& operation : graph.operations) {
    for (int edge : operation.inputs) ++readers[at(edge)];
  }
  std::set<int> wanted(outputs.begin(), outputs.end()), gone;
  std::vector<int> unread;
  for (const std::string& key : options.discard_keys) {
    int edge = edge_of(key, "discard_keys");
    auto found = std::find(outputs.begin(), outputs.end(), edge);
    if (found != outputs.end()) {
      output_keys.erase(output_keys.begin() + (found - outputs.begin()));
      outputs.erase(found);
    }
    if (readers[at(edge)] == 0) unread.push_back(edge);
  }
  while (!unread.empty()) {
    int edge = unread.back();
    unread.pop_back();
    if (!gone.insert(edge).second) continue;
    int writer = graph.edges[at(edge)].writer;
    if (writer < 0) continue;
    for (int input : graph.operations[at(writer)].inputs) {
      if (--readers[at(input)] == 0 && !wanted.count(input)) unread.push_back(input);
    }
  }
  for (int edge : gone) discarded.push_back(graph.edges[at(edge)].name);
  std::sort(discarded.begin(), discarded.end());
}

void CompiledBody::merge_repeated() {
  std::map<std::string, int> seen;
  for (const FlatOperation& operation : graph.operations) {
    if (operation.body->own) continue;
    std::string key = operation.record->name + "(";
    for (const auto& [name, value] : operation.body->arguments) key += name + "=" + identity(value, -1) + ",";
    key += ")";
    for (int edge : operation.inputs) {
      int first = same[at(edge)];
      key += identity(graph.edges[at(first)].writer >= 0 ? Value() : values[at(first)], first) + ";";
    }
    auto [slot, added] = seen.try_emplace(key, operation.outputs[0]);
    if (!added) same[at(operation.outputs[0])] = slot->second;
  }
}

void CompiledBody::find_live() {
  live.assign(graph.operations.size(), false);
  std::vector<int> needed;
  for (int edge : outputs) needed.push_back(same[at(edge)]);
  std::set<int> visited;
  while (!needed.empty()) {
    int edge = needed.back();
    needed.pop_back();
    if (!visited.insert(edge).second) continue;
    int writer = graph.edges[at(edge)].writer;
    if (writer < 0 || values[at(edge)].given()) continue;
    live[at(writer)] = true;
    for (int input : graph.operations[at(writer)].inputs) needed.push_back(same[at(input)]);
  }
  for (int edge : visited) {
    const FlatEdge& flat = graph.edges[at(edge)];
    if (values[at(edge)].given()) {
      if (has_arrays(values[at(edge)])) statics.push_back(flat.name);
    }
  }
  std::sort(statics.begin(), statics.end());
}

void CompiledBody::assign_roles() {
  std::set<int> read;
  for (std::size_t i = 0; i < graph.operations.size(); ++i) {
    if (!live[i]) continue;
    for (int edge : graph.operations[i].inputs) read.insert(same[at(edge)]);
  }
  for (int edge : outputs) read.insert(same[at(edge)]);
  std::set<int> trained, given;
  for (const std::string& key : options.trainable_keys) trained.insert(edge_of(key, "trainable_keys"));
  for (const std::string& key : options.data_keys) given.insert(edge_of(key, "data_keys"));
  for (int edge : read) {
    const FlatEdge& flat = graph.edges[at(edge)];
    if (flat.writer >= 0 || values[at(edge)].given()) continue;
    bool train = (flat.source->differentiable.value_or(false) || trained.count(edge)) && !given.count(edge);
    (train ? trainable : data).push_back(flat.name);
  }
  std::sort(trainable.begin(), trainable.end());
  std::sort(data.begin(), data.end());
  statics.insert(statics.end(), data.begin(), data.end());
  std::sort(statics.begin(), statics.end());
  if (!options.safe_names) return;
  std::string unnamed;
  for (const std::string& key : data) {
    if (graph.edges[at(graph.by_name.at(key))].named) continue;
    unnamed += concat(unnamed.empty() ? "'" : ", '", key, "'");
  }
  if (unnamed.empty()) return;
  throw KeyError(concat("models: compile: data keys without a name of their own: ", unnamed,
                        "; name them where the model is connected, or compile with safe_names=False"));
}

std::optional<Shape> CompiledBody::full_shape(int edge) const {
  if (!shapes->dims(edge)) return std::nullopt;
  Shape shape;
  for (DimId dim : *shapes->dims(edge)) {
    if (!shapes->size(dim)) return std::nullopt;
    shape.push_back(*shapes->size(dim));
  }
  return shape;
}

std::vector<Value> CompiledBody::run(const ValueMap& given) const {
  std::vector<Value> state = values;
  for (const auto& [key, value] : given) state[at(graph.by_name.at(key))] = value;
  for (std::size_t i = 0; i < graph.operations.size(); ++i) {
    if (!live[i]) continue;
    const FlatOperation& operation = graph.operations[i];
    std::vector<Value> inputs;
    for (int edge : operation.inputs) inputs.push_back(state[at(same[at(edge)])]);
    try {
      state[at(operation.outputs[0])] =
          operation.record->compute(Operands(operation.ports.all, inputs, operation.body->arguments, backend.dtype));
    } catch (const TypeError& error) {
      throw TypeError(concat("models: ", operation.label, ": ", error.what()));
    } catch (const ValueError& error) {
      throw ValueError(concat("models: ", operation.label, ": ", error.what()));
    }
  }
  std::vector<Value> results;
  for (int edge : outputs) results.push_back(state[at(same[at(edge)])]);
  return results;
}

CompiledModel compile(const Model& model, const Backend& backend, const CompileOptions& options) {
  auto body = std::make_shared<CompiledBody>(model, backend, options);
  CompiledModel compiled(body);
  if (!options.file_path.empty()) {
    std::ofstream file(options.file_path);
    file << compiled.text();
    if (!file) throw RuntimeError(concat("models: compile: file_path '", options.file_path, "' cannot be written"));
  }
  if (options.verbose) std::cout << compiled.summary();
  return compiled;
}

}  // namespace capibara::models
