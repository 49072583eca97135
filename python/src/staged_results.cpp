// Results of library functions inside jit: arrays that they create become part of the program.
#include "staged_results.h"

#include <algorithm>

#include "bindings.h"
#include "program/trace/known_values.h"

namespace capibara::python {

namespace {

// True if an array is one of the arguments, or in a sequence among them.
bool is_among(const Array& array, std::span<PyObject* const> objects) {
  for (PyObject* object : objects) {
    if (nb::isinstance<Array>(object)) {
      if (nb::cast<const Array&>(nb::handle(object)).body() == array.body()) return true;
    } else if (PyTuple_Check(object) || PyList_Check(object)) {
      const auto size = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(object));
      if (is_among(array, std::span<PyObject* const>(PySequence_Fast_ITEMS(object), size))) return true;
    }
  }
  return false;
}

bool has_known_array(const library::Value& value) {
  if (const Array* array = value.array()) return array->defined() && !array->is_tracer();
  const library::Sequence* sequence = value.sequence();
  return sequence && std::any_of(sequence->items.begin(), sequence->items.end(), has_known_array);
}

}  // namespace

library::Value staged(library::Value result, std::span<PyObject* const> arguments) {
  if (!has_known_array(result)) return result;
  if (const Array* array = result.array()) return is_among(*array, arguments) ? *array : stage_value(*array);
  library::Sequence sequence = *result.sequence();
  for (library::Value& item : sequence.items) item = staged(std::move(item), arguments);
  return sequence;
}

}  // namespace capibara::python
