// Equations that call a kernel outside generated code: memory for their results, and the call.
#include "backends/cpu/driver/lowering.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/routines/routine.h"
#include "program/ir/handles.h"

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
  if (kernels_ && skips_unread(frame.program, equation)) {
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (equation.outputs[i].dropped()) types[i] = types[i].with_shape({0});
    }
  }
  const Results results = make_results(frame, equation, types);
  HostCall call = host_call(frame, equation, results);
  if (!kernels_) {
    lower_routine(equation, types, std::move(call));
    return release(results);
  }
  call.outputs = std::move(types);
  HostKernel kernel = host_kernel(equation.primitive, call.inputs, call.outputs, equation.attrs, call.constants);
  driver_->host(lowered_.add(std::move(kernel), equation), std::move(call.arguments));
  release(results);
}

// Emits the operation as a function of the module; if there is none, records the call, and no code can be generated.
void Lowering::lower_routine(const Equation& equation, const Types& outputs, HostCall call) {
  const bool in_place =
      !equation.inputs.empty() && outputs.size() == 1 && same(call.arguments[0].address, call.arguments.back().address);
  std::optional<Routine> routine = write_routine(equation.primitive, call.inputs, outputs, equation.attrs, in_place);
  if (!routine) {
    driver_->host(lowered_.add({}, equation), std::move(call.arguments));
    std::string& name = lowered_.kernel_names.back();
    if (equation.primitive == prim::custom_call()) name = concat(equation.attrs.text("call_target_name"), ", a ", name);
    for (std::size_t i = 0; i < call.inputs.size(); ++i)
      name += concat(i == 0 ? " of " : ", ", short_string(call.inputs[i].strong()));
    return;
  }
  if (in_place) call.arguments.erase(call.arguments.begin());
  for (const Array& table : routine->tables) {
    const auto equal = std::find_if(lowered_.constants.begin(), lowered_.constants.end(), [&](const Array& other) {
      return other.type() == table.type() &&
             std::memcmp(other.raw_data(), table.raw_data(), at(bytes_of(table.type()))) == 0;
    });
    call.arguments.push_back({{constant_buffer(equal == lowered_.constants.end() ? table : *equal), 0, {}}});
  }
  std::vector<std::pair<int64_t, int64_t>> scratch;  // offset and size in the arena
  std::size_t parameter = 0;
  for (const BufferInfo& buffer : routine->function.buffers) {
    if (buffer.local || parameter++ < call.arguments.size() - scratch.size()) continue;
    const Place place = in_arena(buffer.bytes);
    scratch.emplace_back(place.arena_offset, buffer.bytes);
    call.arguments.push_back({place.address});
  }
  driver_->invoke(function_number(std::move(routine->function)), std::move(call.arguments));
  for (const auto& [offset, bytes] : scratch) arena_.release(offset, bytes);
}

}  // namespace capibara::cpu
