// The body that a Model handle points to: keys, their edges, and the submodels.
#pragma once

#include <capibara/models.h>

#include <set>

namespace capibara::models {

struct Record;

// What is known about a connection; joined connections share one edge.
struct Edge {
  std::shared_ptr<Edge> joined;  // set if this edge was merged into another
  Value value = {};
  bool soft = false;  // the value is a default: a connection to another value replaces it
  ElementTypes types = {};
  std::optional<bool> tensor = {};
  std::optional<bool> differentiable = {};
  std::string writer = {};  // "Relu.output": the operation that computes it; empty for inputs
};
using EdgePointer = std::shared_ptr<Edge>;
EdgePointer root_of(EdgePointer edge);
// Merges two edges. Errors name `where`, the connection that joins them.
EdgePointer join(const EdgePointer& a, const EdgePointer& b, const std::string& where);

using NamedShapes = std::vector<std::pair<std::string, ShapeTemplate>>;

struct ModelBody {
  std::string type = "Model", name = {};
  const Record* record = nullptr;          // of a primitive
  std::shared_ptr<const Record> own = {};  // the record of a custom model
  Entries arguments = {};

  std::vector<std::string> keys = {};  // in the order in which they were added
  std::map<std::string, EdgePointer> edges = {};
  std::map<std::string, std::string> renamed = {};  // keys that were renamed
  std::set<std::string> written = {};               // keys that are computed by this model
  std::vector<std::string> exposed = {};
  std::optional<std::vector<std::string>> cins = {}, couts = {};
  std::vector<NamedShapes> templates = {};

  struct Child {
    std::shared_ptr<ModelBody> body;
    std::map<std::string, std::string> names;  // the child's keys -> the parent's
  };
  std::vector<Child> children = {};
  std::weak_ptr<ModelBody> parent = {};
  bool frozen = false;
  int next_key = 0;

  EdgePointer edge(const std::string& key) const { return root_of(edges.at(resolve(key))); }
  std::string resolve(std::string key) const;
  bool has(const std::string& key) const { return edges.count(resolve(key)) != 0; }
  std::string require(const std::string& key, const char* operation) const;  // KeyError with the nearest key
  bool is_output(const std::string& key) const { return written.count(resolve(key)) != 0; }
  std::string add_key(std::string key);  // empty: a generated name, "$1"
  std::string label() const { return name.empty() ? type : name; }
  bool generated(const std::string& key) const { return !key.empty() && key[0] == '$'; }
};

std::vector<std::string> canonical_inputs(const ModelBody& body);
std::vector<std::string> canonical_outputs(const ModelBody& body);
// The key of `body` for a connection of it or of a submodel.
std::string key_of(const std::shared_ptr<ModelBody>& body, const Connection& connection);
// Converts a value that a key is connected to into a key of the model.
std::string key_of_value(const std::shared_ptr<ModelBody>& body, const Value& value);
// Adds a model to another; `canonical` connects the canonical output with the single free canonical input.
void extend(const std::shared_ptr<ModelBody>& parent, const Call& call, bool canonical);
// Merges two keys of a body.
std::string join_keys(ModelBody& body, std::string a, std::string b);
// Applies an IOKey to the edge of a key.
void apply_key(ModelBody& body, const std::string& key, const IOKey& io);
bool holds_connections(const Value& value);  // also true for lists of them
ModelBody::Child& child_entry(ModelBody& parent, const ModelBody& child);
bool contains(const std::vector<std::string>& names, const std::string& name);
std::string quoted(const std::vector<std::string>& names);  // 'a', 'b'
// The name among `names` that is most similar to `wanted`; empty if none is similar.
std::string nearest_name(const std::string& wanted, const std::vector<std::string>& names);
// ". Did you mean 'x'?", or all names if none is similar.
std::string hint(const std::string& wanted, const std::vector<std::string>& names);

}  // namespace capibara::models
