// Conversions of dtypes: objects of NumPy and ml_dtypes, and the extended dtypes of keys.
#include <capibara/config.h>
#include <capibara/dtype.h>

#include <nanobind/stl/string.h>

#include "bindings.h"
#include "lax/operators/promote.h"
#include "library/table/function.h"

#include <array>

namespace capibara::python {

namespace {

// All tables live as long as the interpreter.
struct Tables {
  std::array<PyObject*, dtype_table.size()> objects{};
  PyObject* by_object = nullptr;  // np.dtype, scalar class or key dtype -> position in dtype_table
};

Tables* make_tables() {
  auto* tables = new Tables;
  nb::object numpy = nb::module_::import_("numpy"), small = nb::module_::import_("ml_dtypes");
  nb::object keys = nb::module_::import_("capibara._dtypes");
  nb::dict by_object;
  for (std::size_t i = 0; i < dtype_table.size(); ++i) {
    const DTypeRow& row = dtype_table[i];
    nb::object object;
    if (row.kind == Kind::key) {
      object = keys.attr("KeyType")(nb::str(row.name.data(), row.name.size()), i);
    } else if (row.dtype == DType::float0) {
      object = keys.attr("float0");
    } else if (row.dtype == DType::token) {
      continue;
    } else {
      nb::str name(row.name.data(), row.name.size());
      nb::object scalar = nb::hasattr(small, name)
                              ? nb::getattr(small, name)
                              : nb::getattr(numpy, row.dtype == DType::bool_ ? nb::str("bool_") : name, nb::none());
      if (scalar.is_none()) continue;  // such as int1, if ml_dtypes does not have it
      object = numpy.attr("dtype")(scalar);
      by_object[scalar] = i;
    }
    by_object[object] = i;
    tables->objects[i] = object.release().ptr();
  }
  // NumPy has several C names for the same type: longlong is int64.
  for (const char* alias : {"longlong", "ulonglong", "intc", "uintc"}) {
    nb::object scalar = numpy.attr(alias), object = numpy.attr("dtype")(scalar);
    const std::optional<DType> dtype = dtype_from_name(nb::cast<std::string>(object.attr("name")));
    for (std::size_t i = 0; i < dtype_table.size(); ++i) {
      if (dtype == dtype_table[i].dtype) by_object[scalar] = by_object[object] = i;
    }
  }
  tables->by_object = by_object.release().ptr();
  return tables;
}

const Tables& tables() {
  static const Tables* all = make_tables();
  return *all;
}

std::optional<DType> look_up(nb::handle object) {
  PyObject* found = PyDict_GetItemWithError(tables().by_object, object.ptr());
  if (!found) {
    PyErr_Clear();
    return std::nullopt;
  }
  return dtype_table[static_cast<std::size_t>(PyLong_AsLong(found))].dtype;
}

}  // namespace

nb::object numpy_dtype(DType dtype) {
  PyObject* object = tables().objects[static_cast<std::size_t>(dtype)];
  if (!object) throw TypeError(concat("NumPy has no dtype ", to_string(dtype)));
  return nb::borrow(object);
}

std::optional<DType> dtype_if(nb::handle object) {
  if (object.ptr() == reinterpret_cast<PyObject*>(&PyFloat_Type)) return default_float();
  if (object.ptr() == reinterpret_cast<PyObject*>(&PyLong_Type)) return default_int();
  if (object.ptr() == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::bool_;
  if (object.ptr() == reinterpret_cast<PyObject*>(&PyComplex_Type)) return default_complex();
  bool is_type = PyType_Check(object.ptr());
  if (!is_type && PyNumber_Check(object.ptr())) return std::nullopt;
  if (!is_type && !nb::hasattr(object, "itemsize")) return std::nullopt;
  if (PyObject_Hash(object.ptr()) == -1) {
    PyErr_Clear();
    return std::nullopt;
  }
  if (std::optional<DType> found = look_up(object)) return found;
  if (is_type && nb::hasattr(object, "dtype")) {
    nb::object dtype = object.attr("dtype");
    if (std::optional<DType> found = look_up(dtype)) return found;
  }
  return std::nullopt;
}

DType to_dtype(nb::handle object) {
  if (std::optional<DType> found = dtype_if(object)) return *found;
  if (nb::isinstance<nb::str>(object)) {
    if (std::optional<DType> found = library::dtype_of(library::Value(nb::cast<std::string>(object)))) return *found;
  }
  const std::string text = nb::cast<std::string>(nb::repr(object));
  if (nb::isinstance<nb::str>(object)) throw TypeError(concat("data type ", text, " not understood"));
  throw TypeError(concat("a dtype is needed, got ", text));
}

void bind_dtypes(nb::module_& m) {
  m.def("dtype_object", [](const std::string& name) {
    std::optional<DType> dtype = dtype_from_name(name);
    if (!dtype) throw TypeError(concat("no dtype is called '", name, "'"));
    return numpy_dtype(*dtype);
  });
  m.def("canonical_dtype", [](nb::handle object) { return numpy_dtype(canonical(to_dtype(object))); });
  m.def("dtype_of", [](nb::handle object) { return numpy_dtype(to_dtype(object)); });
  // (dtype, weak) of an operand; objects without a dtype get the one that they would be converted to.
  m.def("scalar_type", [](nb::handle object) {
    std::optional<Array> array = array_if(object);
    if (array) return nb::make_tuple(numpy_dtype(array->dtype()), array->weak_type());
    if (object.ptr() == reinterpret_cast<PyObject*>(&PyFloat_Type) ||
        object.ptr() == reinterpret_cast<PyObject*>(&PyLong_Type) ||
        object.ptr() == reinterpret_cast<PyObject*>(&PyComplex_Type)) {
      return nb::make_tuple(numpy_dtype(to_dtype(object)), true);
    }
    return nb::make_tuple(numpy_dtype(canonical(to_dtype(object))), false);
  });
  m.def("promote_scalar_types", [](nb::list types) {
    std::vector<ScalarType> all;
    for (nb::handle pair : types) all.push_back({to_dtype(pair[0]), nb::cast<bool>(pair[1])});
    const PromotionMode mode =
        config().numpy_dtype_promotion == "strict" ? PromotionMode::strict : PromotionMode::standard;
    ScalarType result = promote_types(all, true, mode);  // the caller narrows when it creates a value
    return nb::make_tuple(numpy_dtype(result.dtype), result.weak);
  });
}

}  // namespace capibara::python
