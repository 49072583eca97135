// Conversions of named models' values to and from Python objects.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "models.h"

namespace capibara::python {

ml::Entries entries_of(nb::handle dictionary) {
  ml::Entries entries;
  for (auto [key, value] : nb::cast<nb::dict>(dictionary))
    entries.emplace_back(nb::cast<std::string>(key), model_value(value));
  return entries;
}

ml::ElementTypes types_of(const std::vector<std::string>& names) {
  ml::ElementTypes types{false, false, false};
  for (const std::string& name : names) {
    if (name == "float")
      types.floating = true;
    else if (name == "int")
      types.integer = true;
    else if (name == "bool")
      types.boolean = true;
    else
      throw ValueError(concat("models: element types are 'float', 'int' and 'bool', got '", name, "'"));
  }
  return types;
}

// Converts a Python object to a value of a model; lists and tuples item by item.
ml::Value model_value(nb::handle object) {
  PyObject* p = object.ptr();
  if (nb::isinstance<ml::Value>(object)) return nb::cast<ml::Value>(object);
  if (p == Py_None) return ml::None{};
  if (p == Py_Ellipsis) return Ellipsis{};
  if (PyBool_Check(p)) return p == Py_True;
  if (PyLong_Check(p)) return nb::cast<int64_t>(object);
  if (PyFloat_Check(p)) return nb::cast<double>(object);
  if (PyUnicode_Check(p)) return nb::cast<std::string>(object);
  if (nb::isinstance<ml::Model>(object)) return nb::cast<ml::Model>(object);
  if (nb::isinstance<ml::Call>(object)) return nb::cast<ml::Call>(object);
  if (nb::isinstance<ml::Connection>(object)) return nb::cast<ml::Connection>(object);
  if (nb::isinstance<ml::IOKey>(object)) return nb::cast<ml::IOKey>(object);
  if (nb::isinstance<ml::Tensor>(object)) return nb::cast<ml::Tensor>(object);
  if (PySlice_Check(p)) {
    auto end = [&](const char* name) -> std::optional<int64_t> {
      nb::object value = object.attr(name);
      return value.is_none() ? std::nullopt : std::optional(nb::cast<int64_t>(value));
    };
    return Slice{end("start"), end("stop"), end("step")};
  }
  if (PyTuple_Check(p) || PyList_Check(p)) {
    ml::List list;
    for (nb::handle entry : object) list.push_back(model_value(entry));
    return list;
  }
  if (PyDict_Check(p)) return ml::Value::dictionary(entries_of(object));
  if (std::optional<DType> dtype = dtype_if(object)) return *dtype;
  return to_array(object, "models");
}

nb::object python_value(const ml::Value& value) {
  if (!value.given() || value.is_none()) return nb::none();
  if (value.is_array()) return wrap(value.array());
  if (value.is<bool>()) return nb::cast(value.boolean());
  if (value.is<int64_t>()) return nb::cast(value.integer());
  if (value.is<double>()) return nb::cast(value.number());
  if (value.is_text()) return nb::cast(value.text());
  if (value.is<DType>()) return numpy_dtype(value.dtype());
  if (value.is_list()) {
    nb::list list;
    for (const ml::Value& entry : value.list()) list.append(python_value(entry));
    return list;
  }
  if (value.is_dictionary()) {
    nb::dict result;
    for (const auto& [key, entry] : value.entries()) result[key.c_str()] = python_value(entry);
    return result;
  }
  return nb::cast(value);
}

std::vector<std::pair<std::string, ml::ShapeTemplate>> shapes_of(nb::handle dictionary) {
  std::vector<std::pair<std::string, ml::ShapeTemplate>> shapes;
  if (dictionary.is_none()) return shapes;
  for (auto [key, value] : nb::cast<nb::dict>(dictionary)) {
    if (value.is_none()) continue;
    shapes.emplace_back(nb::cast<std::string>(key), ml::ShapeTemplate(model_value(value)));
  }
  return shapes;
}

std::string key_text(nb::handle key) {
  if (nb::isinstance<ml::Connection>(key)) return nb::cast<ml::Connection>(key).key;
  return nb::cast<std::string>(key);
}

}  // namespace capibara::python
