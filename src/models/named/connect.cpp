// Connecting models: joining edges, resolving the keys of values, and adding submodels.
#include "models/named/body.h"
#include "models/named/catalog.h"

#include <algorithm>

namespace capibara::models {

EdgePointer root_of(EdgePointer edge) {
  while (edge->joined) edge = edge->joined;
  return edge;
}

EdgePointer join(const EdgePointer& first, const EdgePointer& second, const std::string& where) {
  EdgePointer a = root_of(first), b = root_of(second);
  if (a == b) return a;
  // Defaults yield to computed or explicit values.
  auto yield = [](Edge& one, const Edge& other) {
    if (one.soft && (!other.writer.empty() || (other.value.given() && !other.soft))) {
      one.value = {};
      one.soft = false;
    }
  };
  yield(*a, *b);
  yield(*b, *a);
  if (a->value.given() && b->value.given() && !(a->value == b->value)) {
    throw ValueError(concat("models: ", where, ": one side has the value ", a->value.to_string(), ", the other ",
                            b->value.to_string()));
  }
  if (a->tensor && b->tensor && *a->tensor != *b->tensor) {
    throw TypeError(concat("models: ", where, ": one side is a tensor, the other is not"));
  }
  ElementTypes both{a->types.boolean && b->types.boolean, a->types.integer && b->types.integer,
                    a->types.floating && b->types.floating};
  if (!both.any()) {
    throw TypeError(
        concat("models: ", where, ": one side holds ", a->types.to_string(), ", the other ", b->types.to_string()));
  }
  a->types = both;
  if (!a->value.given()) {
    a->value = b->value;
    a->soft = b->soft;
  }
  if (!a->tensor) a->tensor = b->tensor;
  if (!a->differentiable) a->differentiable = b->differentiable;
  if (a->writer.empty()) a->writer = b->writer;
  b->joined = a;
  return a;
}

namespace {

// The parent's key for a key of its child; added if there is none.
std::string lift(ModelBody& parent, ModelBody& child, const std::string& key) {
  ModelBody::Child& entry = child_entry(parent, child);
  std::string inner = child.resolve(key);
  auto found = entry.names.find(inner);
  if (found != entry.names.end()) return parent.resolve(found->second);
  for (const auto& [other, own] : entry.names) {
    if (child.has(other) && child.edge(other) == child.edge(inner)) return parent.resolve(own);
  }
  std::string own = parent.add_key({});
  parent.edges[own] = child.edge(inner);
  if (child.is_output(inner)) parent.written.insert(own);
  entry.names[inner] = own;
  return own;
}

// Raises if the submodels of a body depend on each other in a cycle; names the keys of one.
void check_circle(const ModelBody& body, const std::string& joined) {
  std::map<std::string, std::vector<std::size_t>> readers;
  for (std::size_t i = 0; i < body.children.size(); ++i) {
    for (const auto& [inner, own] : body.children[i].names) {
      if (!body.children[i].body->is_output(inner)) readers[body.resolve(own)].push_back(i);
    }
  }
  std::vector<int> state(body.children.size(), 0);
  std::vector<std::pair<std::size_t, bool>> stack;
  for (std::size_t start = 0; start < body.children.size(); ++start) {
    stack.push_back({start, false});
    while (!stack.empty()) {
      auto [i, leaving] = stack.back();
      stack.pop_back();
      if (leaving) {
        state[i] = 2;
        continue;
      }
      if (state[i] != 0) continue;
      state[i] = 1;
      stack.push_back({i, true});
      for (const auto& [inner, own] : body.children[i].names) {
        if (!body.children[i].body->is_output(inner)) continue;
        for (std::size_t next : readers[body.resolve(own)]) {
          if (state[next] == 1) {
            throw KeyError(concat("models: connecting '", joined,
                                  "' makes a cycle: ", body.children[next].body->label(), " needs '", body.resolve(own),
                                  "', which ", body.children[i].body->label(), " computes from it"));
          }
          if (state[next] == 0) stack.push_back({next, false});
        }
      }
    }
  }
}

}  // namespace

// Merges two keys of a body.
std::string join_keys(ModelBody& body, std::string a, std::string b) {
  a = body.resolve(a);
  b = body.resolve(b);
  if (a == b) return a;
  if (body.generated(a) && !body.generated(b)) std::swap(a, b);
  if (!body.generated(a) && !body.generated(b)) {
    throw KeyError(concat("models: '", a, "' and '", b, "' are different connections of ", body.label(),
                          " and both have a name; leave one of them unnamed to join them"));
  }
  if (body.is_output(a) && body.is_output(b)) {
    throw KeyError(concat("models: '", a, "' is computed by ", body.edge(a)->writer, " and by ", body.edge(b)->writer,
                          "; a connection has one writer"));
  }
  join(body.edge(a), body.edge(b), a);
  if (body.is_output(b)) body.written.insert(a);
  body.written.erase(b);
  body.renamed[b] = a;
  body.edges.erase(b);
  std::erase(body.keys, b);
  for (auto& child : body.children) {
    for (auto& [inner, own] : child.names) {
      if (own == b) own = a;
    }
  }
  check_circle(body, a);
  return a;
}

// Applies an IOKey to the edge of a key.
void apply_key(ModelBody& body, const std::string& key, const IOKey& io) {
  EdgePointer edge = body.edge(key);
  if (io.value.given()) {
    if (edge->value.given() && !edge->soft && !(edge->value == io.value)) {
      throw ValueError(concat("models: '", key, "' of ", body.label(), " has the value ", edge->value.to_string(),
                              " and cannot also be ", io.value.to_string()));
    }
    edge->value = io.value;
    edge->soft = false;
    if (io.value.is_tensor()) edge->tensor = true;
  }
  if (io.types) {
    edge->tensor = true;
    ElementTypes both{edge->types.boolean && io.types->boolean, edge->types.integer && io.types->integer,
                      edge->types.floating && io.types->floating};
    if (!both.any()) {
      throw TypeError(concat("models: '", key, "' of ", body.label(), " holds ", edge->types.to_string(),
                             " and cannot hold ", io.types->to_string()));
    }
    edge->types = both;
  }
  if (io.differentiable) edge->differentiable = io.differentiable;
  if (io.shape) body.templates.push_back({{key, *io.shape}});
  if (io.expose && !contains(body.exposed, key)) body.exposed.push_back(key);
}

bool holds_connections(const Value& value) {
  if (value.is_connection() || value.is_call() || value.is_key()) return true;
  if (value.is_tensor()) return !value.tensor().value.given();
  if (!value.is_list()) return false;
  for (const Value& entry : value.list()) {
    if (holds_connections(entry)) return true;
  }
  return false;
}

namespace {

// A saved state of a model and everything a call would join to it, so that a failed call has no effect.
class Snapshot {
 public:
  Snapshot(const std::shared_ptr<ModelBody>& parent, const Call& call) : parent_(parent), body_(*parent) {
    keep(*parent);
    keep(call);
  }

  void restore() const {
    for (const ModelBody::Child& child : parent_->children) {
      const auto same = [&](const ModelBody::Child& other) { return other.body == child.body; };
      if (std::none_of(body_.children.begin(), body_.children.end(), same)) child.body->parent.reset();
    }
    *parent_ = body_;
    for (const auto& [edge, before] : edges_) *edge = before;
  }

 private:
  void keep(const ModelBody& body) {
    for (const auto& [key, edge] : body.edges) {
      EdgePointer root = root_of(edge);
      edges_.emplace_back(root, *root);
    }
  }
  void keep(const Call& call) {
    keep(*call.model.body());
    for (const auto& [key, value] : call.connections) keep(value);
  }
  void keep(const Value& value) {
    if (value.is_call()) keep(value.call());
    if (value.is_list()) {
      for (const Value& entry : value.list()) keep(entry);
    }
  }

  std::shared_ptr<ModelBody> parent_;
  ModelBody body_;
  std::vector<std::pair<EdgePointer, Edge>> edges_;
};

void add_model(const std::shared_ptr<ModelBody>& parent, const Call& call, bool canonical) {
  const std::shared_ptr<ModelBody>& child = call.model.body();
  if (parent->frozen) {
    throw ValueError(
        concat("models: ", parent->label(), " is complete and cannot be extended; make a Model() around it"));
  }
  if (child == parent) throw ValueError(concat("models: ", parent->label(), " cannot be added to itself"));
  if (child->parent.lock()) {
    throw ValueError(concat("models: this ", child->label(), " is already part of ", child->parent.lock()->label(),
                            "; make another one"));
  }
  Entries connections = call.connections;
  std::vector<std::string> mentioned;
  for (const auto& [key, value] : connections) {
    if (!child->has(key)) {
      std::vector<std::string> names;
      for (const std::string& name : child->keys) {
        if (!child->generated(name)) names.push_back(name);
      }
      throw KeyError(concat("models: ", child->label(), " has no key '", key, "'", hint(key, names)));
    }
    if (value.given()) mentioned.push_back(child->resolve(key));
  }
  if (canonical && !parent->children.empty()) {
    std::vector<std::string> free;
    for (const std::string& key : canonical_inputs(*child)) {
      if (!contains(mentioned, key) && !child->edge(key)->value.given()) free.push_back(key);
    }
    if (free.size() > 1) {
      throw KeyError(concat("models: += ", child->label(), ": it has ", free.size(), " free canonical inputs, ",
                            quoted(free), "; connect all but one of them, or use |= with names"));
    }
    if (free.size() == 1) {
      std::vector<std::string> outputs = canonical_outputs(*parent);
      if (outputs.size() != 1) {
        throw KeyError(concat("models: += ", child->label(), ": ", parent->label(), " has ", outputs.size(),
                              " canonical outputs", outputs.empty() ? "" : concat(", ", quoted(outputs)),
                              "; use |= and name what '", free[0], "' is connected with"));
      }
      connections.emplace_back(free[0], Connection{parent, outputs[0]});
    }
  }
  // Calls among the values are added first: their results become keys of the parent.
  std::vector<std::pair<std::string, std::string>> own;
  for (const auto& [key, value] : connections) {
    if (value.given()) own.emplace_back(child->resolve(key), key_of_value(parent, value));
  }
  parent->children.push_back({child, {}});
  child->parent = parent;
  for (const auto& [inner, outer] : own) {
    ModelBody::Child& entry = parent->children.back();
    std::string outer_key = parent->resolve(outer);
    if (auto found = entry.names.find(inner); found != entry.names.end()) {
      join_keys(*parent, found->second, outer_key);
      continue;
    }
    bool output = child->is_output(inner);
    if (output && parent->is_output(outer_key)) {
      throw KeyError(concat("models: '", outer_key, "' is already computed by ", parent->edge(outer_key)->writer, "; ",
                            child->label(), ".", inner, " cannot compute it too: a connection has one writer"));
    }
    join(parent->edge(outer_key), child->edge(inner), concat(child->label(), ".", inner, " = ", outer_key));
    if (output) parent->written.insert(outer_key);
    entry.names[inner] = outer_key;
    if (output) check_circle(*parent, outer_key);
  }
  std::vector<std::string> outputs = child->record ? std::vector<std::string>{} : Model(child).output_keys();
  for (const std::string& inner : std::vector<std::string>(child->keys)) {
    ModelBody::Child& entry = parent->children.back();
    if (entry.names.count(inner)) continue;
    bool output = child->is_output(inner);
    bool outside = output ? child->record || contains(outputs, inner) : !child->edge(inner)->value.given();
    if (outside) lift(*parent, *child, inner);
  }
}

}  // namespace

void extend(const std::shared_ptr<ModelBody>& parent, const Call& call, bool canonical) {
  const Snapshot before(parent, call);
  try {
    add_model(parent, call, canonical);
  } catch (...) {
    before.restore();
    throw;
  }
}

std::string key_of(const std::shared_ptr<ModelBody>& body, const Connection& connection) {
  if (connection.model == body) return body->require(connection.key, "connect");
  std::shared_ptr<ModelBody> owner = connection.model->parent.lock();
  if (!owner) {
    throw KeyError(concat("models: '", connection.key, "' of ", connection.model->label(), " is not part of ",
                          body->label(), "; add ", connection.model->label(), " first"));
  }
  std::string key = connection.model->require(connection.key, "connect");
  return key_of(body, Connection{owner, lift(*owner, *connection.model, key)});
}

std::string key_of_value(const std::shared_ptr<ModelBody>& body, const Value& value) {
  if (value.is_text()) {
    if (value.text().empty()) return body->add_key({});
    return body->add_key(body->resolve(value.text()));
  }
  if (value.is_connection()) return key_of(body, value.connection());
  if (value.is_key()) {
    const IOKey& io = value.key();
    std::string key = body->add_key(io.name.empty() ? std::string() : body->resolve(io.name));
    if (!io.connections.empty()) {
      for (const Value& other : io.connections) key = join_keys(*body, key, key_of_value(body, other));
    }
    apply_key(*body, key, io);
    return key;
  }
  if (value.is_call()) {
    const Call& call = value.call();
    const std::shared_ptr<ModelBody>& inner = call.model.body();
    if (inner->parent.lock() != body) extend(body, call, false);
    std::vector<std::string> outputs =
        call.output.empty() ? call.model.output_keys() : std::vector<std::string>{call.output};
    if (outputs.size() != 1) {
      throw KeyError(concat("models: ", inner->label(), " has ", outputs.size(), " outputs, ", quoted(outputs),
                            "; say which one is meant"));
    }
    return key_of(body, Connection{inner, outputs[0]});
  }
  if (value.is_list() && holds_connections(value)) {
    Entries entries;
    const List& list = value.list();
    for (std::size_t i = 0; i < list.size(); ++i) entries.emplace_back(concat("input", i + 1), list[i]);
    return key_of_value(body, make("ToList", {{"n", static_cast<int64_t>(list.size())}}).connect(entries));
  }
  std::string key = body->add_key({});
  EdgePointer edge = body->edge(key);
  if (value.is_tensor()) {
    edge->tensor = true;
    edge->types = value.tensor().types;
    edge->differentiable = value.tensor().differentiable;
    if (value.tensor().value.given()) edge->value = value;
  } else {
    edge->value = value;
  }
  return key;
}

}  // namespace capibara::models
