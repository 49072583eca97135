// Named models from Python: classes for models, connections and compiled models.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "calls.h"
#include "models.h"

namespace capibara::python {

namespace {

// An operation on connections: a call of a model from the catalog.
ml::Call operation(const char* model, std::initializer_list<std::pair<const char*, ml::Value>> inputs,
                   const ml::Entries& arguments = {}) {
  ml::Entries connections;
  for (const auto& [key, value] : inputs) connections.emplace_back(key, value);
  return ml::make(model, arguments).connect(connections);
}

struct BinaryOperator {
  const char *name, *model, *left, *right;
};
constexpr BinaryOperator binary_operators[] = {
    {"add", "Add", "left", "right"},
    {"sub", "Subtract", "left", "right"},
    {"mul", "Multiply", "left", "right"},
    {"truediv", "Divide", "numerator", "denominator"},
    {"floordiv", "FloorDivide", "numerator", "denominator"},
    {"pow", "Power", "base", "exponent"},
    {"matmul", "MatrixMultiply", "left", "right"},
    {"and", "LogicalAnd", "left", "right"},
    {"or", "LogicalOr", "left", "right"},
    {"xor", "LogicalXOr", "left", "right"},
    {"lshift", "ShiftLeft", "input", "shift"},
    {"rshift", "ShiftRight", "input", "shift"},
};
constexpr BinaryOperator comparisons[] = {
    {"__gt__", "Greater", "left", "right"}, {"__ge__", "GreaterEqual", "left", "right"},
    {"__lt__", "Less", "left", "right"},    {"__le__", "LessEqual", "left", "right"},
    {"eq", "Equal", "left", "right"},       {"ne", "NotEqual", "left", "right"},
};
constexpr std::pair<const char*, const char*> unary_operators[] = {
    {"__neg__", "Negate"}, {"__invert__", "LogicalNot"}, {"abs", "Absolute"}, {"len", "Length"},
    {"sqrt", "Sqrt"},      {"exp", "Exponential"},       {"item", "Item"},    {"sin", "Sine"},
    {"cos", "Cosine"},     {"atleast_1d", "AtLeast1D"},  {"floor", "Floor"},  {"tensor", "ToTensor"}};
constexpr std::pair<const char*, const char*> reductions[] = {{"mean", "Mean"}, {"sum", "Sum"},   {"max", "Max"},
                                                              {"min", "Min"},   {"prod", "Prod"}, {"var", "Variance"}};

// The operators that Python writes on connections, keys and calls.
template <class T>
void add_operators(nb::class_<T>& type) {
  for (const BinaryOperator& op : binary_operators) {
    type.def(concat("__", op.name, "__").c_str(), [op](const T& self, nb::handle other) {
      return operation(op.model, {{op.left, self}, {op.right, model_value(other)}});
    });
    type.def(concat("__r", op.name, "__").c_str(), [op](const T& self, nb::handle other) {
      return operation(op.model, {{op.left, model_value(other)}, {op.right, self}});
    });
  }
  for (const BinaryOperator& op : comparisons) {
    type.def(op.name, [op](const T& self, nb::handle other) {
      return operation(op.model, {{op.left, self}, {op.right, model_value(other)}});
    });
  }
  for (const auto& [name, model] : unary_operators) {
    type.def(name, [model = model](const T& self) { return operation(model, {{"input", self}}); });
  }
  for (const auto& [name, model] : reductions) {
    type.def(
        name,
        [model = model](const T& self, nb::handle axis, bool keepdim) {
          return operation(model, {{"input", self}}, {{"axis", model_value(axis)}, {"keepdim", keepdim}});
        },
        nb::arg("axis").none() = nb::none(), nb::arg("keepdim") = false);
  }
  type.def("__getitem__", [](const T& self, nb::handle index) {
    return operation("Indexer", {{"input", self}, {"index", model_value(index)}});
  });
  type.def_prop_ro("shape", [](const T& self) { return operation("Shape", {{"input", self}}); });
  type.def(
      "size",
      [](const T& self, nb::handle dim) {
        return operation("Size", {{"input", self}}, {{"dim", model_value(dim)}});
      },
      nb::arg("dim").none() = nb::none());
  type.def("reshape", [](const T& self, nb::handle shape) {
    return operation("Reshape", {{"input", self}, {"shape", model_value(shape)}});
  });
  type.def(
      "transpose",
      [](const T& self, nb::handle axes) {
        return operation("Transpose", {{"input", self}}, {{"axes", model_value(axes)}});
      },
      nb::arg("axes").none() = nb::none());
  type.def_prop_ro("T", [](const T& self) { return operation("Transpose", {{"input", self}}); });
  type.def("cast", [](const T& self, nb::handle dtype) {
    return operation("Cast", {{"input", self}, {"dtype", model_value(dtype)}});
  });
  type.def("clamp", [](const T& self, nb::handle low, nb::handle high) {
    return operation("Clamp", {{"input", self}, {"min_val", model_value(low)}, {"max_val", model_value(high)}});
  });
  type.def("__iter__",
           [](const T&) -> nb::object { throw TypeError("models: a connection cannot be iterated; index it"); });
}

// Positional values are matched to the inputs in order.
ml::Call call_of(const ml::Model& model, const nb::args& args, const nb::kwargs& kwargs) {
  ml::Entries connections;
  std::vector<std::string> keys = model.input_keys(), outputs = model.output_keys();
  keys.insert(keys.end(), outputs.begin(), outputs.end());
  std::size_t next = 0;
  for (nb::handle value : args) {
    if (next >= keys.size())
      throw TypeError(concat("models: ", model.type_name(), " has ", keys.size(), " keys, got more values"));
    connections.emplace_back(keys[next++], model_value(value));
  }
  for (auto& entry : entries_of(kwargs)) connections.push_back(std::move(entry));
  return model.connect(connections);
}

void bind_model_class(nb::module_& m) {
  nb::class_<ml::Model> model(m, "Model");
  model.def(
      "__init__",
      [](ml::Model* self, std::optional<std::string> name) {
        new (self) ml::Model(ml::make("Model", name ? ml::Entries{{"name", *name}} : ml::Entries{}));
      },
      nb::arg("name").none() = nb::none());
  model.def("connect", call_of);
  model.def("__call__", call_of);
  model.def("__ior__", [](ml::Model self, const ml::Call& call) { return self |= call; });
  model.def("__ior__", [](ml::Model self, const ml::Model& other) { return self |= other; });
  model.def("__iadd__", [](ml::Model self, const ml::Call& call) { return self += call; });
  model.def("__iadd__", [](ml::Model self, const ml::Model& other) { return self += other; });
  model.def_static("create", [](const nb::args& args, const nb::kwargs& kwargs) {
    ml::Entries outputs;
    for (nb::handle value : args) outputs.emplace_back(std::string(), model_value(value));
    for (auto& entry : entries_of(kwargs)) outputs.push_back(std::move(entry));
    return ml::Model::create(outputs);
  });
  model.def("__getattr__", [](const ml::Model& self, const std::string& key) {
    if (!key.starts_with("__")) {
      for (const std::string& own : self.keys()) {
        if (own == key) return self[key];
      }
    }
    PyErr_SetString(PyExc_AttributeError,
                    concat("'", self.type_name(), "' has no key or attribute '", key, "'").c_str());
    throw nb::python_error();
  });
  model.def_prop_ro("cin", &ml::Model::cin);
  model.def_prop_ro("cout", &ml::Model::cout);
  model.def("set_cin", [](ml::Model& self, const nb::args& keys) {
    std::vector<std::string> names;
    for (nb::handle key : keys) names.push_back(key_text(key));
    self.set_cin(names);
  });
  model.def("set_cout", [](ml::Model& self, const nb::args& keys) {
    std::vector<std::string> names;
    for (nb::handle key : keys) names.push_back(key_text(key));
    self.set_cout(names);
  });
  model.def("expose_keys", [](ml::Model& self, const nb::args& keys, const nb::kwargs& named) {
    for (nb::handle key : keys) {
      if (nb::isinstance<ml::Connection>(key))
        self.expose_keys({nb::cast<ml::Connection>(key).key});
      else
        self.expose_keys({nb::cast<std::string>(key)});
    }
    for (auto [name, connection] : named)
      self.expose_key(nb::cast<std::string>(name), nb::cast<ml::Connection>(connection));
  });
  model.def("rename_key", [](ml::Model& self, const ml::Connection& connection, const std::string& name) {
    self.rename_key(connection, name);
  });
  model.def("merge_connections", [](ml::Model& self, const nb::args& connections) {
    std::vector<ml::Value> values;
    for (nb::handle value : connections) values.push_back(model_value(value));
    self.merge_connections(values);
  });
  model.def("set_shapes", [](ml::Model& self, const nb::kwargs& shapes) { self.set_shapes(shapes_of(shapes)); });
  model.def("set_values", [](ml::Model& self, const nb::kwargs& values) { self.set_values(entries_of(values)); });
  model.def("set_types", [](ml::Model& self, const nb::kwargs& types) {
    for (auto [key, names] : types)
      self.set_types({{nb::cast<std::string>(key), types_of(nb::cast<std::vector<std::string>>(names))}});
  });
  model.def("set_differentiability", [](ml::Model& self, const nb::kwargs& flags) {
    for (auto [key, on] : flags) self.set_differentiability({{nb::cast<std::string>(key), nb::cast<bool>(on)}});
  });
  model.def_prop_ro("input_keys", &ml::Model::input_keys);
  model.def_prop_ro("output_keys", &ml::Model::output_keys);
  model.def_prop_ro("keys", &ml::Model::keys);
  model.def_prop_ro("name", &ml::Model::name);
  model.def_prop_ro("type_name", [](const ml::Model& self) { return self.type_name(); });
  model.def_prop_ro("submodels", &ml::Model::submodels);
  model.def_prop_ro("shapes", [](const ml::Model& self) {
    nb::dict result;
    for (const auto& [key, text] : self.shapes()) result[key.c_str()] = text;
    return result;
  });
  model.def("summary", &ml::Model::summary);
  model.def("svg", &ml::Model::svg);
  model.def("__repr__", [](const ml::Model& self) {
    std::string keys;
    for (const std::string& key : self.input_keys()) keys += (keys.empty() ? "" : ", ") + key;
    std::string outputs;
    for (const std::string& key : self.output_keys()) outputs += (outputs.empty() ? "" : ", ") + key;
    return concat(self.type_name(), "(", keys, " -> ", outputs, ")");
  });
}

void bind_values(nb::module_& m) {
  nb::class_<ml::Value>(m, "Value").def("__repr__", &ml::Value::to_string);
  m.attr("TBD") = nb::cast(ml::Value());

  nb::class_<ml::Connection> connection(m, "Connection");
  connection.def_prop_ro("key", [](const ml::Connection& self) { return self.key; });
  connection.def("__repr__", [](const ml::Connection& self) { return concat("Connection('", self.key, "')"); });
  add_operators(connection);

  nb::class_<ml::Call> call(m, "Call");
  call.def_prop_ro("model", [](const ml::Call& self) { return self.model; });
  call.def("__repr__", [](const ml::Call& self) { return concat("Call of ", self.model.type_name()); });
  call.def("output_of", [](ml::Call self, const std::string& key) {
    self.output = key;
    return self;
  });
  add_operators(call);

  nb::class_<ml::IOKey> key(m, "IOKey");
  key.def(
      "__init__",
      [](ml::IOKey* self, std::optional<std::string> name, nb::handle value, nb::handle shape,
         std::optional<std::vector<std::string>> type, std::optional<bool> differentiable, bool expose,
         std::optional<std::vector<nb::object>> connections) {
        new (self) ml::IOKey();
        if (name) self->name = *name;
        self->value = model_value(value);
        if (!shape.is_none()) self->shape = ml::ShapeTemplate(model_value(shape));
        if (type) self->types = types_of(*type);
        self->differentiable = differentiable;
        self->expose = expose;
        if (connections) {
          for (const nb::object& other : *connections) self->connections.push_back(model_value(other));
        }
      },
      nb::arg("name").none() = nb::none(), nb::arg("value") = m.attr("TBD"), nb::arg("shape").none() = nb::none(),
      nb::arg("type").none() = nb::none(), nb::arg("differentiable").none() = nb::none(), nb::arg("expose") = false,
      nb::arg("connections").none() = nb::none());
  key.def_prop_ro("name", [](const ml::IOKey& self) { return self.name; });
  add_operators(key);

  nb::class_<ml::Tensor> tensor(m, "Tensor");
  tensor.def(
      "__init__",
      [](ml::Tensor* self, nb::handle value, std::optional<std::vector<std::string>> type,
         std::optional<bool> differentiable) {
        new (self) ml::Tensor();
        self->value = model_value(value);
        if (type) self->types = types_of(*type);
        self->differentiable = differentiable;
      },
      nb::arg("value") = m.attr("TBD"), nb::arg("type").none() = nb::none(),
      nb::arg("differentiable").none() = nb::none());
  tensor.def("__repr__", [](const ml::Tensor& self) { return ml::Value(self).to_string(); });
}

}  // namespace

void bind_models(nb::module_& core) {
  nb::module_ m = core.def_submodule("models", "Named models.");
  bind_values(m);
  bind_model_class(m);
  bind_compiled(m);
  bind_train_model(m);
  m.def("make", [](const std::string& name, const nb::args& args, const nb::kwargs& kwargs) {
    std::vector<ml::Value> positional;
    for (nb::handle value : args) positional.push_back(model_value(value));
    return ml::make(name, positional, entries_of(kwargs));
  });
  m.def("catalog", [] {
    nb::list rows;
    for (const ml::ModelEntry& entry : ml::catalog()) {
      rows.append(nb::make_tuple(entry.name, entry.signature, entry.sentence, entry.primitive));
    }
    return rows;
  });
  m.def("custom_model", [](const std::string& name, const std::vector<std::string>& inputs, nb::object function) {
    auto kept = std::make_shared<KeptObject>(function);
    return ml::custom_model(name, inputs, [kept, function = function.ptr(), name](const std::vector<Array>& arrays) {
      return to_array(call_python(nb::handle(function), wrap_all(arrays)), name.c_str());
    });
  });
  m.def("from_specification",
        [](nb::handle specification) { return ml::from_specification(model_value(specification)); });
  m.def("to_specification", [](const ml::Model& model) { return python_value(ml::to_specification(model)); });
  m.def("parse_json", [](const std::string& text) { return python_value(ml::parse_json(text)); });
}

}  // namespace capibara::python
