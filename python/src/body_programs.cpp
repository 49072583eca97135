// The table of loop bodies and branches, keyed weakly by function: a closure's programs are freed with it.
#include "body_programs.h"

#include <capibara/config.h>
#include <capibara/jit.h>

#include <nanobind/stl/string.h>

#include "core/runtime/caches.h"
#include "program/trace/stage.h"
#include "program/trace/trace.h"

namespace capibara::python {

namespace {

struct BodyProgram {
  Program program;
  PyTree out;
};

// {function: {key: BodyProgram}}; created on first use, never freed.
nb::object& table() {
  static auto* own = [] {
    nb::class_<BodyProgram>(nb::module_::import_("capibara._core"), "_BodyProgram");
    on_clear_caches([] {
      nb::gil_scoped_acquire lock;
      table().attr("clear")();
    });
    return new nb::object(nb::module_::import_("weakref").attr("WeakKeyDictionary")());
  }();
  return *own;
}

// Only plain functions are remembered: callable objects and bound methods may hold other values at the next call.
bool is_plain_function(nb::handle function) { return PyFunction_Check(function.ptr()); }

std::string surroundings_key(std::span<const Array> leaves) {
  std::string text;
  for (const Array& leaf : leaves) text += concat(to_string(leaf.type()), leaf.weak_type() ? "*;" : ";");
  // The size of a named axis is a plain number while tracing and is not recorded in the program.
  for (std::shared_ptr<Trace> trace = current_trace(); trace; trace = trace->parent) {
    if (const std::string name = trace->bound_axis(); !name.empty())
      text += concat(name, "=", trace->axis_size(name).value_or(0), ";");
  }
  return text;
}

}  // namespace

FlatFunction remembered_body(nb::handle function, const char* purpose, const PyTree& in, const FlatFunction& traced,
                             PyTree* out) {
  if (!is_plain_function(function) || detail::jit_disabled()) return traced;
  return [function = nb::borrow(function), purpose, in, &traced, out](std::span<const Array> leaves) -> Arrays {
    const nb::tuple key = nb::make_tuple(purpose, nb::cast(in), surroundings_key(leaves), config_key());
    if (PyObject_Hash(key.ptr()) == -1) {
      PyErr_Clear();
      return traced(leaves);
    }
    nb::object programs = table().attr("get")(function);
    if (!programs.is_none()) {
      nb::handle found(PyDict_GetItemWithError(programs.ptr(), key.ptr()));
      if (found.is_valid()) {
        const BodyProgram body = nb::cast<const BodyProgram&>(found);
        if (out) *out = body.out;
        return evaluate_program(body.program, leaves);
      }
      if (PyErr_Occurred()) throw nb::python_error();
    }
    Types types;
    for (const Array& leaf : leaves) types.push_back(leaf.type());
    const Staged staged = stage(traced, types, function_name(function));
    Arrays inputs = staged.captured;
    inputs.insert(inputs.end(), leaves.begin(), leaves.end());
    if (staged.captured.empty() && staged.program.effects().axes.empty()) {
      if (programs.is_none()) programs = table().attr("setdefault")(function, nb::dict());
      programs[key] = nb::cast(BodyProgram{staged.program, out ? *out : PyTree()});
    }
    return evaluate_program(staged.program, inputs);
  };
}

}  // namespace capibara::python
