// Python's operators on arrays: each is the function of jax.numpy with its name.
#include "array_operators.h"

#include <capibara/numpy.h>

#include "backends/result_placement.h"
#include "bindings.h"
#include "key_hook.h"
#include "library/table/function.h"

namespace capibara::python {

namespace {

// The object as an operand, empty for other objects, which may have a reflected operator.
std::optional<Array> operand(PyObject* object) {
  nb::handle handle(object);
  if (nb::isinstance<Array>(handle)) return nb::cast<Array>(handle);
  if (object == Py_None || PyTuple_Check(object) || PyList_Check(object) || PyUnicode_Check(object))
    return std::nullopt;
  if (is_number(handle) || PyLong_Check(object) || PyFloat_Check(object)) return array_if(handle);
  static PyObject* numpy = nb::module_::import_("numpy").release().ptr();
  static PyObject* ndarray = nb::handle(numpy).attr("ndarray").ptr();
  static PyObject* generic = nb::handle(numpy).attr("generic").ptr();
  if (PyObject_IsInstance(object, ndarray) == 1 || PyObject_IsInstance(object, generic) == 1 ||
      PyObject_HasAttrString(object, "__jax_array__")) {
    return array_if(handle);
  }
  return std::nullopt;
}

PyObject* not_implemented() { return nb::borrow(nb::handle(Py_NotImplemented)).release().ptr(); }

// The operand as the table takes it: a plain number stays a number, so that it can be static.
library::Value operator_value(PyObject* object, const Array& array) {
  if (PyLong_CheckExact(object) && array.dtype() != DType::uint64) return library::Value(array.item<int64_t>());
  return array;
}

// The function of jax.numpy called through the hook that checks numbers.
PyObject* checked(const char* function, PyObject* a, PyObject* b) {
  const nb::object callable = library_function("numpy", function);
  PyObject* const result =
      call_hook(Hook::numbers, callable.ptr(), nb::make_tuple(nb::borrow(a), nb::borrow(b)).ptr(), nullptr);
  if (!result) throw nb::python_error();
  return result;
}

PyObject* binary(const char* function, PyObject* a, PyObject* b) noexcept {
  return guarded([&]() -> PyObject* {
    std::optional<Array> x = operand(a);
    if (!x) return not_implemented();
    std::optional<Array> y = operand(b);
    if (!y) return not_implemented();
    if (has_hook(Hook::numbers)) return checked(function, a, b);
    return from_value(call_library("numpy", function, {operator_value(a, *x), operator_value(b, *y)})).release().ptr();
  });
}

// The C++ operators are those of jax.numpy and need no lookup in the table.
using Direct = Array (*)(const Array&, const Array&);
PyObject* direct(const char* name, Direct function, PyObject* a, PyObject* b) noexcept {
  return guarded([&]() -> PyObject* {
    const std::optional<Array> x = operand(a);
    if (!x) return not_implemented();
    const std::optional<Array> y = operand(b);
    if (!y) return not_implemented();
    if (has_hook(Hook::numbers)) return checked(name, a, b);
    return wrap(placed_in_context(function(*x, *y))).release().ptr();
  });
}

PyObject* unary(const char* function, PyObject* a) noexcept {
  return guarded([&]() -> PyObject* {
    return from_value(call_library("numpy", function, {nb::cast<Array>(nb::handle(a))})).release().ptr();
  });
}

#define CAPIBARA_BINARY(slot, function) \
  PyObject* slot(PyObject* a, PyObject* b) noexcept { return binary(function, a, b); }
#define CAPIBARA_UNARY(slot, function) \
  PyObject* slot(PyObject* a) noexcept { return unary(function, a); }
#define CAPIBARA_DIRECT(slot, function, sign)                                     \
  PyObject* slot(PyObject* a, PyObject* b) noexcept {                             \
    return direct(                                                                \
        function, [](const Array& x, const Array& y) { return x sign y; }, a, b); \
  }
CAPIBARA_DIRECT(op_add, "add", +)
CAPIBARA_DIRECT(op_subtract, "subtract", -)
CAPIBARA_DIRECT(op_multiply, "multiply", *)
CAPIBARA_DIRECT(op_true_divide, "true_divide", /)
CAPIBARA_BINARY(op_floor_divide, "floor_divide")
CAPIBARA_BINARY(op_remainder, "remainder")
CAPIBARA_BINARY(op_divmod, "divmod")
CAPIBARA_BINARY(op_and, "bitwise_and")
CAPIBARA_BINARY(op_or, "bitwise_or")
CAPIBARA_BINARY(op_xor, "bitwise_xor")
CAPIBARA_BINARY(op_left_shift, "left_shift")
CAPIBARA_BINARY(op_right_shift, "right_shift")
CAPIBARA_UNARY(op_negative, "negative")
CAPIBARA_UNARY(op_positive, "positive")
CAPIBARA_UNARY(op_absolute, "abs")
CAPIBARA_UNARY(op_invert, "invert")
#undef CAPIBARA_DIRECT
#undef CAPIBARA_BINARY
#undef CAPIBARA_UNARY

PyObject* op_matmul(PyObject* a, PyObject* b) noexcept {
  return direct(
      "matmul", [](const Array& x, const Array& y) { return jax::numpy::matmul(x, y); }, a, b);
}

PyObject* op_power(PyObject* a, PyObject* b, PyObject* modulus) noexcept {
  if (modulus != Py_None) return not_implemented();
  return binary("power", a, b);
}

PyObject* op_compare(PyObject* a, PyObject* b, int operation) noexcept {
  static const char* const names[] = {"less", "less_equal", "equal", "not_equal", "greater", "greater_equal"};
  return binary(names[operation], a, b);
}

}  // namespace

PyType_Slot* array_operator_slots() {
  static PyType_Slot slots[] = {
      {Py_nb_add, reinterpret_cast<void*>(op_add)},
      {Py_nb_subtract, reinterpret_cast<void*>(op_subtract)},
      {Py_nb_multiply, reinterpret_cast<void*>(op_multiply)},
      {Py_nb_true_divide, reinterpret_cast<void*>(op_true_divide)},
      {Py_nb_floor_divide, reinterpret_cast<void*>(op_floor_divide)},
      {Py_nb_remainder, reinterpret_cast<void*>(op_remainder)},
      {Py_nb_divmod, reinterpret_cast<void*>(op_divmod)},
      {Py_nb_power, reinterpret_cast<void*>(op_power)},
      {Py_nb_matrix_multiply, reinterpret_cast<void*>(op_matmul)},
      {Py_nb_and, reinterpret_cast<void*>(op_and)},
      {Py_nb_or, reinterpret_cast<void*>(op_or)},
      {Py_nb_xor, reinterpret_cast<void*>(op_xor)},
      {Py_nb_lshift, reinterpret_cast<void*>(op_left_shift)},
      {Py_nb_rshift, reinterpret_cast<void*>(op_right_shift)},
      {Py_nb_negative, reinterpret_cast<void*>(op_negative)},
      {Py_nb_positive, reinterpret_cast<void*>(op_positive)},
      {Py_nb_absolute, reinterpret_cast<void*>(op_absolute)},
      {Py_nb_invert, reinterpret_cast<void*>(op_invert)},
      {Py_tp_richcompare, reinterpret_cast<void*>(op_compare)},
      {0, nullptr},
  };
  return slots;
}

}  // namespace capibara::python
