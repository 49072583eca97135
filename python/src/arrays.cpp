// jax.Array in Python: its attributes, conversions to and from the host's objects, and pickling.
#include <capibara/config.h>
#include <capibara/dlpack.h>
#include <capibara/lax.h>
#include <capibara/ref.h>

#include "array_index.h"
#include "array_operators.h"
#include "bindings.h"
#include "core/runtime/transfer_guard.h"
#include "key_hook.h"
#include "lax/operators/plain_number.h"
#include "program/trace/trace.h"
#include "readable.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

namespace capibara::python {

namespace {

// The bytes of an array as Python's buffer protocol shows them.
struct ByteView {
  Array array;
  Buffer held = array.buffer();  // keeps programs from overwriting the viewed memory
};

int view_bytes(PyObject* self, Py_buffer* view, int flags) noexcept {
  try {
    const Array& array = nb::inst_ptr<ByteView>(self)->array;
    auto bytes = static_cast<Py_ssize_t>(array.size() * storage_size(array.dtype()));
    return PyBuffer_FillInfo(view, self, const_cast<std::byte*>(array.raw_data()), bytes, 1, flags);
  } catch (...) {
    set_current_error();
    return -1;
  }
}

// Arrays whose dtype the buffer protocol can describe export the view that NumPy exports.
int view_array(PyObject* self, Py_buffer* view, int flags) noexcept {
  view->obj = nullptr;
  try {
    return PyObject_GetBuffer(numpy_view(*nb::inst_ptr<Array>(self)).ptr(), view, flags);
  } catch (...) {
    set_current_error();
    return -1;
  }
}

PyType_Slot array_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(view_array)}, {0, nullptr}};
PyType_Slot byte_view_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(view_bytes)}, {0, nullptr}};

std::string describe_tracer(const Array& array) {
  return concat("traced array with shape ", capibara::to_string(array.type()));
}

// Raises the error for a conversion that traced arrays do not support: the attempt, the reason and a link.
[[noreturn]] void refuse_tracer(const char* error, const Array& array, const std::string& attempt) {
  raise_python(error, concat(attempt, origin_line(array),
                             "\nSee https://docs.jax.dev/en/latest/errors.html#jax.errors.", error));
}

[[noreturn]] void refuse_conversion(const Array& array, const char* function) {
  refuse_tracer("ConcretizationTypeError", array,
                concat("Abstract tracer value encountered where concrete value is expected: ", describe_tracer(array),
                       "\nThe problem arose with the `", function,
                       "` function. If trying to convert the data type of a value, try using `x.astype(", function,
                       ")` or `jnp.array(x, ", function, ")` instead."));
}

[[noreturn]] void refuse_method(const Array& array, const char* method) {
  refuse_tracer(
      "ConcretizationTypeError", array,
      concat("Abstract tracer value encountered where concrete value is expected: ", describe_tracer(array), "\nThe ",
             method, "() method was called on traced array with shape ", capibara::to_string(array.type())));
}

void require_scalar(const Array& array, const char* what) {
  if (array.ndim() != 0) {
    raise_python("LibraryTypeError", concat("Only scalar arrays can be converted to Python scalars. Got array.ndim=",
                                            array.ndim(), " where ", what, " is needed"));
  }
}

nb::object python_scalar(const Array& array) {
  DType dtype = array.dtype();
  if (is_bool(dtype)) return nb::bool_(array.item<bool>());
  if (is_unsigned(dtype)) return nb::int_(array.item<uint64_t>());
  if (is_integer(dtype)) return nb::int_(array.item<int64_t>());
  if (is_complex(dtype)) {
    std::complex<double> value = array.item<std::complex<double>>();
    return nb::steal(PyComplex_FromDoubles(value.real(), value.imag()));
  }
  if (is_floating(dtype)) return nb::float_(array.item<double>());
  throw TypeError(concat("an array of dtype ", to_string(dtype), " has no Python number"));
}

nb::object to_bool(const Array& array) {
  if (array.size() == 1) {
    if (!array.is_tracer()) return nb::bool_(static_cast<bool>(array));
    refuse_tracer("TracerBoolConversionError", array,
                  concat("Attempted boolean conversion of ", describe_tracer(array),
                         ".\nHint: use lax.cond or jnp.where, or mark the argument as static."));
  }
  if (array.size() == 0) {
    throw ValueError(
        "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that an array is not empty.");
  }
  throw ValueError("The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()");
}

nb::object array_tolist(const Array& array) {
  if (array.is_tracer()) refuse_method(array, "tolist");
  return numpy_view(array).attr("tolist")();
}

nb::object reduce_array(const Array& array) {
  nb::object rebuild = nb::module_::import_("capibara._types").attr("array_from_pickle");
  require_readable(array);
  if (is_key(array.dtype())) return nb::module_::import_("capibara._types").attr("reduce_keys")(wrap(array));
  nb::object bytes =
      nb::steal(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(array.raw_data()),
                                          static_cast<Py_ssize_t>(array.size() * storage_size(array.dtype()))));
  return nb::make_tuple(rebuild, nb::make_tuple(std::string(dtype_name(array.dtype())), int_tuple(array.shape()),
                                                array.weak_type(), bytes));
}

struct ArrayIterator {
  Array array;
  int64_t next = 0;
};

bool is_row_major(const DLTensor& tensor) {
  if (!tensor.strides) return true;
  int64_t step = 1;
  for (int32_t dim = tensor.ndim; dim-- > 0;) {
    if (tensor.shape[dim] != 1 && tensor.strides[dim] != step) return false;
    step *= tensor.shape[dim];
  }
  return true;
}

// Checks a consumer's __dlpack__ arguments. Only host memory is exported, as an unversioned DLPack capsule, which
// consumers of every version accept.
void check_exchange(nb::handle stream, nb::handle max_version, nb::handle device) {
  if (!stream.is_none())
    throw ValueError(
        concat("__dlpack__: memory of the host has no streams, got stream=", nb::cast<std::string>(nb::repr(stream))));
  if (!max_version.is_none() && nb::len(max_version) != 2) {
    throw ValueError(
        concat("__dlpack__: max_version must be (major, minor), got ", nb::cast<std::string>(nb::repr(max_version))));
  }
  if (!device.is_none() && !device.equal(nb::make_tuple(1, 0))) {
    nb::object error = nb::module_::import_("builtins").attr("BufferError");
    PyErr_SetString(error.ptr(),
                    concat("__dlpack__: arrays are handed over in the host's memory, (1, 0), got dl_device=",
                           nb::cast<std::string>(nb::repr(device)))
                        .c_str());
    throw nb::python_error();
  }
}

}  // namespace

nb::tuple int_tuple(std::span<const int64_t> integers) {
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(integers.size())));
  for (std::size_t i = 0; i < integers.size(); ++i) {
    PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(integers[i]));
  }
  return nb::borrow<nb::tuple>(tuple);
}

nb::object wrap(Array&& array) {
  if (!array.defined()) return nb::none();
  const ArrayType& type = array.type();
  if (type.ref) return nb::cast(jax::Ref(array), nb::rv_policy::move);
  if (array.is_tracer()) return nb::cast(TracerArray(std::move(array)), nb::rv_policy::move);
  if (type.dtype == DType::float0) return numpy_view(array);  // supports no arithmetic
  const bool token = type.dtype == DType::token;
  static const nb::handle concrete = nb::type<ConcreteArray>();
  nb::object whole = nb::inst_alloc(concrete);
  new (nb::inst_ptr<ConcreteArray>(whole)) ConcreteArray(std::move(array));
  nb::inst_mark_ready(whole);
  if (!token) return whole;
  return nb::module_::import_("capibara._effects").attr("Token")(whole);
}

nb::object wrap(const Array& array) { return wrap(Array(array)); }

nb::object type_object(const ArrayType& type) {
  if (type.dtype != DType::token) return nb::cast(type);
  return nb::module_::import_("capibara._effects").attr("abstract_token");
}

nb::tuple wrap_all(const Arrays& arrays) {
  nb::list list;
  for (const Array& array : arrays) list.append(wrap(array));
  return nb::tuple(list);
}

bool is_number(nb::handle object) {
  PyObject* o = object.ptr();
  return PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyComplex_CheckExact(o);
}

nb::object numpy_view(const Array& array) {
  require_readable(array);
  static PyObject* numpy = nb::module_::import_("numpy").release().ptr();
  nb::handle np(numpy);
  nb::object dtype = numpy_dtype(array.dtype());
  if (array.size() == 0 || array.dtype() == DType::float0) return np.attr("zeros")(int_tuple(array.shape()), dtype);
  nb::object bytes = nb::cast(ByteView{array}, nb::rv_policy::move);
  nb::object flat = np.attr("frombuffer")(bytes, dtype);
  return flat.attr("reshape")(int_tuple(array.shape()));
}

Array array_from_numpy(nb::handle object) {
  static PyObject* numpy = nb::module_::import_("numpy").release().ptr();
  nb::handle np(numpy);
  nb::object contiguous = np.attr("asarray")(object, nb::arg("order") = "C");
  nb::object dtype_object = contiguous.attr("dtype");
  std::optional<DType> dtype = dtype_if(dtype_object);
  if (!dtype) {
    if (is_byte_swapped(contiguous)) refuse_swapped(dtype_object);
    // Platform-specific names (longlong) are aliases of a dtype in the table.
    nb::object native = np.attr("dtype")(dtype_object.attr("newbyteorder")("="));
    nb::object name = native.attr("name");
    dtype = dtype_from_name(nb::cast<std::string>(name));
    if (!dtype) {
      throw TypeError(concat("JAX only supports number, bool, and string dtypes, got dtype ",
                             nb::cast<std::string>(nb::str(dtype_object)), " in array, which is not a valid JAX type"));
    }
    contiguous = np.attr("ascontiguousarray")(contiguous, native).attr("reshape")(contiguous.attr("shape"));
  }
  Shape shape;
  for (nb::handle size : contiguous.attr("shape")) shape.push_back(nb::cast<int64_t>(size));
  if (dtype == DType::float0)  // elements of no bytes, which take one here
    contiguous = np.attr("zeros")(contiguous.attr("shape"), "uint8");
  nb::object interface = contiguous.attr("__array_interface__");
  auto address = nb::cast<std::uintptr_t>(interface["data"][0]);
  return Array::from_host(*dtype, std::move(shape), reinterpret_cast<const void*>(address));
}

namespace {

// Converting a host value to a device array is a transfer, which a guard may forbid. While tracing, the value becomes a
// constant instead.
void check_transfer(PyObject* o) {
  if (!transfer::is_guarded(transfer::Direction::host_to_device) || !evaluating()) return;
  if (o == Py_None || PyTuple_Check(o) || PyList_Check(o) || PyDict_Check(o) || PyUnicode_Check(o) || PyType_Check(o))
    return;
  transfer::check(transfer::Direction::host_to_device, [o] { return concat("a value of type ", Py_TYPE(o)->tp_name); });
}

// x[key] through the hook that checks numbers, here indices.
nb::object checked_item(const Array& array, nb::handle key) {
  const nb::object getitem = nb::module_::import_("operator").attr("getitem");
  PyObject* const item =
      call_hook(Hook::numbers, getitem.ptr(), nb::make_tuple(wrap(array), nb::borrow(key)).ptr(), nullptr);
  if (!item) throw nb::python_error();
  return nb::steal(item);
}

}  // namespace

std::optional<Array> array_if(nb::handle object) {
  PyObject* o = object.ptr();
  if (nb::isinstance<Array>(object)) return nb::cast<Array>(object);
  check_transfer(o);
  if (PyBool_Check(o)) return Array(o == Py_True);
  if (PyLong_CheckExact(o)) {
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow == 0) return Array(static_cast<int64_t>(value));
    if (overflow > 0) {
      unsigned long long wide = PyLong_AsUnsignedLongLong(o);
      if (!PyErr_Occurred()) return Array(static_cast<uint64_t>(wide));
    }
    PyErr_Clear();
    nb::object text = nb::str(object);
    PyErr_Format(PyExc_OverflowError, "Python integer %U is too large for any integer dtype", text.ptr());
    throw nb::python_error();
  }
  if (PyFloat_CheckExact(o)) return Array(PyFloat_AS_DOUBLE(o));
  if (PyComplex_CheckExact(o)) return Array(std::complex<double>(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)));
  if (o == Py_None || PyTuple_Check(o) || PyList_Check(o) || PyDict_Check(o) || PyUnicode_Check(o) || PyType_Check(o))
    return std::nullopt;
  static PyObject* numpy = nb::module_::import_("numpy").release().ptr();
  static PyObject* ndarray = nb::handle(numpy).attr("ndarray").ptr();
  static PyObject* generic = nb::handle(numpy).attr("generic").ptr();
  if (PyObject_IsInstance(o, ndarray) == 1 || PyObject_IsInstance(o, generic) == 1) {
    if (reinterpret_cast<PyObject*>(Py_TYPE(o)) != ndarray && nb::hasattr(object, "mask") &&
        nb::hasattr(object, "filled")) {
      throw ValueError(
          "numpy masked arrays are not supported as arguments of JAX functions: use arr.filled() to get a plain array");
    }
    return array_from_numpy(object);
  }
  static PyObject* token = nb::object(nb::module_::import_("capibara._effects").attr("Token")).release().ptr();
  if (PyObject_IsInstance(o, token) == 1) {
    nb::object carrier = object.attr("_buf");
    if (nb::isinstance<Array>(carrier)) return nb::cast<Array>(carrier);
  }
  if (nb::hasattr(object, "__jax_array__")) {
    nb::object converted = object.attr("__jax_array__")();
    return array_if(converted);
  }
  if (nb::hasattr(object, "__dlpack__") || nb::hasattr(object, "__array__")) {
    return array_from_numpy(nb::handle(numpy).attr("asarray")(object));
  }
  // Subclasses of int and float: IntEnum, NumPy-like floats.
  if (PyLong_Check(o)) return Array(static_cast<int64_t>(PyLong_AsLongLong(o)));
  if (PyFloat_Check(o)) return Array(PyFloat_AsDouble(o));
  static PyObject* converters = nb::module_::import_("capibara._converters").release().ptr();
  nb::object converted = nb::handle(converters).attr("convert_value")(nb::borrow(object));
  if (!converted.is_none()) return array_if(converted);
  return std::nullopt;
}

Array to_array(nb::handle object, const char* operation) {
  if (std::optional<Array> array = array_if(object)) return *array;
  throw TypeError(concat(operation, ": Value ", nb::cast<std::string>(nb::repr(object)), " of type ",
                         nb::cast<std::string>(nb::str(object.type())), " is not a valid JAX type."));
}

void bind_arrays(nb::module_& m) {
  nb::class_<ByteView>(m, "ByteView", nb::type_slots(byte_view_slots));
  nb::class_<ArrayIterator>(m, "ArrayIterator")
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", [](ArrayIterator& self) {
        if (self.next >= self.array.shape(0)) throw nb::stop_iteration();
        return wrap(capibara::index(self.array, {Index(self.next++)}));
      });

  nb::class_<Array> array(m, "Array", nb::type_slots(array_operator_slots()), nb::dynamic_attr(),
                          nb::is_weak_referenceable());
  array.attr("__array_priority__") = 100;
  array.def_prop_ro("shape", [](const Array& self) { return int_tuple(self.shape()); })
      .def_prop_ro("dtype", [](const Array& self) { return numpy_dtype(self.dtype()); })
      .def_prop_ro("ndim", [](const Array& self) { return self.ndim(); })
      .def_prop_ro("size", [](const Array& self) { return self.size(); })
      .def_prop_ro("weak_type", [](const Array& self) { return self.weak_type(); })
      .def_prop_ro("itemsize", [](const Array& self) { return storage_size(self.dtype()); })
      .def_prop_ro("nbytes", [](const Array& self) { return self.size() * storage_size(self.dtype()); })
      .def_prop_ro("aval", [](const Array& self) { return type_object(self.type()); })
      .def_prop_ro("committed", [](const Array& self) { return self.committed(); })
      .def_prop_ro("_committed", [](const Array& self) { return self.committed(); })
      .def("is_deleted", [](const Array& self) { return self.is_deleted(); })
      .def("is_ready", [](const Array& self) { return self.is_ready(); })
      .def("delete", [](const Array& self) { self.delete_buffers(); })
      .def("on_device_size_in_bytes", [](const Array& self) { return self.size() * storage_size(self.dtype()); })
      .def("unsafe_buffer_pointer", [](const Array& self) { return reinterpret_cast<std::uintptr_t>(self.raw_data()); })
      .def("tolist", &array_tolist)
      .def(
          "tobytes",
          [](const Array& self, nb::object order) {
            if (self.is_tracer()) refuse_method(self, "tobytes");
            return numpy_view(self).attr("tobytes")(order);
          },
          nb::arg("order") = "C")
      .def("item",
           [](const Array& self, nb::args indices) {
             if (self.is_tracer()) refuse_conversion(self, "item");
             if (indices.size() == 0) {
               if (self.size() != 1) throw ValueError("can only convert an array of size 1 to a Python scalar");
               return python_scalar(self);
             }
             return numpy_view(self).attr("item")(*indices);
           })
      .def(
          "__array__",
          [](const Array& self, nb::object dtype, nb::object copy) {
            if (self.is_tracer()) {
              refuse_tracer(
                  "TracerArrayConversionError", self,
                  concat("The numpy.ndarray conversion method __array__() was called on ", describe_tracer(self)));
            }
            if (is_key(self.dtype()))
              throw TypeError(
                  "JAX array with PRNGKey dtype cannot be converted to a NumPy array. Use jax.random.key_data(arr) if "
                  "you wish to extract the underlying integer array.");
            nb::object view = numpy_view(self);
            if (!dtype.is_none() && !dtype.equal(view.attr("dtype"))) return view.attr("astype")(dtype);
            if (!copy.is_none() && nb::cast<bool>(copy)) return view.attr("copy")();
            return view;
          },
          nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none())
      .def(
          "__dlpack__",
          [](const Array& self, nb::object stream, nb::object max_version, nb::object dl_device, nb::object copy) {
            if (self.is_tracer()) refuse_conversion(self, "__dlpack__");
            require_readable(self);
            check_exchange(stream, max_version, dl_device);
            const bool own_copy = !copy.is_none() && nb::cast<bool>(copy);
            DLManagedTensor* tensor = jax::dlpack::to_dlpack(own_copy ? copied(self) : self);
            return nb::steal(PyCapsule_New(tensor, "dltensor", [](PyObject* capsule) {
              if (!PyCapsule_IsValid(capsule, "dltensor")) return;  // taken by a consumer
              auto* owned = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
              owned->deleter(owned);
            }));
          },
          nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
          nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none())
      .def("__dlpack_device__", [](const Array&) { return nb::make_tuple(1, 0); })
      .def("__bool__", &to_bool)
      .def("__int__",
           [](const Array& self) {
             require_scalar(self, "int()");
             if (self.is_tracer()) refuse_conversion(self, "int");
             return nb::module_::import_("builtins").attr("int")(python_scalar(self));
           })
      .def("__float__",
           [](const Array& self) {
             require_scalar(self, "float()");
             if (self.is_tracer()) refuse_conversion(self, "float");
             return nb::module_::import_("builtins").attr("float")(python_scalar(self));
           })
      .def("__complex__",
           [](const Array& self) {
             require_scalar(self, "complex()");
             if (self.is_tracer()) refuse_conversion(self, "complex");
             return nb::module_::import_("builtins").attr("complex")(python_scalar(self));
           })
      .def("__index__",
           [](const Array& self) {
             if (self.ndim() != 0 || !is_integer(self.dtype())) {
               raise_python("LibraryTypeError",
                            concat("Only integer scalar arrays can be converted to a scalar index. Got ",
                                   capibara::to_string(self.type())));
             }
             if (self.is_tracer()) {
               refuse_tracer("TracerIntegerConversionError", self,
                             concat("The __index__() method was called on ", describe_tracer(self)));
             }
             return python_scalar(self);
           })
      .def("__len__",
           [](const Array& self) {
             if (self.ndim() == 0) raise_python("LibraryTypeError", "len() of unsized object");
             return self.shape(0);
           })
      .def("__iter__",
           [](const Array& self) {
             if (self.ndim() == 0) raise_python("LibraryTypeError", "iteration over a 0-d array");
             return ArrayIterator{self};
           })
      .def(
          "__getitem__",
          [](const Array& self, nb::handle key) {
            return has_hook(Hook::numbers) ? checked_item(self, key) : wrap(read_index(self, key));
          },
          nb::arg().none())
      .def("__setitem__",
           [](const Array&, nb::handle, nb::handle) {
             raise_python(
                 "LibraryTypeError",
                 "JAX arrays are immutable and do not support in-place item assignment. Instead of x[idx] = y, use "
                 "x = x.at[idx].set(y) or another .at[] method: "
                 "https://docs.jax.dev/en/latest/_autosummary/jax.numpy.ndarray.at.html");
           })
      .def("__format__", [](const Array& self, nb::object format) {
        nb::object builtin = nb::module_::import_("builtins").attr("format");
        if (self.ndim() == 0 && !self.is_tracer() && !is_key(self.dtype())) {
          return builtin(python_scalar(self), format);
        }
        if (nb::len(format) > 0) throw TypeError("unsupported format string passed to Array.__format__");
        return nb::object(nb::str(wrap(self)));
      });
  array.attr("__hash__") = nb::none();  // arrays are not hashable, nor instances of Hashable
  bind_array_indexing(m, array);

#if NB_VERSION_MAJOR >= 3
  nb::class_<ConcreteArray, Array>(m, "ArrayImpl", nb::type_slots(array_slots),
                                   nb::pooled(1024))  // results are short-lived: reuse their objects
#else
  nb::class_<ConcreteArray, Array>(m, "ArrayImpl", nb::type_slots(array_slots))
#endif
      .def("__reduce__", &reduce_array)
      .def("block_until_ready",
           [](nb::handle self) {
             nb::cast<const Array&>(self).block_until_ready();
             return nb::borrow(self);
           })
      .def("copy_to_host_async", [](const Array&) {})
      .def("__str__",
           [](const ConcreteArray& self) -> nb::object {
             if (is_key(self.dtype()) || !may_read(self)) return nb::repr(wrap(self));
             return nb::str(numpy_view(self));  // respects NumPy's print options
           })
      .def("__repr__", &readable_repr);
  nb::class_<TracerArray, Array>(m, "Tracer");

  m.def("array_from_pickle", [](const std::string& dtype, std::vector<int64_t> shape, bool weak, nb::bytes bytes) {
    std::optional<DType> known = dtype_from_name(dtype);
    if (!known) throw ValueError(concat("a pickled array has the unknown dtype '", dtype, "'"));
    int64_t wanted = element_count(shape) * storage_size(*known);
    if (static_cast<int64_t>(bytes.size()) != wanted) {
      throw ValueError(concat("a pickled array must have ", wanted, " bytes, got ", bytes.size()));
    }
    Buffer buffer = Buffer::allocate(bytes.size());
    std::memcpy(buffer.mutable_data(), bytes.c_str(), bytes.size());
    ArrayType type;
    type.shape = std::move(shape);
    type.dtype = *known;
    type.weak_type = weak;
    return wrap(Array::from_buffer(type, buffer));
  });
  m.def("copied", [](const Array& self) { return wrap(copied(self)); });
  m.def("shares_memory", [](const Array& a, const Array& b) {
    return a.buffer().same_as(b.buffer()) || (a.buffer().address() && a.buffer().address() == b.buffer().address());
  });
  m.def(
      "from_dlpack",
      [](nb::object object, std::optional<bool> copy) {
        nb::object capsule = nb::hasattr(object, "__dlpack__") ? object.attr("__dlpack__")() : object;
        if (!PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
          throw TypeError(concat("from_dlpack: argument must offer __dlpack__ or be a DLPack capsule, got ",
                                 nb::cast<std::string>(nb::repr(object.type()))));
        }
        auto* tensor = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
        const auto* source = static_cast<const std::byte*>(tensor->dl_tensor.data) + tensor->dl_tensor.byte_offset;
        if (copy == false && !is_row_major(tensor->dl_tensor)) {
          throw ValueError("from_dlpack: the array's memory is not row-major and has to be copied, but copy=False");
        }
        PyCapsule_SetName(capsule.ptr(), "used_dltensor");
        Array array = jax::dlpack::from_dlpack(tensor);
        return wrap(copy == true && array.raw_data() == source ? copied(array) : array);
      },
      nb::arg(), nb::arg().none());
  m.def("type_of", [](nb::handle object) {
    if (nb::isinstance<jax::Ref>(object)) return nb::cast(nb::cast<const jax::Ref&>(object).handle().type());
    return type_object(to_array(object, "typeof").type());
  });
  m.def("as_array", [](nb::handle object) { return wrap(to_array(object, "asarray")); });
  m.def(
      "array_without_value",
      [](const ArrayType& type) {
        Buffer none = Buffer::borrow(nullptr, 0, {});
        none.mark_deleted();
        return wrap(Array::from_buffer(type, std::move(none)));
      },
      nb::arg("type"), "An array that has only a type, for tracing: it takes no memory, and reading it is an error.");
  m.def("put_array", [](nb::handle object) {
    const transfer::Explicit wanted;
    return wrap(to_array(object, "device_put"));
  });
}

}  // namespace capibara::python
