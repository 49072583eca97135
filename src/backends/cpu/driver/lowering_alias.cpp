// Aliases of memory; and the result of an exchange between processes, which is valid once it has been waited for.
#include "backends/cpu/driver/lowering.h"
#include "backends/cpu/kernels/exchange.h"

namespace capibara::cpu {

void Lowering::lower_alias(Frame& frame, const Group& group) {
  const Equation& equation = frame.program.equations()[at(group.results[0])];
  frame.place[at(equation.outputs[0].id)] = Place{address_of(frame, equation.inputs[0])};
  if (!(equation.primitive == exchange_wait())) return;
  HostCall call = host_call(frame, equation, {});
  HostKernel kernel = host_kernel(equation.primitive, call.inputs, call.outputs, equation.attrs, call.constants);
  driver_->host(lowered_.add(std::move(kernel), equation), std::move(call.arguments));
}

}  // namespace capibara::cpu
