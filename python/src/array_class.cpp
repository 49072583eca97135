// The metaclass of jax.Array: a Python class whose instances are arrays and traced arrays.
//
// Libraries derive metaclasses from type(jax.Array), which nanobind's own metaclass does not allow.
#include "bindings.h"

namespace capibara::python {

namespace {

PyObject* array_class = nullptr;  // jax.Array; its metaclass serves classes derived from it, too

PyTypeObject* python_type(nb::handle type) { return reinterpret_cast<PyTypeObject*>(type.ptr()); }

PyObject* plain_check(const char* method, PyObject* cls, PyObject* object) {
  return PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyType_Type), method, "OO", cls, object);
}

// True for instances of built-in types, which never override __class__.
bool is_plain(PyObject* object) {
  return object == Py_None || PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyUnicode_CheckExact(object) ||
         PyTuple_CheckExact(object) || PyList_CheckExact(object) || PyDict_CheckExact(object) ||
         PyFunction_Check(object);
}

PyObject* is_instance(PyObject* cls, PyObject* object) noexcept {
  static PyTypeObject* const array = python_type(nb::type<Array>());
  if (cls != array_class) return plain_check("__instancecheck__", cls, object);
  if (PyObject_TypeCheck(object, array)) Py_RETURN_TRUE;
  // A proxy may claim to be an array through __class__, and so may an instance of a class derived from jax.Array.
  static PyObject* const name = PyUnicode_InternFromString("__class__");
  if (is_plain(object)) Py_RETURN_FALSE;
  PyObject* seen = PyObject_GetAttr(object, name);
  if (!seen) PyErr_Clear();
  auto* derived = reinterpret_cast<PyTypeObject*>(cls);
  const bool yes = PyType_IsSubtype(Py_TYPE(object), derived) ||
                   (seen && PyType_Check(seen) &&
                    (PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(seen), array) ||
                     PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(seen), derived)));
  Py_XDECREF(seen);
  return PyBool_FromLong(yes);
}

// As in jax, the class of traced values is not a subclass, so dispatch by type does not treat tracers as arrays.
PyObject* is_subclass(PyObject* cls, PyObject* object) noexcept {
  if (cls != array_class || !PyType_Check(object)) return plain_check("__subclasscheck__", cls, object);
  auto* type = reinterpret_cast<PyTypeObject*>(object);
  const bool array = PyType_IsSubtype(type, python_type(nb::type<Array>())) &&
                     !PyType_IsSubtype(type, python_type(nb::type<TracerArray>()));
  return PyBool_FromLong(array || PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(cls)));
}

PyMethodDef methods[] = {{"__instancecheck__", is_instance, METH_O, nullptr},
                         {"__subclasscheck__", is_subclass, METH_O, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_methods, methods}, {0, nullptr}};
PyType_Spec spec = {"capibara._core.ArrayMeta", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

}  // namespace

void bind_array_class(nb::module_& m) {
  nb::object meta = nb::steal(PyType_FromSpecWithBases(&spec, reinterpret_cast<PyObject*>(&PyType_Type)));
  if (!meta.is_valid()) throw nb::python_error();
  m.attr("ArrayMeta") = meta;
  m.def("set_array_class", [](nb::object cls) { array_class = cls.release().ptr(); });
}

}  // namespace capibara::python
