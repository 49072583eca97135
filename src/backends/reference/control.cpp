// Control flow on the reference backend: loops and branches that interpret their programs.
#include "backends/reference/kernels.h"

#include "array/byte_count.h"

#include <cstring>

namespace capibara::reference {

namespace {

Arrays run_jit(const KernelArgs& args) { return interpret(args.attrs.program("jaxpr"), args.inputs); }
Arrays run_call(const KernelArgs& args) { return interpret(args.attrs.program("call_jaxpr"), args.inputs); }

// Values with the weak types that the equation promises: a branch or an empty loop may give others.
Arrays as_promised(Arrays values, const Types& types) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ArrayType& own = values[i].type();
    if (own.ref || own.weak_type == types[i].weak_type) continue;
    values[i] = Array::from_buffer(types[i], values[i].buffer(), values[i].committed());
  }
  return values;
}

Arrays run_scan(const KernelArgs& args) {
  const Program& body = args.attrs.program("jaxpr");
  std::size_t consts = static_cast<std::size_t>(args.attrs.integer("num_consts"));
  std::size_t carry = static_cast<std::size_t>(args.attrs.integer("num_carry"));
  int64_t length = args.attrs.integer("length");
  bool reverse = args.attrs.boolean("reverse");
  Types slice_types = body.input_types();

  Arrays operands(args.inputs.begin(), args.inputs.end());
  std::vector<Output> stacked;
  for (std::size_t i = carry; i < args.output_types.size(); ++i) stacked.push_back(allocate(args.output_types[i]));
  for (int64_t step = 0; step < length; ++step) {
    int64_t position = reverse ? length - 1 - step : step;
    for (std::size_t i = consts + carry; i < operands.size(); ++i) {
      ArrayType type = slice_types[i];
      std::size_t bytes = byte_count(type);
      Output slice = allocate(type);
      std::memcpy(slice.data, args.inputs[i].raw_data() + static_cast<std::size_t>(position) * bytes, bytes);
      operands[i] = slice.array;
    }
    Arrays results = interpret(body, operands);
    for (std::size_t i = 0; i < carry; ++i) operands[consts + i] = results[i];
    for (std::size_t i = 0; i < stacked.size(); ++i) {
      std::size_t bytes = byte_count(results[carry + i].type());
      std::memcpy(stacked[i].data + static_cast<std::size_t>(position) * bytes, results[carry + i].raw_data(), bytes);
    }
  }
  Arrays outputs(operands.begin() + static_cast<std::ptrdiff_t>(consts),
                 operands.begin() + static_cast<std::ptrdiff_t>(consts + carry));
  for (const Output& output : stacked) outputs.push_back(output.array);
  return as_promised(std::move(outputs), args.output_types);
}

Arrays run_while(const KernelArgs& args) {
  const Program& condition = args.attrs.program("cond_jaxpr");
  const Program& body = args.attrs.program("body_jaxpr");
  auto condition_consts = args.attrs.integer("cond_nconsts");
  auto body_consts = args.attrs.integer("body_nconsts");
  Arrays condition_operands(args.inputs.begin(), args.inputs.begin() + condition_consts);
  Arrays body_operands(args.inputs.begin() + condition_consts, args.inputs.begin() + condition_consts + body_consts);
  Arrays carry(args.inputs.begin() + condition_consts + body_consts, args.inputs.end());
  auto call = [&carry](const Program& program, Arrays operands) {
    operands.insert(operands.end(), carry.begin(), carry.end());
    return interpret(program, operands);
  };
  while (call(condition, condition_operands)[0].item<bool>()) carry = call(body, body_operands);
  return as_promised(std::move(carry), args.output_types);
}

Arrays run_cond(const KernelArgs& args) {
  std::vector<Program> branches = args.attrs.programs("branches");
  int64_t index = args.inputs[0].item<int64_t>();
  int64_t last = static_cast<int64_t>(branches.size()) - 1;
  index = index < 0 ? 0 : index > last ? last : index;
  return as_promised(interpret(branches[static_cast<std::size_t>(index)], args.inputs.subspan(1)), args.output_types);
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
