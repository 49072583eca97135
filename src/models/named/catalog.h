// The catalog of models: one record per model, in families; a primitive has its computation, a composite its
// construction.
#pragma once

#include "models/named/body.h"
#include "models/named/shape_rules.h"

#include <functional>
#include <span>

namespace capibara::models {

// A key of a primitive.
struct Port {
  std::string key;
  std::optional<ShapeTemplate> shape = {};  // if present: a tensor of this shape
  bool tensor = false;                      // a tensor, with or without a template
  Value value = {};                         // the default; unset: must be connected
  ElementTypes types = {};
  bool trainable = false;
};

// A parameter of a constructor.
struct Parameter {
  std::string name;
  Value value = {};  // the default
};

// The arguments of one constructor call, including defaults.
class Arguments {
 public:
  Arguments(std::string model, Entries entries) : model_(std::move(model)), entries_(std::move(entries)) {}
  const Value& operator[](const std::string& name) const;
  bool flag(const std::string& name) const { return (*this)[name].boolean(); }
  bool given(const std::string& name) const { return (*this)[name].given() && !(*this)[name].is_none(); }
  const std::string& model() const { return model_; }
  const Entries& entries() const { return entries_; }

 private:
  std::string model_;
  Entries entries_;
};

// The inputs of a primitive's computation: the values of its keys, its constructor arguments, the backend's dtype.
class Operands {
 public:
  Operands(const std::vector<Port>& ports, std::span<const Value> values, const Entries& arguments, DType dtype)
      : ports_(ports), values_(values), arguments_(arguments), dtype_(dtype) {}
  const Value& operator[](const std::string& key) const;
  const Value& at(std::size_t index) const { return values_[index]; }
  std::size_t size() const { return values_.size(); }
  Array array(const std::string& key) const;  // converts numbers, lists and tensors to arrays
  Array array(std::size_t index) const;
  const Value& argument(const std::string& name) const;
  bool flag(const std::string& name) const;  // an argument, or the value of a key
  // A number; names such as "MIN_POSITIVE_NORMAL" are looked up for the backend's dtype.
  double threshold(const std::string& key) const;
  DType dtype() const { return dtype_; }

 private:
  const std::vector<Port>& ports_;
  std::span<const Value> values_;
  const Entries& arguments_;
  DType dtype_;
};

// A number, list or tensor as an array; floats have this dtype.
Array to_array(const Value& value, DType dtype);
// Constants by name: "EPSILON", "MIN_POSITIVE_NORMAL", "STABLE_RECIPROCAL_THRESHOLD", ...
std::optional<double> named_constant(const std::string& name, DType dtype);

using Compute = std::function<Value(const Operands&)>;

// `constructor` lists the parameters in Python notation: "axis=None, keepdim=False, input". A parameter that is also a
// key gives the key its value. `keys` lists the keys, "input[V...], axis=None -> output": a template in brackets means
// that a key is a tensor; after it !, its element types: i integers, f floats, b bools; after it *, that it is trained.
struct Record {
  std::string name, constructor, keys, sentence;
  Compute compute = {};                                 // of a primitive
  ShapeRule rule = {};                                  // for shapes that the templates cannot express
  Model (*build)(const Arguments&) = nullptr;           // of a composite
  std::string (*keys_for)(const Arguments&) = nullptr;  // of a primitive whose keys depend on its arguments
  std::string safe = {};                                // keys with the intended shapes: checked by safe_shapes

  std::vector<Parameter> parameters() const;
};

// The ports of a primitive for these arguments; the first `inputs` of them are inputs.
struct Ports {
  std::vector<Port> all;
  std::size_t inputs = 0;
};
Ports parse_ports(const std::string& keys);

using Records = std::vector<Record>;
Records operator_records();
Records reduction_records();
Records activation_records();
Records loss_records();
Records window_records();
Records shaping_records();
Records creation_records();
Records analysis_records();
Records layer_records();
Records norm_records();
Records kernel_method_records();
Records recurrent_records();
Records distance_records();
Records metric_records();

const Record* find_record(const std::string& name);
Model make_primitive(const Record& record, const Arguments& arguments);

}  // namespace capibara::models
