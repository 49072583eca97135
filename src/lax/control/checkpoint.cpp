// checkpoint: a program whose values are recomputed in the backward pass instead of being saved.
#include "lax/control/control.h"
#include "lax/elementwise/elementwise.h"
#include "lax/sharding/factors.h"
#include "lax/sharding/splits.h"
#include "program/derive/custom_rules.h"

#include <algorithm>

namespace capibara {

namespace {

Primitive remat() {
  static const Primitive instance = primitive("remat2");
  return instance;
}

Arrays bind_remat(const Program& program, std::span<const Array> inputs, const Attrs& attrs) {
  return capibara::bind(remat(), inputs, attrs.with("jaxpr", program));
}

JvpResult jvp_checkpoint(const JvpArgs& args) {
  return jvp_of_call(args.attrs.program("jaxpr"), args, [&](const Program& program, std::span<const Array> operands) {
    return bind_remat(program, operands, args.attrs);
  });
}

// Values that the policy accepts are saved; the rest of the known half is repeated in the staged one. Inside another
// checkpoint the outer policy decides, and the staged half offers the known outputs too.
PartialEvalSplit partial_eval_checkpoint(const PartialEvalArgs& args) {
  SavePolicy policy = [](const Primitive&, std::span<const ArrayType>, const Attrs&) { return false; };
  if (args.policy) {
    policy = *args.policy;
  } else if (!args.attrs["policy"].is_none()) {
    policy = args.attrs.opaque<Policy>("policy")->save;
  }
  const Program& whole = args.attrs.program("jaxpr");
  const Effects& effects = whole.effects();
  if (effects.has(Effects::io) || effects.has(Effects::ordered_io))
    throw NotImplementedError(
        "Effects not supported in partial-eval of `checkpoint`/`remat`: [IO]. A callback that runs again in the "
        "backward pass "
        "would not run exactly once.");
  ProgramSplit halves = args.policy ? partial_eval_offering(whole, args.unknown, {}, policy)
                                    : partial_eval_program(whole, args.unknown, {}, &policy);
  PartialEvalSplit split;
  split.unknown_outputs = halves.unknown_outputs;
  std::size_t residuals = halves.residual_types.size();
  std::size_t known_outputs = halves.known.outputs().size() - residuals;
  std::vector<int> returned;
  for (std::size_t i = 0; i < known_outputs; ++i) returned.push_back(static_cast<int>(i));
  // Saved values first, then the inputs that are needed, then the unknown inputs.
  std::vector<int> order;
  for (std::size_t r = 0; r < residuals; ++r) {
    if (halves.residual_inputs[r] >= 0) continue;
    split.operands.push_back({true, split.residual_count++});
    returned.push_back(static_cast<int>(known_outputs + r));
    order.push_back(static_cast<int>(r));
  }
  for (int i = 0; i < static_cast<int>(args.unknown.size()); ++i) {
    auto it = std::find(halves.residual_inputs.begin(), halves.residual_inputs.end(), i);
    if (it == halves.residual_inputs.end()) continue;
    split.operands.push_back({false, i});
    order.push_back(static_cast<int>(it - halves.residual_inputs.begin()));
  }
  for (std::size_t i = 0; i < args.unknown.size(); ++i) {
    if (!args.unknown[i]) continue;
    split.operands.push_back({false, static_cast<int>(i)});
    order.push_back(static_cast<int>(order.size()));
  }
  Program staged = reorder_inputs(halves.staged, order);
  Program known = reorder_outputs(halves.known, returned);
  split.known = dce_program(known, Mask(returned.size(), true), Mask(known.invars().size(), true)).program;
  split.staged = stage(
                     [&](std::span<const Array> inputs) {
                       return bind_remat(staged, inputs, args.attrs.with("differentiated", true));
                     },
                     staged.input_types(), "staged")
                     .program;
  return split;
}

// One program that recomputes the primal values and then runs the linear part backwards. The two are separated
// first: a loop may hold both.
Arrays transpose_checkpoint(const TransposeArgs& args) {
  Mask known = defined_mask(args.inputs);
  Mask nonzero = defined_mask(args.cotangents);
  const Program& program = args.attrs.program("jaxpr");
  ProgramSplit halves = partial_eval_program(program, !known, Mask(program.outputs().size(), true));
  std::size_t residuals = halves.residual_types.size();
  Arrays operands = where(args.inputs, known);
  std::size_t known_count = operands.size();
  append(operands, where(args.cotangents, nonzero));
  Types types;
  for (const Array& operand : operands) types.push_back(operand.type());
  Mask results;
  Program backward =
      stage(
          [&](std::span<const Array> in) {
            Arrays inputs = evaluate_program(halves.known, in.first(known_count));
            inputs.resize(halves.staged.invars().size());
            Mask is_linear(inputs.size(), true);
            std::fill(is_linear.begin(), is_linear.begin() + static_cast<std::ptrdiff_t>(residuals), false);
            Arrays all = backward_pass(halves.staged, is_linear, inputs, spread(in.subspan(known_count), nonzero));
            Arrays cotangents = part(all, residuals, all.size());
            results = defined_mask(cotangents);
            return where(cotangents, results);
          },
          types, program.name())
          .program;
  return spread(spread(bind_remat(backward, operands, args.attrs), results), !known);
}

BatchResult batch_checkpoint(const BatchArgs& args) {
  BatchedCall derived = batch_call(args.attrs.program("jaxpr"), args.axis, args.dims, true);
  return {bind_remat(derived.program, args.inputs, args.attrs), derived.dims};
}

}  // namespace

PrimitiveRecord checkpoint_record() {
  PrimitiveRecord record;
  record.name = "remat2";
  record.factors = call_factors;
  record.localise = localise_call;
  record.traits.control = Control::call;
  record.traits.multiple_results = true;
  record.traits.called_program = "jaxpr";
  record.doc = "Runs a program, and in the backward pass runs it again instead of keeping its values.";
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) {
    const Program& program = attrs.program("jaxpr");
    check_operands("checkpoint", program, types);
    return TypeResult(program.output_types(), program.effects());
  };
  record.jvp = jvp_checkpoint;
  record.transpose = transpose_checkpoint;
  record.batch = batch_checkpoint;
  record.partial_eval = partial_eval_checkpoint;
  record.dce = dce_of_call("jaxpr");
  // The barrier keeps the compiler from merging the recomputation with the first computation.
  record.lower = [](std::span<const Array> inputs, const Attrs& attrs) {
    Arrays operands(inputs.begin(), inputs.end());
    if (attrs.boolean("differentiated") && attrs.boolean("prevent_cse") && !operands.empty()) {
      operands = jax::lax::optimization_barrier(operands);
    }
    return call_program(attrs.program("jaxpr"), operands, "checkpoint");
  };
  return record;
}

PrimitiveRecord name_record() {
  PrimitiveRecord record;
  record.name = "name";
  record.factors = elementwise_factors;
  record.splits = same_splits;
  record.traits.moves = Moves::index;
  record.doc = "Gives a value a name that checkpoint policies can refer to.";
  record.type = [](std::span<const ArrayType> types, const Attrs&) {
    require_count("name", types, 1);
    return TypeResult(Types{types[0]});
  };
  record.jvp = [](const JvpArgs& args) {
    return JvpResult{capibara::bind(args.primitive, args.primals, args.attrs), {args.tangents[0]}};
  };
  record.batch = [](const BatchArgs& args) {
    return BatchResult{capibara::bind(args.primitive, args.inputs, args.attrs), {args.dims[0]}};
  };
  record.lower = [](std::span<const Array> inputs, const Attrs&) { return Arrays{inputs[0]}; };
  record.samples = elementwise::sample_calls(1, {}, {Attrs{{"name", "sample"}}});
  return record;
}

}  // namespace capibara
