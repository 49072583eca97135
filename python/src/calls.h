// Python functions as functions on leaves, the form that the core's transforms take.
#pragma once

#include <capibara/callable.h>

#include <functional>

#include "trees.h"

namespace capibara {
class SourceScope;
class Trace;
}  // namespace capibara

namespace capibara::python {

void bind_linear_functions(nb::module_& m);  // part of bind_transforms

std::string function_name(nb::handle function);

// Counts calls from programs back into Python, so that tests can check that there are none.
void count_host_call();
int64_t host_calls();

nb::object call_python(nb::handle function, nb::handle positional, nb::handle keywords = nb::handle());

// During its lifetime, errors of the current trace can name the traced Python function and its arguments.
class TracedCall {
 public:
  // `numbered` returns (args, kwargs) with each leaf replaced by its index; both arguments outlive this object.
  TracedCall(nb::handle function, const char* purpose, std::function<nb::object()> numbered = nullptr);
  TracedCall(nb::handle function, const char* purpose, const PyTree& args);  // no keyword arguments
  ~TracedCall();
  TracedCall(const TracedCall&) = delete;
  TracedCall& operator=(const TracedCall&) = delete;

 private:
  void open_scope();

  std::shared_ptr<Trace> trace_;  // null: the trace already has a function
  std::unique_ptr<SourceScope> scope_;
};

std::vector<nb::object> numbers(std::size_t count);  // 0, 1, 2...

// A function of positional and keyword arguments as a function of their leaves. `in` is the structure of (args,
// kwargs); `out` receives the structure of the result and must outlive every call.
FlatFunction flat_function(nb::handle function, const PyTree& in, PyTree& out, const char* operation);
// The same for positional arguments only; the core may keep the result beyond this call, so it owns its captures.
struct CallStructure {
  PyTree out;
};
FlatFunction kept_function(nb::handle function, const PyTree& in, std::shared_ptr<CallStructure> structure,
                           const char* operation);

// Converts the leaves of a function's result to arrays; the error for any other leaf names its path in `tree`.
Arrays result_arrays(nb::handle function, const PyTree& tree, const std::vector<nb::object>& objects,
                     const char* purpose);

// jax's class name for a traced array: BatchTracer, JVPTracer, DynamicJaxprTracer.
std::string tracer_kind(const Array& tracer);

// The type of a leaf: of an array or number, or of an object with shape and dtype.
ArrayType leaf_type(nb::handle leaf, const char* operation);
// ShapeDtypeStructs in the structure of `tree`.
nb::object shape_structs(const PyTree& tree, const Types& types);

// Splits a result that must be (value, auxiliary data).
std::pair<nb::object, nb::object> split_auxiliary(nb::handle result, const char* operation);

// Auxiliary data: leaves that are arrays go through the trace, others are kept unchanged.
class Auxiliary {
 public:
  void take(nb::handle data, Arrays& arrays);  // appends the array leaves
  nb::object rebuild(std::span<const Array> arrays) const;

 private:
  PyTree tree_;
  std::vector<nb::object> leaves_;
  std::vector<bool> is_array_;
};

// A function's result: the differentiated value, followed by auxiliary data with has_aux.
class SplitResult {
 public:
  explicit SplitResult(bool has_aux) : has_aux_(has_aux) {}

  // The leaves of both; those of the value come first.
  Arrays take(nb::object result, const char* operation) {
    nb::object value = result, rest;
    if (has_aux_) std::tie(value, rest) = split_auxiliary(result, operation);
    std::vector<nb::object> outputs;
    tree = flatten(value, outputs);
    main = outputs.size();
    Arrays all = to_arrays(outputs, operation);
    if (has_aux_) auxiliary_.take(rest, all);
    return all;
  }
  nb::object value(const Arrays& outputs) const {
    return unflatten_arrays(tree, std::span<const Array>(outputs).first(main));
  }
  nb::object auxiliary(const Arrays& outputs) const {
    return auxiliary_.rebuild(std::span<const Array>(outputs).subspan(main));
  }

  PyTree tree;           // of the value
  std::size_t main = 0;  // how many leaves the value has

 private:
  bool has_aux_;
  Auxiliary auxiliary_;
};

}  // namespace capibara::python
