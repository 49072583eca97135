// The user's view of models: the handle, its keys, and canonical inputs and outputs.
#include "models/named/body.h"
#include "models/named/catalog.h"

#include <algorithm>

namespace capibara::models {

namespace {

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string quoted(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

ModelBody::Child& child_entry(ModelBody& parent, const ModelBody& child) {
  for (ModelBody::Child& entry : parent.children) {
    if (entry.body.get() == &child) return entry;
  }
  throw InternalError("models: a submodel is not among the children of its parent");
}

std::string ModelBody::resolve(std::string key) const {
  for (auto found = renamed.find(key); found != renamed.end(); found = renamed.find(key)) key = found->second;
  return key;
}

std::string ModelBody::require(const std::string& key, const char* operation) const {
  std::string own = resolve(key);
  if (edges.count(own)) return own;
  throw KeyError(concat("models: ", operation, ": ", label(), " has no key '", key, "'", hint(key, keys)));
}

std::string ModelBody::add_key(std::string key) {
  if (key.empty()) key = concat("$", ++next_key);
  if (!edges.count(key)) {
    keys.push_back(key);
    edges[key] = std::make_shared<Edge>();
  }
  return key;
}

std::string nearest_name(const std::string& wanted, const std::vector<std::string>& names) {
  std::string best;
  std::size_t distance = std::max<std::size_t>(2, wanted.size() / 3) + 1;
  for (const std::string& name : names) {
    std::size_t d = edit_distance(wanted, name);
    if (d < distance) {
      distance = d;
      best = name;
    }
  }
  return best;
}

std::string hint(const std::string& wanted, const std::vector<std::string>& names) {
  std::string best = nearest_name(wanted, names);
  if (!best.empty()) return concat(". Did you mean '", best, "'?");
  std::vector<std::string> plain;
  for (const std::string& name : names) {
    if (name.empty() || name[0] != '$') plain.push_back(name);
  }
  return plain.empty() || plain.size() > 40 ? "" : concat("; there are ", quoted(plain));
}

// ---- canonical keys -------------------------------------------------------------------------------------------------

std::vector<std::string> canonical_inputs(const ModelBody& body) {
  std::vector<std::string> result;
  if (body.cins) {
    for (const std::string& key : *body.cins) result.push_back(body.resolve(key));
    return result;
  }
  for (const auto& child : body.children) {
    for (const std::string& inner : canonical_inputs(*child.body)) {
      auto found = child.names.find(inner);
      if (found == child.names.end()) continue;
      std::string key = body.resolve(found->second);
      if (!body.is_output(key) && !body.edge(key)->value.given() && !contains(result, key)) result.push_back(key);
    }
  }
  return result;
}

std::vector<std::string> canonical_outputs(const ModelBody& body) {
  std::vector<std::string> result;
  if (body.couts) {
    for (const std::string& key : *body.couts) result.push_back(body.resolve(key));
    return result;
  }
  std::set<std::string> read;
  for (const auto& child : body.children) {
    for (const auto& [inner, own] : child.names) {
      if (!child.body->is_output(inner)) read.insert(body.resolve(own));
    }
  }
  for (const auto& child : body.children) {
    for (const std::string& inner : canonical_outputs(*child.body)) {
      auto found = child.names.find(inner);
      if (found == child.names.end()) continue;
      std::string key = body.resolve(found->second);
      if (!read.count(key) && !contains(result, key)) result.push_back(key);
    }
  }
  return result;
}

// ---- the handle -----------------------------------------------------------------------------------------------------

Model::Model() : body_(std::make_shared<ModelBody>()) {}

Call Model::connect(Entries connections) const { return Call{*this, std::move(connections), {}}; }
Call Model::operator()(Entries connections) const { return connect(std::move(connections)); }

Model& Model::operator|=(const Call& call) {
  extend(body_, call, false);
  return *this;
}
Model& Model::operator|=(const Model& model) { return *this |= model.connect(); }
Model& Model::operator+=(const Call& call) {
  extend(body_, call, true);
  return *this;
}
Model& Model::operator+=(const Model& model) { return *this += model.connect(); }

Model Model::create(const Entries& outputs) {
  Model model;
  std::vector<std::string> canonical;
  for (const auto& [name, value] : outputs) {
    std::string key = key_of_value(model.body_, value);
    if (!name.empty() && name[0] != '$') model.expose_key(name, Connection{model.body_, key});
    canonical.push_back(model.body_->resolve(key));
  }
  model.set_cout(canonical);
  model.body_->frozen = true;
  return model;
}

Connection Model::operator[](const std::string& key) const { return {body_, body_->require(key, "[]")}; }

Connection Model::cin() const {
  std::vector<std::string> keys = canonical_inputs(*body_);
  if (keys.size() != 1) {
    throw KeyError(concat("models: cin: ", body_->label(), " has ", keys.size(), " canonical inputs, not one"));
  }
  return {body_, keys[0]};
}

Connection Model::cout() const {
  std::vector<std::string> keys = canonical_outputs(*body_);
  if (keys.size() != 1) {
    throw KeyError(concat("models: cout: ", body_->label(), " has ", keys.size(), " canonical outputs, not one"));
  }
  return {body_, keys[0]};
}

void Model::set_cin(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) body_->require(key, "set_cin");
  body_->cins = keys;
}

void Model::set_cout(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) body_->require(key, "set_cout");
  body_->couts = keys;
}

void Model::expose_keys(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    std::string own = body_->require(key, "expose_keys");
    if (!contains(body_->exposed, own)) body_->exposed.push_back(own);
  }
}

void Model::expose_key(const std::string& name, const Connection& connection) {
  std::string key = key_of(body_, connection);
  if (key != name) rename_key(connection, name);
  expose_keys({name});
}

void Model::rename_key(const Connection& connection, const std::string& name) {
  std::string key = key_of(body_, connection);
  if (key == name) return;
  if (body_->has(name))
    throw KeyError(concat("models: rename_key: ", body_->label(), " has a key '", name, "' already"));
  body_->edges[name] = body_->edges.at(key);
  body_->edges.erase(key);
  *std::find(body_->keys.begin(), body_->keys.end(), key) = name;
  if (body_->written.erase(key)) body_->written.insert(name);
  for (auto& child : body_->children) {
    for (auto& [inner, own] : child.names) {
      if (own == key) own = name;
    }
  }
  for (std::string& exposed : body_->exposed) {
    if (exposed == key) exposed = name;
  }
  body_->renamed[key] = name;
  if (std::shared_ptr<ModelBody> parent = body_->parent.lock()) {
    auto& names = child_entry(*parent, *body_).names;
    if (auto found = names.find(key); found != names.end()) {
      names[name] = found->second;
      names.erase(key);
    }
  }
}

void Model::merge_connections(const std::vector<Value>& connections) {
  std::string key;
  for (const Value& value : connections) {
    std::string next = key_of_value(body_, value);
    key = key.empty() ? next : join_keys(*body_, key, next);
  }
}

void Model::set_shapes(const std::vector<std::pair<std::string, ShapeTemplate>>& shapes) {
  for (const auto& entry : shapes) body_->require(entry.first, "set_shapes");
  body_->templates.push_back(shapes);
  this->shapes();  // detects a contradiction here, not only at compile
}

void Model::set_values(const Entries& values) {
  for (const auto& [key, value] : values) {
    std::string own = body_->require(key, "set_values");
    if (body_->is_output(own))
      throw ValueError(concat("models: set_values: '", key, "' is computed by ", body_->edge(own)->writer));
    if (holds_connections(value)) {
      std::string made = key_of_value(body_, value);
      join_keys(*body_, own, made);
    } else {
      apply_key(*body_, own, IOKey{.value = value});
    }
  }
}

void Model::set_types(const std::vector<std::pair<std::string, ElementTypes>>& types) {
  for (const auto& [key, type] : types) apply_key(*body_, body_->require(key, "set_types"), IOKey{.types = type});
}

void Model::set_differentiability(const std::vector<std::pair<std::string, bool>>& differentiable) {
  for (const auto& [key, on] : differentiable)
    body_->edge(body_->require(key, "set_differentiability"))->differentiable = on;
}

std::vector<std::string> Model::input_keys() const {
  std::vector<std::string> result;
  for (const std::string& key : body_->keys) {
    if (body_->is_output(key)) continue;
    if (!body_->edge(key)->value.given() || !body_->generated(key)) result.push_back(key);
  }
  return result;
}

std::vector<std::string> Model::output_keys() const {
  std::vector<std::string> result;
  for (const std::string& key : body_->exposed) {
    if (body_->is_output(key)) result.push_back(body_->resolve(key));
  }
  return result.empty() ? canonical_outputs(*body_) : result;
}

std::vector<std::string> Model::keys() const { return body_->keys; }
bool Model::is_tensor(const std::string& key) const {
  return body_->edge(body_->require(key, "is_tensor"))->tensor.value_or(false);
}
const std::string& Model::type_name() const { return body_->type; }
std::string Model::name() const { return body_->name; }
Entries Model::arguments() const { return body_->arguments; }

std::vector<Model> Model::submodels() const {
  std::vector<Model> result;
  for (const auto& child : body_->children) result.push_back(Model(child.body));
  return result;
}

}  // namespace capibara::models
