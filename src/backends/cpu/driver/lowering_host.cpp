// Equations that run on a kernel outside of generated code: memory of their results, and the call.
#include "backends/cpu/driver/lowering.h"
#include "backends/cpu/kernels/kernels.h"

namespace capibara::cpu {

Lowering::HostCall Lowering::host_call(Frame& frame, const Equation& equation, const Results& results) {
  HostCall call;
  for (Atom input : equation.inputs) {
    call.inputs.push_back(frame.program.type(input));
    call.arguments.push_back({address_of(frame, input)});
    const Address& place = call.arguments.back().address;
    call.constants.push_back(place.buffer >= constant_base && place.buffer < output_base && place.terms.empty());
  }
  call.outputs = equation.primitive->type(call.inputs, equation.attrs).types;
  for (const Address& place : results.places) call.arguments.push_back({place});
  return call;
}

void Lowering::lower_host(Frame& frame, const Equation& equation) {
  Types inputs;
  for (Atom input : equation.inputs) inputs.push_back(frame.program.type(input));
  Types types = equation.primitive->type(inputs, equation.attrs).types;
  if (skips_unread(frame.program, equation)) {
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (equation.outputs[i].dropped()) types[i] = types[i].with_shape({0});
    }
  }
  const Results results = make_results(frame, equation, types);
  HostCall call = host_call(frame, equation, results);
  call.outputs = std::move(types);
  HostKernel kernel = host_kernel(equation.primitive, call.inputs, call.outputs, equation.attrs, call.constants);
  driver_->host(lowered_.add(std::move(kernel), equation), std::move(call.arguments));
  release(results);
}

}  // namespace capibara::cpu
