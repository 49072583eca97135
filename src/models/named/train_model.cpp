// Losses, regularizations and metrics around a model.
#include "models/named/flatten.h"

#include <algorithm>
#include <regex>

namespace capibara::models {

namespace {

struct Loss {
  std::string key;
  // The inputs and axes of Mean, Min and Max: regularizations are divided by these numbers of elements.
  std::vector<std::pair<std::string, Value>> reduced;
};
struct Penalty {
  std::string key;    // of its value
  std::string input;  // the penalised key
  Value coefficient;
};

}  // namespace

struct TrainModel::State {
  Model top;
  Model inner;
  std::vector<Loss> losses;
  std::vector<Penalty> penalties;
  std::optional<Model> combiner;
  bool finished = false;

  // Adds a model with one input and returns the key of its output.
  std::string add(const Model& model, const Entries& connections) {
    top |= model.connect(connections);
    std::vector<std::string> outputs = model.output_keys();
    if (outputs.size() != 1)
      throw KeyError(concat("models: TrainModel: ", model.type_name(), " needs exactly one output"));
    return key_of(top.body(), model[outputs[0]]);
  }
  Value at(const std::string& key) const { return Connection{top.body(), top.body()->resolve(key)}; }

  std::string reduce(std::string key, const std::vector<Model>& steps, Loss& loss) {
    for (const Model& step : steps) {
      std::string input = step.cin().key;
      if (step.type_name() == "Mean" || step.type_name() == "Min" || step.type_name() == "Max") {
        loss.reduced.emplace_back(key, step.body()->edge("axis")->value);
      }
      key = add(step, {{input, at(key)}});
    }
    return key;
  }

  // The inputs that a key is computed from.
  std::set<std::string> needs(const std::string& key) const {
    FlatGraph graph = flatten(*top.body());
    std::vector<int> stack = {graph.edge_of(*top.body(), key)};
    std::set<int> seen;
    std::set<std::string> result;
    while (!stack.empty()) {
      int edge = stack.back();
      stack.pop_back();
      if (!seen.insert(edge).second) continue;
      const FlatEdge& flat = graph.edges[static_cast<std::size_t>(edge)];
      if (flat.writer < 0) {
        result.insert(flat.name);
        continue;
      }
      for (int input : graph.operations[static_cast<std::size_t>(flat.writer)].inputs) stack.push_back(input);
    }
    return result;
  }

  // The geometric mean of the element counts over which the losses that depend on an input are averaged.
  std::optional<std::string> elements_behind(const std::string& input) {
    std::optional<std::string> product;
    int count = 0;
    auto multiply = [&](const std::string& key) {
      product = product ? add(make("Multiply"), {{"left", at(*product)}, {"right", at(key)}}) : key;
    };
    for (const Loss& loss : losses) {
      if (!needs(loss.key).count(input)) continue;
      ++count;
      for (const auto& [key, axis] : loss.reduced) multiply(add(make("Size", {{"dim", axis}}), {{"input", at(key)}}));
    }
    if (product && count > 1) {
      product = add(make("Power"), {{"base", at(*product)}, {"exponent", 1.0 / count}});
    }
    return product;
  }

  std::string total(const std::vector<std::string>& keys, const Model& combiner) {
    if (keys.size() == 1 && combiner.type_name() == "Sum") return keys[0];
    List parts;
    for (const std::string& key : keys) parts.push_back(at(add(make("AtLeast1D"), {{"input", at(key)}})));
    std::string joined = add(make("Concat", {{"axis", None{}}}), {{"input", parts}});
    return add(combiner, {{combiner.cin().key, at(joined)}});
  }
};

TrainModel::TrainModel(const Model& model) : state_(std::make_shared<State>()) {
  state_->inner = model;
  Entries connections;
  for (const std::string& key : model.keys()) {
    if (!model.body()->generated(key)) connections.emplace_back(key, key);
  }
  for (const char* reserved : {"loss", "final_cost"}) {
    if (model.body()->has(reserved) && (model.body()->record == nullptr)) {
      std::vector<std::string> outputs = model.output_keys(), inputs = model.input_keys();
      outputs.insert(outputs.end(), inputs.begin(), inputs.end());
      if (std::find(outputs.begin(), outputs.end(), reserved) != outputs.end()) {
        throw KeyError(
            concat("models: TrainModel: '", reserved, "' is a key of its own; rename the key of ", model.type_name()));
      }
    }
  }
  std::vector<std::string> outputs = model.output_keys();
  state_->top |= model.connect(connections);
  std::vector<std::string> named;
  for (const std::string& key : outputs) {
    if (!model.body()->generated(key)) named.push_back(key);
  }
  state_->top.expose_keys(named);
}

void TrainModel::add_loss(const Model& loss, const std::vector<Model>& reduce_steps, const Entries& connections,
                          const Value& coefficient) {
  State& state = *state_;
  if (state.finished) throw ValueError("models: TrainModel: losses are added before the model is used");
  Loss entry;
  std::vector<Model> steps = reduce_steps;
  if (steps.empty()) steps.push_back(make("Mean"));
  std::string key = state.reduce(state.add(loss, connections), steps, entry);
  if (coefficient.given() && !coefficient.is_none()) {
    key = state.add(make("Multiply"), {{"left", state.at(key)}, {"right", coefficient}});
  }
  entry.key = key;
  state.losses.push_back(entry);
}

void TrainModel::add_regularization(const Model& penalty, const Value& coefficient, const std::string& input,
                                    bool pattern, const std::string& key, const Entries& others) {
  State& state = *state_;
  std::vector<std::string> inputs = {input};
  if (pattern) {
    inputs.clear();
    std::regex expression(input);
    for (const std::string& name : state.top.keys()) {
      if (!state.top.body()->generated(name) && std::regex_search(name, expression)) inputs.push_back(name);
    }
    if (inputs.empty())
      throw KeyError(concat("models: TrainModel: no key matches the regularized pattern '", input, "'"));
  }
  Value specification = to_specification(penalty);
  for (const std::string& name : inputs) {
    state.top.body()->require(name, "add_regularization");
    Model copy = inputs.size() == 1 ? penalty : from_specification(specification);
    Entries connections = {{key, state.at(name)}};
    connections.insert(connections.end(), others.begin(), others.end());
    std::string value = state.add(copy, connections);
    state.penalties.push_back({value, name, coefficient});
  }
}

void TrainModel::add_metric(const Model& metric, const std::vector<Model>& reduce_steps, const Entries& connections,
                            const std::string& name) {
  Loss unused;
  std::string key = state_->reduce(state_->add(metric, connections), reduce_steps, unused);
  if (!name.empty()) state_->top.expose_key(name, Connection{state_->top.body(), key});
}

void TrainModel::set_loss_combiner(const Model& combiner) { state_->combiner = combiner; }

Model TrainModel::model() {
  State& state = *state_;
  if (state.finished) return state.top;
  if (state.losses.empty()) throw ValueError("models: TrainModel: add a loss before the model is used");
  std::vector<std::string> keys;
  for (const Loss& loss : state.losses) keys.push_back(loss.key);
  Model combiner = state.combiner ? *state.combiner : make("Sum");
  std::string cost = state.total(keys, combiner);
  for (const Penalty& penalty : state.penalties) {
    std::string value = state.add(make("Sum"), {{"input", state.at(penalty.key)}});  // the cost is a scalar
    if (std::optional<std::string> elements = state.elements_behind(penalty.input)) {
      value = state.add(make("Divide"), {{"numerator", state.at(value)}, {"denominator", state.at(*elements)}});
    }
    value = state.add(make("Multiply"), {{"left", state.at(value)}, {"right", penalty.coefficient}});
    cost = state.add(make("Add"), {{"left", state.at(cost)}, {"right", state.at(value)}});
  }
  state.top |= make("Buffer").connect({{"input", state.at(cost)}, {"output", "final_cost"}});
  state.top.expose_keys({"final_cost"});
  state.top.set_cout({"final_cost"});
  state.top.body()->frozen = true;
  state.finished = true;
  return state.top;
}

}  // namespace capibara::models
