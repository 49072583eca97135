// Functions of Python bound as equations of call and closed_call.
#include "function_calls.h"

#include "calls.h"
#include "program/ir/handles.h"
#include "program/trace/stage.h"
#include "program/trace/trace.h"

namespace capibara::python {

namespace {

bool builds_program() {
  for (std::shared_ptr<Trace> trace = current_trace(); trace; trace = trace->parent) {
    if (std::string_view(trace->kind()) == "jit") return true;
  }
  return false;
}

}  // namespace

bool calls_function(const Primitive& primitive) {
  return primitive == prim::call() || primitive == prim::closed_call();
}

nb::object bind_function(const Primitive& primitive, nb::tuple args, nb::handle functions) {
  if (nb::len(functions) != 1) {
    throw TypeError(concat(primitive.name(), ": subfuns must hold one function, got ", nb::len(functions)));
  }
  nb::object function = nb::object(functions[0]);
  if (!builds_program()) return nb::list(call_python(function, args));
  std::vector<nb::object> objects;
  PyTree in = flatten(nb::make_tuple(args, nb::dict()), objects), out;
  const char* name = primitive.name().c_str();
  Arrays leaves = to_arrays(objects, name);
  Types types;
  for (const Array& leaf : leaves) types.push_back(leaf.type());
  Staged staged = stage_open(flat_function(function, in, out, name), types, function_name(function));
  Arrays operands = staged.program.constants();
  operands.insert(operands.end(), staged.captured.begin(), staged.captured.end());
  operands.insert(operands.end(), leaves.begin(), leaves.end());
  const Attrs attrs{{"call_jaxpr", constants_to_inputs(staged.program)}};
  nb::list results;
  for (const Array& output : capibara::bind(primitive, operands, attrs)) results.append(wrap(output));
  return results;
}

}  // namespace capibara::python
