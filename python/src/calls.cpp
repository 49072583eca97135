// Calling Python functions from the core's transforms.
#include "calls.h"

#include <capibara/ref.h>

#include <nanobind/stl/string.h>

#include <atomic>

#include "interpreter_lock.h"
#include "program/ir/source.h"
#include "program/trace/trace.h"
#include "ref_checks.h"

namespace capibara::python {

std::string function_name(nb::handle function) {
  if (nb::object name = nb::getattr(function, "__name__", nb::none()); !name.is_none()) {
    nb::object text = nb::steal(PyObject_Str(name.ptr()));  // __name__ may not be a string
    if (!text.is_valid()) throw nb::python_error();
    return nb::cast<std::string>(text);
  }
  if (nb::hasattr(function, "func")) return function_name(nb::object(function.attr("func")));
  return "<unnamed function>";
}

namespace {
std::atomic<int64_t> host_call_count{0};
}
void count_host_call() { host_call_count.fetch_add(1, std::memory_order_relaxed); }
int64_t host_calls() { return host_call_count.load(std::memory_order_relaxed); }

nb::object call_python(nb::handle function, nb::handle positional, nb::handle keywords) {
  nb::object arguments =
      PyTuple_Check(positional.ptr()) ? nb::borrow(positional) : nb::steal(PySequence_Tuple(positional.ptr()));
  PyObject* named = keywords.is_valid() && PyDict_Size(keywords.ptr()) > 0 ? keywords.ptr() : nullptr;
  nb::object result = nb::steal(or_stop([&] { return PyObject_Call(function.ptr(), arguments.ptr(), named); }));
  if (!result.is_valid()) throw nb::python_error();
  return result;
}

namespace {

// The code object of the user's function, below partial applications and wrappers; None if there is none.
nb::object code_of(nb::handle function) {
  nb::object inner = nb::borrow(function);
  for (int depth = 0; depth < 100; ++depth) {
    const bool plain = PyFunction_Check(inner.ptr());
    if (plain && !reinterpret_cast<PyFunctionObject*>(inner.ptr())->func_dict) break;
    nb::object next = nb::getattr(inner, "__wrapped__", nb::none());
    if (next.is_none() && !plain) next = nb::getattr(inner, "func", nb::none());
    if (next.is_none()) break;
    inner = next;
  }
  return nb::getattr(inner, "__code__", nb::none());
}

std::string place_of(nb::handle code) {
  return concat(nb::cast<std::string>(code.attr("co_name")), " at ", nb::cast<std::string>(code.attr("co_filename")),
                ":", nb::cast<int>(code.attr("co_firstlineno")));
}

// A function in errors: its name, and the line of its definition where it has one.
std::string described(nb::handle function) {
  nb::object code = code_of(function);
  return code.is_none() ? function_name(function) : place_of(code);
}

// The name that errors use for the purpose of a trace.
const char* purpose_of(std::string_view operation) {
  if (operation == "make_jaxpr" || operation == "eval_shape" || operation == "saved_residuals") return "jit";
  return operation == "checkpoint" ? "checkpoint / remat" : operation.data();
}

}  // namespace

TracedCall::TracedCall(nb::handle function, const char* purpose, std::function<nb::object()> numbered) {
  std::shared_ptr<Trace> trace = current_trace();
  if (!trace->parent || trace->function.text) return;
  trace_ = trace;
  open_scope();
  nb::object code = code_of(function);
  if (code.is_none()) {
    trace->function.text = [name = function_name(function)] { return name; };
  } else {
    // The code object, not the function: a leaked tracer must not keep the function's closure alive.
    trace->function.text = [kept = std::make_shared<KeptObject>(code)] {
      nb::gil_scoped_acquire lock;
      return place_of(kept->get());
    };
  }
  trace->function.purpose = purpose;
  if (!numbered) return;
  trace->function.argument = [function, numbered = std::move(numbered)](std::size_t position) {
    nb::gil_scoped_acquire lock;
    nb::object name = nb::module_::import_("capibara._origins").attr("argument_name");
    return nb::cast<std::string>(name(nb::borrow(function), numbered(), position));
  };
}

TracedCall::TracedCall(nb::handle function, const char* purpose, const PyTree& args)
    : TracedCall(function, purpose,
                 [&args] { return nb::make_tuple(args.unflatten(numbers(args.num_leaves())), nb::dict()); }) {}

// Starts a scope with an empty name under jit; other transformations wrap the current name: vmap(layer).
void TracedCall::open_scope() {
  const std::string_view kind = trace_->kind();
  SourceInfo info;
  if (kind != "jit") {
    info = source_info(current_scope());
    info.name_scope = joined_scope(info.name_scope, kind == "vmap" ? "vmap()" : "jvp()");  // or linearize, which is jvp
  }
  scope_ = std::make_unique<SourceScope>(info.name_scope.empty() ? Source{} : intern(info));
}

TracedCall::~TracedCall() {
  if (trace_) trace_->function.argument = nullptr;
}

std::vector<nb::object> numbers(std::size_t count) {
  std::vector<nb::object> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(nb::int_(i));
  return all;
}

Arrays result_arrays(nb::handle function, const PyTree& tree, const std::vector<nb::object>& objects,
                     const char* purpose) {
  Arrays arrays;
  arrays.reserve(objects.size());
  for (std::size_t i = 0; i < objects.size(); ++i) {
    try {
      arrays.push_back(to_operand(objects[i], purpose));
    } catch (const TypeError&) {
      nb::object at =
          nb::module_::import_("capibara._origins").attr("result_place")(tree.unflatten(numbers(tree.num_leaves())), i);
      throw TypeError(concat("function ", described(function), " traced for ", purpose, " returned a value of type ",
                             nb::cast<std::string>(nb::str(objects[i].type())), nb::cast<std::string>(at),
                             ", which is not a valid JAX type"));
    }
  }
  return arrays;
}

void refuse_returned_refs(nb::handle function, const char* purpose, nb::handle result, std::span<const Array> inputs) {
  std::vector<nb::object> objects;
  const PyTree tree = flatten(result, objects);
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (!nb::isinstance<jax::Ref>(objects[i])) continue;
    const Array ref = nb::cast<const jax::Ref&>(objects[i]).handle();
    nb::object at = nb::module_::import_("capibara._origins")
                        .attr("result_place")(tree.unflatten(numbers(tree.num_leaves())), i, "tree path result");
    std::string origin;
    const std::shared_ptr<Trace> trace = current_trace();
    for (std::size_t k = 0; k < inputs.size() && trace->function.argument; ++k) {
      if (inputs[k].same_as(ref)) origin = concat("was passed in as the argument ", trace->function.argument(k));
    }
    const Trace* owner = ref.body()->trace();
    const std::string line = owner ? owner->line_of(*ref.body()) : "";
    if (origin.empty() && !line.empty()) origin = "was created on line " + line;
    throw ValueError(concat("function ", described(function), " traced for ", purpose,
                            " returned a mutable array reference of type ", to_string(ref.type()),
                            nb::cast<std::string>(at), ", but mutable array references cannot be returned.",
                            origin.empty() ? "" : concat("\n\nThe returned mutable array ", origin, ".")));
  }
}

void refuse_shared_refs(nb::handle function, const char* purpose, std::span<const Array> leaves,
                        std::span<const Array> captured, const std::function<nb::object()>& numbered) {
  const auto name = [&](std::size_t i) {
    nb::object argument = nb::module_::import_("capibara._origins").attr("argument_name");
    return nb::cast<std::string>(argument(nb::borrow(function), numbered(), i));
  };
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (!leaves[i].type().ref) continue;
    for (std::size_t k = 0; k < i; ++k) {
      if (!leaves[k].same_as(leaves[i])) continue;
      throw ValueError(
          concat("only one reference to a mutable array may be passed as an argument to a function, but "
                 "when tracing ",
                 described(function), " for ", purpose, " the mutable array reference of type ",
                 to_string(leaves[i].type()), " appeared at both ", name(k), " and ", name(i), "."));
    }
    for (const Array& one : captured) {
      if (!one.same_as(leaves[i])) continue;
      throw ValueError(concat("when tracing ", described(function), " for ", purpose,
                              ", a mutable array reference of type ", to_string(leaves[i].type()),
                              " was both closed over and passed as the argument ", name(i)));
    }
  }
}

std::string tracer_kind(const Array& tracer) {
  const std::string_view kind = tracer.body()->trace()->kind();
  if (kind == "vmap") return "BatchTracer";
  if (kind == "jvp") return "JVPTracer";
  return "DynamicJaxprTracer";
}

FlatFunction flat_function(nb::handle function, const PyTree& in, PyTree& out, const char* operation) {
  return [function, &in, &out, operation](std::span<const Array> leaves) {
    nb::gil_scoped_acquire lock;
    TracedCall traced(function, purpose_of(operation), [&] { return in.unflatten(numbers(in.num_leaves())); });
    nb::object both = unflatten_arrays(in, leaves);
    nb::object result = call_python(function, nb::object(both[0]), nb::object(both[1]));
    const std::string_view purpose = purpose_of(operation);
    if (purpose == "jit" || purpose == "checkpoint / remat")
      refuse_returned_refs(function, purpose.data(), result, leaves);
    std::vector<nb::object> objects;
    out = flatten(result, objects);
    return result_arrays(function, out, objects, purpose_of(operation));
  };
}

FlatFunction kept_function(nb::handle function, const PyTree& in, std::shared_ptr<CallStructure> structure,
                           const char* operation) {
  auto kept = std::make_shared<KeptObject>(function);
  auto tree = std::make_shared<KeptObject>(nb::cast(in));
  return [kept, tree, structure, operation](std::span<const Array> leaves) {
    nb::gil_scoped_acquire lock;
    const PyTree& in = nb::cast<const PyTree&>(tree->get());
    TracedCall traced(kept->get(), purpose_of(operation), in);
    nb::object result = call_python(kept->get(), unflatten_arrays(in, leaves));
    std::vector<nb::object> objects;
    structure->out = flatten(result, objects);
    return to_arrays(objects, operation);
  };
}

ArrayType leaf_type(nb::handle leaf, const char* operation) {
  if (nb::isinstance<jax::Ref>(leaf)) return nb::cast<const jax::Ref&>(leaf).handle().type();
  if (std::optional<Array> array = array_if(leaf)) return array->type();
  if (nb::isinstance<ArrayType>(leaf)) return nb::cast<ArrayType>(leaf);
  if (!nb::hasattr(leaf, "shape") || !nb::hasattr(leaf, "dtype")) return to_array(leaf, operation).type();
  ArrayType type;
  for (nb::handle size : leaf.attr("shape")) type.shape.push_back(nb::cast<int64_t>(size));
  type.dtype = to_dtype(leaf.attr("dtype"));
  if (nb::hasattr(leaf, "weak_type")) type.weak_type = nb::cast<bool>(nb::bool_(leaf.attr("weak_type")));
  return type;
}

nb::object shape_structs(const PyTree& tree, const Types& types) {
  nb::object make = nb::module_::import_("capibara._types").attr("ShapeDtypeStruct");
  std::vector<nb::object> leaves;
  for (const ArrayType& type : types) {
    if (type.dtype == DType::token) {
      leaves.push_back(type_object(type));
      continue;
    }
    nb::object sharding = type.sharding.is_explicit() ? type_object(type).attr("sharding") : nb::none();
    leaves.push_back(make(int_tuple(type.shape), numpy_dtype(type.dtype), nb::arg("weak_type") = type.weak_type,
                          nb::arg("sharding") = sharding));
  }
  return tree.unflatten(leaves);
}

std::pair<nb::object, nb::object> split_auxiliary(nb::handle result, const char* operation) {
  if (!PyTuple_Check(result.ptr()) && !PyList_Check(result.ptr())) {
    throw TypeError(concat("expected function with aux output to return a two-element tuple, but got type ",
                           nb::cast<std::string>(nb::str(result.type())), " with value ",
                           nb::cast<std::string>(nb::repr(result)), " (", operation, ")"));
  }
  if (nb::len(result) != 2) {
    throw TypeError(concat(
        operation, ": expected function with aux output to return a two-element tuple, but got a sequence of length ",
        nb::len(result)));
  }
  return {nb::borrow(result[0]), nb::borrow(result[1])};
}

void Auxiliary::take(nb::handle data, Arrays& arrays) {
  leaves_.clear();
  is_array_.clear();
  tree_ = flatten(data, leaves_);
  for (const nb::object& leaf : leaves_) {
    std::optional<Array> array;
    if (nb::isinstance<Array>(leaf)) array = nb::cast<Array>(leaf);
    is_array_.push_back(array.has_value());
    if (array) arrays.push_back(*array);
  }
}

nb::object Auxiliary::rebuild(std::span<const Array> arrays) const {
  std::vector<nb::object> leaves = leaves_;
  std::size_t next = 0;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (is_array_[i]) leaves[i] = wrap(arrays[next++]);
  }
  return tree_.unflatten(leaves);
}

}  // namespace capibara::python
