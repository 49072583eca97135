// jit: the call of a nested program, compiled once and shared by all its callers.
#include "primitives/control.h"

namespace capibara {

namespace {

Primitive jit() {
  static const Primitive instance = primitive("jit");
  return instance;
}

Arrays call(const Program& program, std::span<const Array> inputs, const Attrs& attrs) {
  return capibara::bind(jit(), inputs, attrs.with("jaxpr", program));
}

JvpResult jvp(const JvpArgs& args) {
  const Program& program = args.attrs.program("jaxpr");
  Mask nonzero = defined_mask(args.tangents);
  JvpProgram derived = jvp_program(program, nonzero);
  Arrays operands(args.primals.begin(), args.primals.end());
  append(operands, where(args.tangents, nonzero));
  Arrays outputs = call(derived.program, operands, args.attrs);
  std::size_t count = program.outputs().size();
  return {part(outputs, 0, count), spread(part(outputs, count, outputs.size()), derived.nonzero_outputs)};
}

Arrays transpose(const TransposeArgs& args) {
  Mask known = defined_mask(args.inputs);
  Mask nonzero = defined_mask(args.cotangents);
  TransposedProgram derived = transpose_program(args.attrs.program("jaxpr"), !known, nonzero, false);
  Arrays operands = where(args.inputs, known);
  append(operands, where(args.cotangents, nonzero));
  Arrays results = spread(call(derived.program, operands, args.attrs), derived.nonzero_results);
  return spread(results, !known);
}

BatchResult batch(const BatchArgs& args) {
  Mask mapped = mapped_mask(args);
  BatchedProgram derived = batch_program(args.attrs.program("jaxpr"), args.axis, mapped);
  Arrays operands;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    operands.push_back(mapped[i] ? batch_at(args.inputs[i], args.dims[i], args.axis.size) : args.inputs[i]);
  }
  BatchResult result{call(derived.program, operands, args.attrs), {}};
  for (bool is_mapped : derived.mapped_outputs) result.dims.push_back(is_mapped ? 0 : not_mapped);
  return result;
}

PartialEvalSplit partial_eval(const PartialEvalArgs& args) {
  ProgramSplit halves = partial_eval_program(args.attrs.program("jaxpr"), args.unknown, {}, args.policy);
  PartialEvalSplit split;
  split.unknown_outputs = halves.unknown_outputs;
  // A residual that is an input, or equal to a known output, is not returned a second time.
  std::size_t residuals = halves.residual_types.size();
  std::size_t known_outputs = halves.known.outputs().size() - residuals;
  std::vector<int> returned;
  for (std::size_t i = 0; i < known_outputs; ++i) returned.push_back(static_cast<int>(i));
  std::vector<int> position(residuals, -1);  // in the outputs of the known call
  for (std::size_t r = 0; r < residuals; ++r) {
    if (halves.residual_inputs[r] >= 0) continue;
    Atom output = halves.known.outputs()[known_outputs + r];
    for (std::size_t i = 0; i < known_outputs && position[r] < 0; ++i) {
      if (halves.known.outputs()[i] == output) position[r] = static_cast<int>(i);
    }
    if (position[r] >= 0) continue;
    position[r] = static_cast<int>(returned.size());
    returned.push_back(static_cast<int>(known_outputs + r));
  }
  Program known_call = reorder_outputs(halves.known, returned);
  Types known_types;
  for (std::size_t i = 0; i < args.types.size(); ++i) {
    if (!args.unknown[i]) known_types.push_back(args.types[i]);
  }
  split.known = stage(
      [&](std::span<const Array> inputs) {
        Arrays all = call(known_call, inputs, args.attrs);
        Arrays outputs = part(all, 0, known_outputs);
        for (std::size_t r = 0; r < residuals; ++r) {
          if (position[r] >= 0) outputs.push_back(all[static_cast<std::size_t>(position[r])]);
        }
        return outputs;
      },
      known_types, "known").program;
  for (std::size_t r = 0; r < residuals; ++r) {
    if (position[r] >= 0) {
      split.operands.push_back({true, split.residual_count++});
    } else {
      split.operands.push_back({false, halves.residual_inputs[r]});
    }
  }
  for (std::size_t i = 0; i < args.unknown.size(); ++i) {
    if (args.unknown[i]) split.operands.push_back({false, static_cast<int>(i)});
  }
  split.staged = stage([&](std::span<const Array> inputs) { return call(halves.staged, inputs, args.attrs); },
                       halves.staged.input_types(), "staged").program;
  return split;
}

}  // namespace

Arrays call_program(const Program& program, std::span<const Array> inputs, const std::string& name) {
  return capibara::bind(jit(), inputs, {{"jaxpr", program}, {"name", name}});
}

PrimitiveRecord jit_record() {
  PrimitiveRecord record;
  record.name = "jit";
  record.doc = "Calls a program.";
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) {
    const Program& program = attrs.program("jaxpr");
    check_operands("jit", program, types);
    return TypeResult(program.output_types(), program.effects());
  };
  record.jvp = jvp;
  record.transpose = transpose;
  record.batch = batch;
  record.partial_eval = partial_eval;
  record.dce = [](const Attrs& attrs, const Mask& used) {
    DceProgram pruned = dce_program(attrs.program("jaxpr"), used);
    return DceResult{pruned.used_inputs, attrs.with("jaxpr", pruned.program), {}};
  };
  record.stablehlo = "func.call";
  return record;
}

}  // namespace capibara
