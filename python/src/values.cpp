// Conversions of the library table's values to and from Python objects.
#include <capibara/ref.h>
#include <nanobind/stl/string.h>

#include <limits>

#include "backends/result_placement.h"
#include "bindings.h"
#include "lax/operators/promotion_scope.h"
#include "library/table/host_number.h"
#include "program/trace/known_values.h"

namespace capibara::python {

namespace {

class ForeignObject final : public library::Foreign {
 public:
  explicit ForeignObject(nb::handle object) : object_(object) {}
  std::string type_name() const override {
    nb::gil_scoped_acquire lock;
    return nb::cast<std::string>(object_.get().type().attr("__name__"));
  }
  std::optional<Shape> shape() const override {
    nb::gil_scoped_acquire lock;
    nb::object sizes = nb::getattr(object_.get(), "shape", nb::none());
    if (!PyTuple_Check(sizes.ptr())) return std::nullopt;
    Shape shape;
    for (nb::handle size : sizes) shape.push_back(nb::cast<int64_t>(size));
    return shape;
  }

 private:
  KeptObject object_;
};

constexpr const char* swapped_hint = "Hint: pass x.astype(x.dtype.newbyteorder('=')).";

// An array in non-native byte order, which NumPy converts if the caller passes a dtype.
class SwappedArray final : public library::Foreign {
 public:
  explicit SwappedArray(nb::handle object) : object_(object) {}
  std::string type_name() const override {
    nb::gil_scoped_acquire lock;
    return concat("numpy.ndarray' of dtype '", nb::cast<std::string>(nb::str(nb::object(object_.get().attr("dtype")))));
  }
  std::optional<Array> as_dtype(DType dtype) const override {
    nb::gil_scoped_acquire lock;
    return array_from_numpy(object_.get().attr("astype")(numpy_dtype(dtype)));
  }
  std::string hint() const override { return swapped_hint; }

 private:
  KeptObject object_;
};

// A level of nesting; Python's recursion limit stops sequences that contain themselves.
class Nesting {
 public:
  Nesting() {
    if (Py_EnterRecursiveCall(" while a nested sequence is read") != 0) throw nb::python_error();
  }
  ~Nesting() { Py_LeaveRecursiveCall(); }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
};

library::Callable to_callable(nb::handle function) {
  auto kept = std::make_shared<KeptObject>(function);
  return [kept](const library::Values& arguments) {
    nb::gil_scoped_acquire lock;
    nb::list list;
    nb::dict named;
    for (const library::Value& argument : arguments) {
      const library::Sequence* sequence = argument.sequence();
      if (sequence && sequence->type_name == "keywords") {
        for (std::size_t i = 0; i < sequence->items.size(); ++i)
          named[sequence->fields[i].c_str()] = from_value(sequence->items[i]);
      } else {
        list.append(from_value(argument));
      }
    }
    PromotionScope own(PromotionScope::all);  // the user's code, not the library's
    nb::object result = nb::steal(PyObject_Call(kept->get().ptr(), nb::tuple(list).ptr(), named.ptr()));
    if (!result) throw nb::python_error();
    return to_value(result);
  };
}

library::Value big_integer_value(nb::handle object, int sign) {
  const uint64_t low_bits = PyLong_AsUnsignedLongLongMask(object.ptr());
  PyLong_AsUnsignedLongLong(object.ptr());
  const bool fits = !PyErr_Occurred();
  PyErr_Clear();
  double real = PyLong_AsDouble(object.ptr());
  if (PyErr_Occurred()) {  // beyond float64
    PyErr_Clear();
    real = sign * std::numeric_limits<double>::infinity();
  }
  return std::shared_ptr<const library::Foreign>(
      std::make_shared<library::BigInteger>(nb::cast<std::string>(nb::str(object)), low_bits, real, fits));
}

nb::object named_tuple_class(const library::Sequence& sequence) {
  static PyObject* classes = PyDict_New();
  nb::str name(sequence.type_name.c_str());
  if (PyObject* known = PyDict_GetItem(classes, name.ptr())) return nb::borrow(known);
  nb::list fields;
  for (const std::string& field : sequence.fields) fields.append(field);
  nb::object made = nb::module_::import_("collections").attr("namedtuple")(name, fields);
  made.attr("__module__") = "capibara.jax.numpy";
  PyDict_SetItem(classes, name.ptr(), made.ptr());
  return made;
}

// A function the library returned: an initializer (key, shape, dtype=..., out_sharding=None).
nb::object from_callable(const library::Callable& function) {
  nb::object called = nb::cpp_function([function](nb::args positional, nb::kwargs named) {
    static const char* const names[] = {"key", "shape", "dtype", "out_sharding"};
    library::Values arguments;
    for (nb::handle argument : positional) arguments.push_back(to_value(argument));
    std::size_t used = 0;
    for (std::size_t i = arguments.size(); i < 4; ++i) {
      if (!named.contains(names[i])) {
        arguments.emplace_back();
        continue;
      }
      arguments.push_back(to_value(named[names[i]]));
      ++used;
    }
    if (used != named.size())
      throw TypeError("initializer: unexpected keyword argument; expected key, shape, dtype, out_sharding");
    while (!arguments.empty() && arguments.back().is_none()) arguments.pop_back();
    library::Value made = function(arguments);
    if (const Array* array = made.array()) made = stage_value(*array);
    return from_value(made);
  });
  return nb::module_::import_("capibara._modules").attr("as_initializer")(called);
}

}  // namespace

bool is_byte_swapped(nb::handle object) {
  static PyObject* ndarray = nb::object(nb::module_::import_("numpy").attr("ndarray")).release().ptr();
  return PyObject_IsInstance(object.ptr(), ndarray) == 1 &&
         !nb::cast<bool>(nb::object(object.attr("dtype").attr("isnative")));
}

void refuse_swapped(nb::handle dtype) {
  throw TypeError(concat("Dtype ", nb::cast<std::string>(nb::str(dtype)),
                         " is not a valid JAX array type: its bytes are swapped. ", swapped_hint));
}

library::Value to_value(nb::handle object) {
  PyObject* o = object.ptr();
  if (o == Py_None) return {};
  if (nb::isinstance<Array>(object)) return nb::cast<Array>(object);
  if (PyBool_Check(o)) return o == Py_True;
  if (PyLong_CheckExact(o)) {
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow == 0) return static_cast<int64_t>(value);
    return big_integer_value(object, overflow);
  }
  if (PyFloat_CheckExact(o)) return PyFloat_AS_DOUBLE(o);
  if (PyComplex_CheckExact(o)) return std::complex<double>(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o));
  if (PyUnicode_CheckExact(o)) return nb::cast<std::string>(object);
  if (PyTuple_Check(o) || PyList_Check(o)) {
    const Nesting nesting;
    library::Sequence sequence;
    sequence.is_list = PyList_Check(o);
    for (nb::handle item : object) sequence.items.push_back(to_value(item));
    if (!sequence.is_list && !PyTuple_CheckExact(o) && nb::hasattr(object, "_fields")) {
      sequence.type_name = nb::cast<std::string>(object.type().attr("__name__"));
      for (nb::handle field : object.attr("_fields")) sequence.fields.push_back(nb::cast<std::string>(field));
    }
    return sequence;
  }
  if (PyMemoryView_Check(o) || PyByteArray_Check(o))
    return array_from_numpy(object);  // with the dtype that describes the buffer
  if (PySlice_Check(o)) {
    library::Sequence parts;
    parts.type_name = "slice";
    parts.fields = {"start", "stop", "step"};
    for (const std::string& field : parts.fields)
      parts.items.push_back(to_value(nb::object(object.attr(field.c_str()))));
    return parts;
  }
  if (PyRange_Check(o)) {
    library::Sequence sequence;
    for (nb::handle item : object) sequence.items.push_back(to_value(item));
    return sequence;
  }
  if (std::optional<DType> dtype = dtype_if(object)) return *dtype;
  if (nb::hasattr(object, "_as_zeros")) return nb::cast<Array>(object.attr("_as_zeros")());
  // Enumerations defined in Python carry the library's name for each member.
  if (nb::hasattr(object, "_library_name")) return nb::cast<std::string>(object.attr("_library_name"));
  if (is_byte_swapped(object)) return std::shared_ptr<const library::Foreign>(std::make_shared<SwappedArray>(object));
  if (std::optional<Array> array = array_if(object)) return *array;
  if (PyUnicode_Check(o)) return nb::cast<std::string>(nb::str(object));
  if (PyCallable_Check(o)) return to_callable(object);
  // A ref has a length and can be indexed, but is read only explicitly.
  // Sparse matrices of other libraries are not sequences: each row is again a matrix.
  const bool can_be_read = !PyDict_Check(o) && !nb::hasattr(object, "__jax_array__") &&
                           !nb::isinstance<jax::Ref>(object) &&
                           !(nb::hasattr(object, "shape") && nb::hasattr(object, "dtype"));
  if (can_be_read && (nb::hasattr(object, "__iter__") || PySequence_Check(o))) {
    const Nesting nesting;
    library::Sequence sequence;
    for (nb::handle item : object) sequence.items.push_back(to_value(item));
    return sequence;
  }
  return std::shared_ptr<const library::Foreign>(std::make_shared<ForeignObject>(object));
}

nb::object from_value(const library::Value& value) {
  struct Converter {
    nb::object operator()(std::monostate) const { return nb::none(); }
    nb::object operator()(bool v) const { return nb::bool_(v); }
    nb::object operator()(int64_t v) const { return nb::int_(v); }
    nb::object operator()(double v) const { return nb::float_(v); }
    nb::object operator()(std::complex<double> v) const { return nb::steal(PyComplex_FromDoubles(v.real(), v.imag())); }
    nb::object operator()(const std::string& v) const { return nb::str(v.c_str(), v.size()); }
    nb::object operator()(DType v) const { return numpy_dtype(v); }
    nb::object operator()(const Array& v) const { return wrap(placed_in_context(v)); }
    nb::object operator()(const std::shared_ptr<const library::Sequence>& v) const {
      nb::list list;
      for (const library::Value& item : v->items) list.append(from_value(item));
      if (v->is_list) return list;
      nb::tuple tuple(list);
      if (v->type_name.empty()) return tuple;
      if (v->type_name == "dict") {
        nb::dict dict;
        for (std::size_t i = 0; i < v->items.size(); ++i) dict[v->fields[i].c_str()] = list[i];
        return dict;
      }
      return named_tuple_class(*v)(*tuple);
    }
    nb::object operator()(const library::Callable& v) const { return from_callable(v); }
    nb::object operator()(const std::shared_ptr<const library::Foreign>&) const { return nb::none(); }
  };
  return std::visit(Converter(), value.content());
}

}  // namespace capibara::python
