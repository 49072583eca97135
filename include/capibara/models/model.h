// Model: a graph of named connections, built before shapes, types and a backend are known.
#pragma once

#include <capibara/models/key.h>

#include <functional>

namespace capibara::models {

// A model about to be added to another: its keys and their connections. As a value, the model's output.
struct Call;

class Model {
 public:
  Model();  // empty, to be filled by |= and +=
  explicit Model(std::shared_ptr<ModelBody> body) : body_(std::move(body)) {}

  // A call to add, with its connections: linear.connect({{"input", "x"}, {"output", "h"}}).
  Call connect(Entries connections = {}) const;
  Call operator()(Entries connections = {}) const;

  // Adds a model; unmentioned keys stay free.
  Model& operator|=(const Call& call);
  Model& operator|=(const Model& model);
  // Adds a model and connects its single free canonical input with the canonical output of this model.
  Model& operator+=(const Call& call);
  Model& operator+=(const Model& model);

  // The model of an expression: everything that the outputs depend on. Named outputs are exposed under their names.
  static Model create(const Entries& outputs);

  Connection operator[](const std::string& key) const;  // KeyError with the nearest name if there is none
  Connection cin() const;
  Connection cout() const;
  void set_cin(const std::vector<std::string>& keys);
  void set_cout(const std::vector<std::string>& keys);

  void expose_keys(const std::vector<std::string>& keys);
  // Exposes a connection under another name.
  void expose_key(const std::string& name, const Connection& connection);
  void rename_key(const Connection& connection, const std::string& name);
  void merge_connections(const std::vector<Value>& connections);
  // Dimension names are shared by the templates of one call.
  void set_shapes(const std::vector<std::pair<std::string, ShapeTemplate>>& shapes);
  void set_values(const Entries& values);
  void set_types(const std::vector<std::pair<std::string, ElementTypes>>& types);
  void set_differentiability(const std::vector<std::pair<std::string, bool>>& differentiable);

  std::vector<std::string> input_keys() const;   // free inputs, and inputs with a value that have a name
  std::vector<std::string> output_keys() const;  // exposed ones, or the canonical outputs if there are none
  std::vector<std::string> keys() const;         // all connections of this model
  bool is_tensor(const std::string& key) const;  // known to be a tensor, from the model alone
  const std::string& type_name() const;          // "Linear"
  std::string name() const;
  std::vector<Model> submodels() const;
  Entries arguments() const;  // of the constructor

  // Shapes of all keys, as far as the model alone determines them: sizes, names, and "V..." for several dimensions.
  std::vector<std::pair<std::string, std::string>> shapes() const;
  // A table of the submodels with their keys, shapes and connections.
  std::string summary() const;
  // The graph as an SVG image.
  std::string svg() const;

  const std::shared_ptr<ModelBody>& body() const { return body_; }

 private:
  std::shared_ptr<ModelBody> body_;
};

struct Call {
  Model model;
  Entries connections;
  std::string output = {};  // of the model, when the call is used as a value; empty: the only one
};

// Makes a model from the catalog: make("Linear", {{"dimension", 64}}). Names are case-insensitive.
Model make(const std::string& name, const Entries& arguments = {});
// The same with positional arguments first, as in Python.
Model make(const std::string& name, const std::vector<Value>& positional, const Entries& named);

// An entry of the catalog.
struct ModelEntry {
  std::string name;
  std::string signature;  // of the constructor, in Python syntax
  std::string sentence;
  bool primitive;
};
// Every model that make supports, in catalog order.
std::vector<ModelEntry> catalog();

using ArrayFunction = std::function<Array(const std::vector<Array>&)>;
// A primitive model of a function on arrays, for user-defined operations; its keys are inputs and "output".
Model custom_model(const std::string& name, const std::vector<std::string>& inputs, ArrayFunction function);

// A model from its specification: a name, or {"name", "args", "submodels", "connections", "exposed_keys", ...}.
Model from_specification(const Value& specification);
// The specification of a model, from which from_specification rebuilds it.
Value to_specification(const Model& model);

}  // namespace capibara::models
