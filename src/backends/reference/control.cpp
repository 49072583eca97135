// Control flow on the reference backend: loops and branches, whose programs are interpreted.
#include "backends/reference/kernels.h"

#include "core/array/byte_count.h"
#include "program/ir/views.h"

#include <cstring>

namespace capibara::reference {

namespace {

Arrays run_jit(const KernelArgs& args) { return interpret(args.attrs.program("jaxpr"), args.inputs); }
Arrays run_call(const KernelArgs& args) { return interpret(args.attrs.program("call_jaxpr"), args.inputs); }

Arrays run_scan(const KernelArgs& args) {
  const ScanView loop(args.attrs);
  const std::size_t carry = loop.carry();
  const int64_t length = loop.length();
  Types slice_types = loop.body().input_types();

  Arrays operands(args.inputs.begin(), args.inputs.end());
  std::vector<Output> stacked;
  for (const ArrayType& type : loop.ys(args.output_types)) stacked.push_back(allocate(type));
  for (int64_t step = 0; step < length; ++step) {
    int64_t position = loop.reverse() ? length - 1 - step : step;
    for (std::size_t i = loop.first_xs(); i < operands.size(); ++i) {
      ArrayType type = slice_types[i];
      std::size_t bytes = byte_count(type);
      Output slice = allocate(type);
      std::memcpy(slice.data, args.inputs[i].raw_data() + static_cast<std::size_t>(position) * bytes, bytes);
      operands[i] = slice.array;
    }
    Arrays results = interpret(loop.body(), operands);
    for (std::size_t i = 0; i < carry; ++i) operands[loop.consts() + i] = results[i];
    for (std::size_t i = 0; i < stacked.size(); ++i) {
      std::size_t bytes = byte_count(results[carry + i].type());
      std::memcpy(stacked[i].data + static_cast<std::size_t>(position) * bytes, results[carry + i].raw_data(), bytes);
    }
  }
  const std::span<const Array> last = loop.carry(operands);
  Arrays outputs(last.begin(), last.end());
  for (const Output& output : stacked) outputs.push_back(output.array);
  return with_weak_types(std::move(outputs), args.output_types);
}

Arrays run_while(const KernelArgs& args) {
  const WhileView loop(args.attrs);
  const std::span<const Array> init = loop.carry(args.inputs);
  Arrays carry(init.begin(), init.end());
  auto call = [&carry](const Program& program, std::span<const Array> consts) {
    Arrays operands(consts.begin(), consts.end());
    operands.insert(operands.end(), carry.begin(), carry.end());
    return interpret(program, operands);
  };
  while (call(loop.condition(), loop.cond_consts(args.inputs))[0].item<bool>()) {
    carry = call(loop.body(), loop.body_consts(args.inputs));
  }
  return with_weak_types(std::move(carry), args.output_types);
}

Arrays run_cond(const KernelArgs& args) {
  const CondView view(args.attrs);
  const Program& chosen = view.branch(args.inputs[0].item<int64_t>());
  return with_weak_types(interpret(chosen, view.operands(args.inputs)), args.output_types);
}

Arrays run_name(const KernelArgs& args) { return {args.inputs[0]}; }

}  // namespace

KernelList control_kernels() {
  return {{"jit", run_jit},
          {"scan", run_scan},
          {"while", run_while},
          {"cond", run_cond},
          {"remat2", run_jit},
          {"call", run_call},
          {"closed_call", run_call},
          {"name", run_name},
          {"custom_jvp_call", run_call},
          {"custom_vjp_call", run_call},
          {"custom_vmap_call", run_call}};
}

}  // namespace capibara::reference
