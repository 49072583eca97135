// Specifications: a model as a dictionary of its name, arguments, submodels and connections, and back.
#include "models/named/catalog.h"

#include <algorithm>

namespace capibara::models {

namespace {

ElementTypes element_types(const Value& type) {
  ElementTypes types{false, false, false};
  auto add = [&](auto&& self, const Value& entry) -> void {
    if (entry.is_list()) {
      for (const Value& part : entry.list()) self(self, part);
    } else if (entry.is_dictionary()) {
      for (const auto& part : entry.entries()) self(self, part.second);
    } else if (entry.is_text()) {
      const std::string& name = entry.text();
      if (name == "float")
        types.floating = true;
      else if (name == "int")
        types.integer = true;
      else if (name == "bool")
        types.boolean = true;
      else if (name == "Tensor")
        types = {};
    }
  };
  add(add, type);
  return types.any() ? types : ElementTypes{};
}

bool names_tensor(const Value& type) {
  return (type.is_text() && type.text() == "Tensor") || (type.is_dictionary() && type.has("Tensor"));
}

// Named constants stay names until the backend is known.
Value constant(const Value& value) {
  if (value.is_dictionary() && value.has("tensor")) return Tensor{value["tensor"]};
  if (value.is_text() && value.text() == "(Ellipsis,)") return Ellipsis{};
  return value;
}

bool is_constant_name(const std::string& text) { return text.starts_with("Constant.") || text.starts_with("Dtype."); }

class Loader {
 public:
  Model load(const Value& specification) {
    if (specification.is_text()) return make(specification.text());
    if (specification.has("is_train_model")) return load_train_model(specification);
    if (!specification.has("name")) {
      throw ValueError(concat("models: a specification needs 'name', got ", specification.to_string().substr(0, 80)));
    }
    Entries arguments;
    if (specification.has("args")) {
      for (const auto& [key, value] : specification["args"].entries()) arguments.emplace_back(key, argument(value));
    }
    Model model = make(name_of(specification["name"].text()), arguments);
    if (specification.has("submodels")) fill(model, specification);
    if (specification.has("exposed_keys")) {
      std::vector<std::string> keys;
      for (const Value& key : specification["exposed_keys"].list()) keys.push_back(key.text());
      model.expose_keys(keys);
    }
    assign(model, specification);
    return model;
  }

 private:
  static std::string name_of(const std::string& name) { return name; }

  static Value argument(const Value& value) {
    if (value.is_dictionary() && value.has("shape_template")) return Tensor{};
    if (value.is_dictionary() && value.has("value")) return value["value"];
    if (value.is_dictionary() && value.has("tensor")) return Tensor{value["tensor"]};
    return constant(value);
  }

  // Older versions of specifications name the operands of arithmetic input and rhs, or input1 and input2.
  static std::string key_in(const Model& model, const std::string& key) {
    if (model.body()->has(key)) return key;
    for (const auto& [old, now] : {std::pair("input", "left"), std::pair("rhs", "right"), std::pair("input1", "left"),
                                   std::pair("input2", "right"), std::pair("input", "numerator"),
                                   std::pair("rhs", "denominator"), std::pair("w", "weight"), std::pair("b", "bias")}) {
      if (key == old && model.body()->has(now)) return now;
    }
    return key;
  }

  void fill(Model& model, const Value& specification) {
    const Value &submodels = specification["submodels"], &connections = specification["connections"];
    std::map<std::string, Model> made;
    for (const auto& [name, inner] : submodels.entries()) {
      Model child = load(inner);
      made.emplace(name, child);
      if (!connections.has(name)) {
        throw KeyError(concat("models: specification: submodel '", name, "' has no entry in 'connections'"));
      }
      Entries mapping;
      std::vector<std::pair<std::string, std::vector<Value>>> merged;
      for (const auto& [key, connection] : connections[name].entries()) {
        auto [value, others] = connection_of(connection, made);
        mapping.emplace_back(key_in(child, key), value);
        if (!others.empty()) merged.emplace_back(key_in(child, key), others);
      }
      model |= child.connect(mapping);
      for (auto& [key, others] : merged) {
        others.insert(others.begin(), Value(child[key]));
        model.merge_connections(others);
      }
    }
  }

  static Value endpoint(const Value& pair, const std::map<std::string, Model>& made) {
    if (!pair.is_list()) return pair;
    const std::string& name = pair.list().at(0).text();
    auto found = made.find(name);
    if (found == made.end())
      throw KeyError(concat("models: specification: there is no submodel '", name, "' yet to connect with"));
    return found->second[key_in(found->second, pair.list().at(1).text())];
  }

  static std::pair<Value, std::vector<Value>> connection_of(const Value& connection,
                                                            const std::map<std::string, Model>& made) {
    if (connection.is_dictionary() && connection.has("key")) {
      const Value& key = connection["key"];
      IOKey io;
      if (key["name"].is_text()) io.name = key["name"].text();
      if (key["value"].given() && !key["value"].is_none()) io.value = constant(key["value"]);
      if (key["shape"].is_list()) io.shape = ShapeTemplate(key["shape"]);
      if (key["type"].given() && names_tensor(key["type"])) io.types = element_types(key["type"]);
      if (key["differentiable"].is<bool>()) io.differentiable = key["differentiable"].boolean();
      if (key["expose"].is<bool>()) io.expose = key["expose"].boolean();
      if (!key["connect"].is_list()) return {io, {}};
      std::vector<Value> ends;
      for (const Value& pair : key["connect"].list()) ends.push_back(endpoint(pair, made));
      if (ends.empty()) return {io, {}};
      Value first = ends[0];
      ends.erase(ends.begin());
      if (!io.name.empty()) ends.push_back(io);
      return {first, ends};
    }
    if (connection.is_list() && !connection.list().empty() && connection.list()[0].is_list() &&
        connection.list()[0].list().size() == 2 && connection.list()[0].list()[0].is_text()) {
      std::vector<Value> ends;  // [["m1", "output"], ...]
      for (const Value& pair : connection.list()) ends.push_back(endpoint(pair, made));
      Value first = ends[0];
      ends.erase(ends.begin());
      return {first, ends};
    }
    if (connection.is_text() && is_constant_name(connection.text())) {
      return {IOKey{.value = connection}, {}};
    }
    return {constant(connection), {}};
  }

  // "key", or ["m1", index of one of its keys].
  static std::string key_of_info(const Model& model, const Value& info, const Value& specification) {
    if (info.is_text()) return info.text();
    const std::string& name = info.list().at(0).text();
    std::size_t position = static_cast<std::size_t>(info.list().at(1).integer());
    if (name == "self") return model.keys().at(position);
    std::size_t index = 0;
    for (const auto& entry : specification["submodels"].entries()) {
      if (entry.first == name) break;
      ++index;
    }
    Model child = model.submodels().at(index);
    return key_of(model.body(), child[child.keys().at(position)]);
  }

  static void assign(Model& model, const Value& specification) {
    auto each = [&](const char* field, auto&& use) {
      if (!specification.has(field)) return;
      for (const Value& entry : specification[field].list()) use(entry);
    };
    each("assigned_shapes", [&](const Value& group) {
      NamedShapes shapes;
      for (const Value& pair : group.list()) {
        shapes.emplace_back(key_of_info(model, pair.list().at(0), specification), ShapeTemplate(pair.list().at(1)));
      }
      model.set_shapes(shapes);
    });
    each("assigned_types", [&](const Value& pair) {
      if (!names_tensor(pair.list().at(1))) return;
      model.set_types({{key_of_info(model, pair.list().at(0), specification), element_types(pair.list().at(1))}});
    });
    each("assigned_differentiabilities", [&](const Value& pair) {
      model.set_differentiability(
          {{key_of_info(model, pair.list().at(0), specification), pair.list().at(1).boolean()}});
    });
    for (const char* field : {"assigned_cins", "assigned_couts"}) {
      std::vector<std::string> keys;
      each(field, [&](const Value& info) { keys.push_back(key_of_info(model, info, specification)); });
      if (keys.empty()) continue;
      if (std::string(field) == "assigned_cins")
        model.set_cin(keys);
      else
        model.set_cout(keys);
    }
  }

  Model load_train_model(const Value& specification) {
    TrainModel train(load(specification["model"]));
    for (const Value& loss : specification["losses"].list()) {
      std::vector<Model> steps;
      for (const Value& step : loss["reduce_steps"].list()) steps.push_back(load(step));
      Entries connections;
      for (const auto& [key, value] : loss["args"].entries()) connections.emplace_back(key, constant(value));
      train.add_loss(load(loss["model"]), steps, connections, constant(loss["coef"]));
    }
    for (const Value& penalty : specification["regularizations"].list()) {
      for (const auto& [key, value] : penalty["args"].entries()) {
        bool pattern = value.is_dictionary();
        train.add_regularization(load(penalty["model"]), constant(penalty["coef"]),
                                 pattern ? value["pattern"].text() : value.text(), pattern, key);
      }
    }
    return train.model();
  }
};

}  // namespace

Model from_specification(const Value& specification) { return Loader().load(specification); }

Value to_specification(const Model& model) {
  const ModelBody& body = *model.body();
  Entries result = {{"name", body.type}};
  auto plain = [](auto&& self, const Value& value) -> Value {
    if (value.is_model()) return to_specification(value.model());
    if (value.is_tensor()) return Value::dictionary({{"tensor", value.tensor().value}});
    if (value.is<DType>()) return value.to_string();
    if (!value.is_list()) return value;
    List list;
    for (const Value& entry : value.list()) list.push_back(self(self, entry));
    return list;
  };
  Entries arguments;
  for (const auto& [key, value] : body.arguments) {
    if (value.given()) arguments.emplace_back(key, plain(plain, value));
  }
  if (!arguments.empty()) result.emplace_back("args", Value::dictionary(arguments));
  if (!body.record && body.type == "Model") {
    Entries submodels, connections;
    std::map<const Edge*, std::pair<std::string, std::string>> seen;
    std::size_t number = 0;
    for (const auto& child : body.children) {
      std::string name = concat("m_", number++);
      submodels.emplace_back(name, to_specification(Model(child.body)));
      Entries mapping;
      for (const auto& [inner, own] : child.names) {
        const EdgePointer edge = body.edge(own);
        auto found = seen.find(edge.get());
        bool named = !body.generated(body.resolve(own));
        if (named) {
          Entries key = {{"name", body.resolve(own)}};
          if (edge->value.given() && edge->writer.empty()) key.emplace_back("value", plain(plain, edge->value));
          mapping.emplace_back(inner, Value::dictionary({{"key", Value::dictionary(key)}}));
        } else if (found != seen.end()) {
          Value pair = List{found->second.first, found->second.second};
          mapping.emplace_back(inner, Value::dictionary({{"key", Value::dictionary({{"connect", List{pair}}})}}));
        } else if (edge->value.given() && edge->writer.empty()) {
          mapping.emplace_back(inner, plain(plain, edge->value));
        }
        seen.try_emplace(edge.get(), name, inner);
      }
      connections.emplace_back(name, Value::dictionary(mapping));
    }
    result.emplace_back("submodels", Value::dictionary(submodels));
    result.emplace_back("connections", Value::dictionary(connections));
    List exposed;
    for (const std::string& key : body.exposed) exposed.push_back(body.resolve(key));
    if (!exposed.empty()) result.emplace_back("exposed_keys", exposed);
  }
  List differentiable;
  for (const std::string& key : body.keys) {
    if (body.generated(key) || body.is_output(key)) continue;
    if (body.edge(key)->differentiable) differentiable.push_back(List{key, *body.edge(key)->differentiable});
  }
  if (!differentiable.empty()) result.emplace_back("assigned_differentiabilities", differentiable);
  return Value::dictionary(result);
}

}  // namespace capibara::models
