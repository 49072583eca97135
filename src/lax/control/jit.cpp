// Calls of a nested program: jit, compiled once and shared by all its callers, and the plain calls of interpreters.
#include "lax/control/control.h"
#include "lax/sharding/factors.h"
#include "program/ir/handles.h"

#include <capibara/config.h>

#include "program/ir/memo.h"

#include <algorithm>

namespace capibara {

namespace {

Primitive jit() {
  static const Primitive instance = primitive("jit");
  return instance;
}

// The parameter that holds the called program, under JAX's name.
const char* program_attr(const Primitive& primitive) { return primitive == prim::jit() ? "jaxpr" : "call_jaxpr"; }

template <class Args>
const Program& called_by(const Args& args) {
  return args.attrs.program(program_attr(args.primitive));
}

// The same call as the transformed one, of a derived program.
template <class Args>
Arrays call(const Args& args, const Program& program, std::span<const Array> inputs) {
  return capibara::bind(args.primitive, inputs, args.attrs.with(program_attr(args.primitive), program));
}

JvpResult jvp_jit_call(const JvpArgs& args) {
  return jvp_of_call(called_by(args), args, [&](const Program& program, std::span<const Array> operands) {
    return call(args, program, operands);
  });
}

Arrays transpose_jit_call(const TransposeArgs& args) {
  Mask known = defined_mask(args.inputs);
  Mask nonzero = defined_mask(args.cotangents);
  TransposedProgram derived = transpose_program(called_by(args), !known, nonzero, false);
  Arrays operands = where(args.inputs, known);
  append(operands, where(args.cotangents, nonzero));
  Arrays results = spread(call(args, derived.program, operands), derived.nonzero_results);
  return spread(results, !known);
}

BatchResult batch_jit_call(const BatchArgs& args) {
  BatchedCall derived = batch_call(called_by(args), args.axis, args.dims, false);
  return {call(args, derived.program, args.inputs), derived.dims};
}

PartialEvalSplit split_call(const PartialEvalArgs& args) {
  const Program& program = called_by(args);
  ProgramSplit halves = args.policy ? partial_eval_program(program, args.unknown, {}, args.policy)
                                    : partial_eval_call(program, args.unknown);
  PartialEvalSplit split;
  split.unknown_outputs = halves.unknown_outputs;
  // A residual that is an input, or equal to a known output, is not returned a second time.
  std::size_t residuals = halves.residual_types.size();
  std::size_t constants = static_cast<std::size_t>(std::count_if(
      halves.residual_inputs.begin(), halves.residual_inputs.end(), [](int input) { return input < -1; }));
  std::size_t known_outputs = halves.known.outputs().size() - (residuals - constants);
  std::vector<int> returned;
  for (std::size_t i = 0; i < known_outputs; ++i) returned.push_back(static_cast<int>(i));
  std::vector<int> position(residuals, -1);  // in the outputs of the known call
  std::size_t next_output = known_outputs;
  for (std::size_t r = 0; r < residuals; ++r) {
    if (halves.residual_inputs[r] < -1) continue;
    std::size_t at = next_output++;
    if (halves.residual_inputs[r] >= 0) continue;
    Atom output = halves.known.outputs()[at];
    for (std::size_t i = 0; i < known_outputs && position[r] < 0; ++i) {
      if (halves.known.outputs()[i] == output) position[r] = static_cast<int>(i);
    }
    if (position[r] >= 0) continue;
    position[r] = static_cast<int>(returned.size());
    returned.push_back(static_cast<int>(at));
  }
  Program known_call = reorder_outputs(halves.known, returned);
  split.known = stage(
                    [&](std::span<const Array> inputs) {
                      Arrays all = call(args, known_call, inputs);
                      Arrays outputs = part(all, 0, known_outputs);
                      for (std::size_t r = 0; r < residuals; ++r) {
                        if (position[r] >= 0) outputs.push_back(all[static_cast<std::size_t>(position[r])]);
                        int input = halves.residual_inputs[r];
                        if (input < -1) outputs.push_back(program.constants()[static_cast<std::size_t>(-2 - input)]);
                      }
                      return outputs;
                    },
                    where(args.types, !args.unknown), "known")
                    .program;
  for (std::size_t r = 0; r < residuals; ++r) {
    if (position[r] >= 0 || halves.residual_inputs[r] < -1) {
      split.operands.push_back({true, split.residual_count++});
    } else {
      split.operands.push_back({false, halves.residual_inputs[r]});
    }
  }
  for (std::size_t i = 0; i < args.unknown.size(); ++i) {
    if (args.unknown[i]) split.operands.push_back({false, static_cast<int>(i)});
  }
  split.staged = stage([&](std::span<const Array> inputs) { return call(args, halves.staged, inputs); },
                       halves.staged.input_types(), "staged")
                     .program;
  return split;
}

// Calls of one program share the halves, which are thus printed and compiled once.
PartialEvalSplit partial_eval_jit_call(const PartialEvalArgs& args) {
  if (args.policy) return split_call(args);
  static Memo<PartialEvalSplit> memo;
  MemoKey key{called_by(args),       args.unknown,  {}, static_cast<int64_t>(args.attrs.hash()),
              args.primitive.name(), config().key()};
  return memo.get(key, [&] { return split_call(args); });
}

// The first program seen that is equal to this one, so that equal calls share one object.
Program interned(const Program& program) {
  static Memo<Program> first_met;
  return first_met.get({program, {}, {}}, [&] { return program; });
}

}  // namespace

Arrays call_program(const Program& program, std::span<const Array> inputs, const std::string& name) {
  return capibara::bind(jit(), inputs, {{"jaxpr", interned(program)}, {"name", name}});
}

namespace {

PrimitiveRecord nested_call_record(const char* name, const char* doc, const char* program_attr) {
  PrimitiveRecord record;
  record.name = name;
  record.factors = call_factors;
  record.localise = localise_call;
  record.doc = doc;
  record.traits.control = Control::call;
  record.traits.multiple_results = true;
  record.traits.called_program = program_attr;
  record.type = [name, program_attr](std::span<const ArrayType> types, const Attrs& attrs) {
    const Program& program = attrs.program(program_attr);
    check_operands(name, program, types);
    return TypeResult(program.output_types(), program.effects());
  };
  record.jvp = jvp_jit_call;
  record.transpose = transpose_jit_call;
  record.batch = batch_jit_call;
  record.partial_eval = partial_eval_jit_call;
  record.dce = dce_of_call(program_attr);
  return record;
}

PrimitiveRecord plain_call_record(const char* name, const char* doc, const char* symbol) {
  PrimitiveRecord record = nested_call_record(name, doc, "call_jaxpr");
  record.lower = [symbol](std::span<const Array> inputs, const Attrs& attrs) {
    return call_program(attrs.program("call_jaxpr"), inputs, symbol);
  };
  return record;
}

}  // namespace

std::vector<PrimitiveRecord> call_records() {
  PrimitiveRecord jit = nested_call_record("jit", "Calls a program.", "jaxpr");
  jit.stablehlo = "func.call";
  return {jit, plain_call_record("call", "Calls a program as it is, without a boundary of compilation.", "core_call"),
          plain_call_record("closed_call", "Calls a program that holds its constants.", "closed_call")};
}

}  // namespace capibara
