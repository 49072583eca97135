// Helpers shared by the extension's files: conversions of arrays, dtypes and values, and errors.
#pragma once

#include <capibara/array.h>
#include <capibara/primitive.h>

#include <nanobind/nanobind.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "library/table/value.h"

namespace nb = nanobind;

namespace capibara::python {

// ---- arrays ------------------------------------------------------------------------------------------------------

// The two classes behind jax.Array: arrays with values, and tracers.
struct ConcreteArray : Array {
  explicit ConcreteArray(Array array) : Array(std::move(array)) {}
};
struct TracerArray : Array {
  explicit TracerArray(Array array) : Array(std::move(array)) {}
};

nb::tuple int_tuple(std::span<const int64_t> integers);  // a shape, axes
nb::object wrap(const Array& array);
nb::object wrap(Array&& array);
nb::tuple wrap_all(const Arrays& arrays);
nb::object type_object(const ArrayType& type);  // jax's abstract value: ShapedArray, or AbstractToken
// Converts arrays, plain numbers, NumPy arrays and scalars, and objects with __jax_array__, __dlpack__ or __array__;
// empty for other objects, including lists.
std::optional<Array> array_if(nb::handle object);
// Like array_if, but raises TypeError "... is not a valid JAX type" for other objects.
Array to_array(nb::handle object, const char* operation);
bool is_number(nb::handle object);          // bool, int, float or complex
nb::object numpy_view(const Array& array);  // a read-only ndarray over the same memory
Array array_from_numpy(nb::handle array);   // copies
bool is_byte_swapped(nb::handle object);    // a NumPy array in the other byte order, which jax refuses
[[noreturn]] void refuse_swapped(nb::handle dtype);

// ---- dtypes ------------------------------------------------------------------------------------------------------

nb::object numpy_dtype(DType dtype);               // np.dtype, or the extended dtype of keys
std::optional<DType> dtype_if(nb::handle object);  // of a dtype object or scalar type, not of text
DType to_dtype(nb::handle object);                 // also of text and of Python's float, int, bool, complex

// ---- values of the library's table -------------------------------------------------------------------------------

library::Value to_value(nb::handle object);
nb::object from_value(const library::Value& value);

// Calls a function of the table by name.
library::Value call_library(const char* module, const char* name, const library::Values& leading);
nb::object library_function(std::string_view module, std::string_view name);  // the Python object; none where absent

// ---- errors ------------------------------------------------------------------------------------------------------

// Sets Python's current error from the exception being handled.
void set_current_error() noexcept;
[[noreturn]] void raise_python(const char* error_class, const std::string& text);  // a class of capibara._errors
nb::object error_class(const char* name);

// Runs the body of a type slot; a C++ exception becomes a Python error and a null result.
template <class Body>
PyObject* guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    set_current_error();
    return nullptr;
  }
}

// A Python object owned by the core: released with the GIL held, on whichever thread that happens.
class KeptObject {
 public:
  explicit KeptObject(nb::handle object) : object_(object.inc_ref().ptr()) {}
  KeptObject(const KeptObject&) = delete;
  KeptObject& operator=(const KeptObject&) = delete;
  ~KeptObject() {
    if (!Py_IsInitialized()) return;
    nb::gil_scoped_acquire lock;
    Py_DECREF(object_);
  }
  nb::handle get() const { return object_; }

 private:
  PyObject* object_;
};

// ---- the parts of the module -------------------------------------------------------------------------------------

void bind_exported(nb::module_& m);
void bind_foreign(nb::module_& m);
void bind_stablehlo(nb::module_& m);
void bind_sources(nb::module_& m);
void bind_errors(nb::module_& m);
void bind_dtypes(nb::module_& m);
void bind_arrays(nb::module_& m);
void bind_array_class(nb::module_& m);
void bind_functions(nb::module_& m);
void bind_trees(nb::module_& m);
void bind_transforms(nb::module_& m);
void bind_jit(nb::module_& m);
void bind_control(nb::module_& m);
void bind_custom(nb::module_& m);
void bind_programs(nb::module_& m);
void bind_primitives(nb::module_& m);
void bind_traces(nb::module_& m);
void bind_refs(nb::module_& m);
void bind_kde(nb::module_& m);
void bind_config(nb::module_& m);
void bind_devices(nb::module_& m);
void bind_placements(nb::module_& m);
void bind_processes(nb::module_& m);
void bind_topologies(nb::module_& m);
// Compiles for devices that are described but not present; its placements' platform begins with "topology:".
nb::object compile_for_topology(const std::string& platform, const std::vector<int>& devices, const std::string& text,
                                const std::string& what);
void bind_callbacks(nb::module_& m);
void bind_optimizers(nb::module_& m);
void bind_training(nb::module_& m);

}  // namespace capibara::python
