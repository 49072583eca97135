// Checks lowerings of user primitives, and substitutes callbacks for missing ones.
#include "primitive_lowering.h"

#include <capibara/callback.h>

#include "calls.h"
#include "core/runtime/warning.h"
#include "interpreter_lock.h"

namespace capibara::python {

Types types_of(std::span<const Array> inputs) {
  Types types;
  for (const Array& input : inputs) types.push_back(input.type());
  return types;
}

void check_lowered(const std::string& name, const Arrays& outputs, const Types& promised) {
  if (outputs.size() != promised.size())
    throw TypeError(concat("lowering of '", name, "': its abstract evaluation promises ", promised.size(),
                           " results, got ", outputs.size()));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].shape() == promised[i].shape && outputs[i].dtype() == promised[i].dtype) continue;
    throw TypeError(concat("lowering of '", name, "': its abstract evaluation promises ", to_string(promised[i]),
                           " for result ", i, ", got ", to_string(outputs[i].type())));
  }
}

Arrays call_from_program(const Uncompiled& primitive, const TypeResult& promised, const EvaluateRule& evaluate,
                         std::span<const Array> inputs, const Attrs& attrs) {
  if (!primitive.warned.exchange(true)) {
    warn(concat("primitive '", primitive.name,
                "' is a call of Python in compiled programs, in every iteration of a loop: ", primitive.reason,
                "; give it one by mlir.register_lowering(primitive, mlir.lower_fun(function))"));
  }
  Types types;
  for (const ArrayType& type : promised.types) types.push_back(type.strong());
  const jax::HostFunction function = [evaluate, attrs](const Arrays& values) {
    const InterpreterLock lock;
    count_host_call();
    return evaluate(values, attrs);
  };
  const Arrays operands(inputs.begin(), inputs.end());
  if (promised.effects.empty()) return jax::pure_callback(function, types, operands, {.name = primitive.name});
  return jax::io_callback(function, types, operands, {.name = primitive.name});
}

}  // namespace capibara::python
