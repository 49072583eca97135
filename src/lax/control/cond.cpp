// cond: runs one of several programs, chosen by an index.
//
// Operands are the index (int32, clamped) and the branches' operands.
#include <capibara/config.h>
#include <capibara/control.h>

#include "lax/control/control.h"
#include "lax/sharding/factors.h"
#include "program/ir/handles.h"

#include <map>

namespace capibara {

namespace {

namespace lax = jax::lax;

Arrays bind_cond(std::span<const Program> branches, std::span<const Array> operands) {
  return capibara::bind(prim::cond(), operands, CondView::attrs(branches));
}

TypeResult cond_type(std::span<const ArrayType> types, const Attrs& attrs) {
  std::vector<Program> branches = attrs.programs("branches");
  if (types.empty() || types[0].rank() != 0 || types[0].dtype != DType::int32) {
    throw TypeError(concat("cond: the index must be int32[], got ", types.empty() ? "nothing" : to_string(types[0])));
  }
  Effects effects;
  Types outputs = branches.at(0).output_types();
  for (std::size_t b = 0; b < branches.size(); ++b) {
    check_operands("cond branch", branches[b], types.subspan(1));
    Types own = branches[b].output_types();
    bool same = own.size() == outputs.size();
    for (std::size_t i = 0; same && i < own.size(); ++i) {
      same = own[i].shape == outputs[i].shape && own[i].dtype == outputs[i].dtype;
    }
    if (!same) {
      throw TypeError(
          concat("cond branches must have identical types: branch 0 and branch ", b, " return different types"));
    }
    effects.merge(branches[b].effects());
  }
  return TypeResult(std::move(outputs), std::move(effects));
}

JvpResult jvp_cond(const JvpArgs& args) {
  std::vector<Program> branches = args.attrs.programs("branches");
  Mask nonzero = defined_mask(args.tangents.subspan(1));
  std::size_t outputs = branches[0].outputs().size();
  Mask nonzero_outputs(outputs, false);
  for (const Program& branch : branches) {
    nonzero_outputs = either(nonzero_outputs, jvp_program(branch, nonzero).nonzero_outputs);
  }
  std::vector<Program> derived;
  for (const Program& branch : branches) derived.push_back(jvp_program(branch, nonzero, nonzero_outputs).program);
  Arrays operands(args.primals.begin(), args.primals.end());
  append(operands, where(args.tangents.subspan(1), nonzero));
  Arrays all = bind_cond(derived, operands);
  return {part(all, 0, outputs), spread(part(all, outputs, all.size()), nonzero_outputs)};
}

Arrays transpose_cond(const TransposeArgs& args) {
  std::vector<Program> branches = args.attrs.programs("branches");
  Mask known = defined_mask(args.inputs.subspan(1));
  Mask nonzero = defined_mask(args.cotangents);
  Mask results(count(!known), false);
  for (const Program& branch : branches) {
    results = either(results, transpose_program(branch, !known, nonzero, false).nonzero_results);
  }
  std::vector<int> kept;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i]) kept.push_back(static_cast<int>(i));
  }
  std::vector<Program> derived;
  for (const Program& branch : branches) {
    derived.push_back(reorder_outputs(transpose_program(branch, !known, nonzero, true).program, kept));
  }
  Arrays operands = {args.inputs[0]};
  append(operands, where(args.inputs.subspan(1), known));
  append(operands, where(args.cotangents, nonzero));
  Arrays all = {Array()};
  append(all, spread(spread(bind_cond(derived, operands), results), !known));
  return all;
}

// A mapped index: every branch runs on all lanes, and each lane selects its result.
BatchResult batch_by_select(const BatchArgs& args, const std::vector<Program>& branches) {
  for (const Program& branch : branches) {
    // Every lane runs every branch: side effects meant for some lanes cannot be undone.
    if (branch.effects().has(Effects::io) || branch.effects().has(Effects::ordered_io))
      throw NotImplementedError("IO effect not supported in vmap-of-cond.");
  }
  Array index = batch_at(args.inputs[0], args.dims[0], args.axis);
  Arrays inputs;
  for (std::size_t i = 1; i < args.inputs.size(); ++i)
    inputs.push_back(batch_at(args.inputs[i], args.dims[i], args.axis));
  auto spread_over = [](const Array& lanes, const Array& x) {
    const Sharding& split = x.type().sharding;
    return x.ndim() > 1 ? lax::broadcast_in_dim(lanes, x.shape(), {0}, split.is_explicit() ? split : Sharding())
                        : lanes;
  };
  std::size_t count = branches[0].outputs().size();
  std::vector<Arrays> results;
  for (std::size_t b = 0; b < branches.size(); ++b) {
    Arrays operands;
    Array chosen = lax::eq(index, scalar_of(DType::int32, static_cast<double>(b)));
    for (const Array& x : inputs) {
      // Lanes that do not take this branch see a copy cut off from derivatives, so that the branch's values there
      // cannot corrupt their gradients.
      Array cut = lax::stop_gradient(x);
      operands.push_back(lax::select_n(spread_over(chosen, x), {cut, x}));
    }
    BatchedProgram derived = batch_program(branches[b], args.axis, Mask(inputs.size(), true), Mask(count, true));
    results.push_back(evaluate_program(derived.program, operands));
  }
  BatchResult result;
  for (std::size_t i = 0; i < count; ++i) {
    Arrays cases;
    for (const Arrays& one : results) cases.push_back(one[i]);
    result.outputs.push_back(cases.size() == 1 ? cases[0] : lax::select_n(spread_over(index, cases[0]), cases));
    result.dims.push_back(0);
  }
  return result;
}

BatchResult batch_cond(const BatchArgs& args) {
  std::vector<Program> branches = args.attrs.programs("branches");
  if (args.mapped(0)) return batch_by_select(args, branches);
  Mask mapped = mapped_mask(args);
  Mask operand_mask = part(mapped, 1, mapped.size());
  Mask outputs(branches[0].outputs().size(), false);
  for (const Program& branch : branches) {
    outputs = either(outputs, batch_program(branch, args.axis, operand_mask).mapped_outputs);
  }
  std::vector<Program> derived;
  for (const Program& branch : branches) {
    derived.push_back(batch_program(branch, args.axis, operand_mask, outputs).program);
  }
  Arrays operands;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    operands.push_back(mapped[i] ? batch_at(args.inputs[i], args.dims[i], args.axis) : args.inputs[i]);
  }
  BatchResult result{bind_cond(derived, operands), {}};
  for (bool is_mapped : outputs) result.dims.push_back(is_mapped ? 0 : not_mapped);
  return result;
}

// Every branch must save residuals of the same types, so they share slots: the n-th residual of a type is stored in the
// n-th slot of that type, and a branch fills its unused slots.
struct Slots {
  Types types;
  std::vector<std::vector<int>> slot_of;  // [branch][residual]

  explicit Slots(std::span<const ProgramSplit> halves) {
    for (const ProgramSplit& half : halves) {
      std::map<std::string, std::size_t> seen;
      std::vector<int> slots;
      for (const ArrayType& type : half.residual_types) slots.push_back(slot(type.strong(), seen[to_string(type)]++));
      slot_of.push_back(std::move(slots));
    }
  }

 private:
  int slot(const ArrayType& type, std::size_t nth) {
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (types[i] == type && nth-- == 0) return static_cast<int>(i);
    }
    types.push_back(type);
    return static_cast<int>(types.size()) - 1;
  }
};

// The content of a slot that a branch does not use; it is never read.
Array empty_value(const ArrayType& type) {
  static const Primitive empty = primitive("empty2");
  Array scalar = capibara::bind(empty, {}, {{"dtype", type.dtype}, {"memory_space", "MemorySpace.Device"}})[0];
  return type.rank() == 0 ? scalar : lax::broadcast_in_dim(scalar, type.shape, {});
}

PartialEvalSplit partial_eval_cond(const PartialEvalArgs& args) {
  std::vector<Program> branches = args.attrs.programs("branches");
  PartialEvalSplit split;
  std::size_t outputs = branches[0].outputs().size();
  if (args.unknown[0]) {
    split.unknown_outputs.assign(outputs, true);
    for (std::size_t i = 0; i < args.types.size(); ++i) {
      split.operands.push_back({false, static_cast<int>(i)});
    }
    split.known =
        stage([](std::span<const Array>) { return Arrays{}; }, where(args.types, !args.unknown), "known").program;
    split.staged =
        stage([&](std::span<const Array> inputs) { return bind_cond(branches, inputs); }, args.types, "staged").program;
    return split;
  }
  Mask unknown = part(args.unknown, 1, args.unknown.size());
  Mask unknown_outputs(outputs, false);
  for (const Program& branch : branches) {
    unknown_outputs = either(unknown_outputs, partial_eval_program(branch, unknown, {}, args.policy).unknown_outputs);
  }
  std::vector<ProgramSplit> halves;
  for (const Program& branch : branches) {
    halves.push_back(args.policy ? partial_eval_offering(branch, unknown, unknown_outputs, *args.policy)
                                 : partial_eval_program(branch, unknown, unknown_outputs));
  }
  Slots slots(halves);

  std::vector<Program> known, staged;
  for (std::size_t b = 0; b < branches.size(); ++b) {
    const ProgramSplit& half = halves[b];
    std::size_t own = half.residual_types.size();
    known.push_back(stage(
                        [&](std::span<const Array> inputs) {
                          Arrays results = evaluate_program(half.known, inputs);
                          std::size_t count = results.size() - own;
                          Arrays filled(slots.types.size());
                          for (std::size_t r = 0; r < own; ++r)
                            filled[static_cast<std::size_t>(slots.slot_of[b][r])] = results[count + r];
                          results.resize(count);
                          for (std::size_t s = 0; s < filled.size(); ++s) {
                            Array filler = empty_value(slots.types[s]);
                            results.push_back(filled[s].defined() ? filled[s] : filler);
                          }
                          return results;
                        },
                        half.known.input_types(), branches[b].name())
                        .program);
    Types types = slots.types;
    Types in = half.staged.input_types();
    types.insert(types.end(), in.begin() + static_cast<std::ptrdiff_t>(own), in.end());
    staged.push_back(stage(
                         [&](std::span<const Array> inputs) {
                           Arrays operands;
                           for (int slot : slots.slot_of[b]) operands.push_back(inputs[static_cast<std::size_t>(slot)]);
                           append(operands, inputs.subspan(slots.types.size()));
                           return evaluate_program(half.staged, operands);
                         },
                         types, branches[b].name())
                         .program);
  }

  split.unknown_outputs = unknown_outputs;
  split.residual_count = static_cast<int>(slots.types.size());
  split.known = stage([&](std::span<const Array> inputs) { return bind_cond(known, inputs); },
                      where(args.types, !args.unknown), "known")
                    .program;
  split.operands.push_back({false, 0});
  for (int r = 0; r < split.residual_count; ++r) split.operands.push_back({true, r});
  for (std::size_t i = 1; i < args.unknown.size(); ++i) {
    if (args.unknown[i]) split.operands.push_back({false, static_cast<int>(i)});
  }
  Types staged_types = {args.types[0]};
  Types rest = staged[0].input_types();
  staged_types.insert(staged_types.end(), rest.begin(), rest.end());
  split.staged =
      stage([&](std::span<const Array> inputs) { return bind_cond(staged, inputs); }, staged_types, "staged").program;
  return split;
}

DceResult dce_cond(const Attrs& attrs, const Mask& used) {
  std::vector<Program> branches = attrs.programs("branches");
  Mask inputs(branches[0].invars().size(), false);
  for (const Program& branch : branches) inputs = either(inputs, dce_program(branch, used).used_inputs);
  std::vector<Program> pruned;
  for (const Program& branch : branches) pruned.push_back(dce_program(branch, used, inputs).program);
  return {join({{true}, inputs}), CondView::attrs(pruned), {}};
}

}  // namespace

PrimitiveRecord cond_record() {
  PrimitiveRecord record;
  record.name = "cond";
  record.factors = cond_factors;
  record.localise = localise_cond;
  record.traits.control = Control::cond;
  record.traits.multiple_results = true;
  record.doc = "Runs the branch that an index selects.";
  record.type = cond_type;
  record.jvp = jvp_cond;
  record.transpose = transpose_cond;
  record.batch = batch_cond;
  record.partial_eval = partial_eval_cond;
  record.dce = dce_cond;
  record.stablehlo = "stablehlo.case";
  return record;
}

}  // namespace capibara

namespace capibara::jax::lax::detail {

namespace {

// Named as users see them: cond runs false_fun for index 0.
std::string output_of(std::size_t branch, std::size_t count) {
  if (count == 2) return branch == 0 ? "the output of false_fun" : "the output of true_fun";
  return concat("the output of branch ", branch);
}

}  // namespace

Array predicate_index(const Array& predicate) {
  if (predicate.ndim() != 0) {
    throw TypeError(concat("Pred must be a scalar, got ", to_string(predicate.type()), " (argument 'pred' of cond)"));
  }
  Array truth = predicate;
  if (predicate.dtype() != DType::bool_) truth = ne(predicate, zeros(predicate.type()));
  return convert_element_type(truth, DType::int32);
}

Array branch_index(const Array& index, std::size_t count) {
  if (index.ndim() != 0) {
    throw TypeError(
        concat("Branch index must be a scalar, got ", to_string(index.type()), " (argument 'index' of switch)"));
  }
  if (!is_integer(index.dtype())) {
    throw TypeError(
        concat("Index type must be an integer, got ", to_string(index.type()), " (argument 'index' of switch)"));
  }
  Array as_int = convert_element_type(index, DType::int32);
  int32_t last = static_cast<int32_t>(count) - 1;
  return clamp(Array::from_host(DType::int32, {}, std::vector<int32_t>{0}.data()), as_int,
               Array::from_host(DType::int32, {}, &last));
}

Arrays cond_flat(const Array& index, const std::vector<FlatFunction>& branches, const Arrays& operands) {
  if (capibara::config().disable_jit && !index.is_tracer()) {
    return branches[static_cast<std::size_t>(index.item<int64_t>())](operands);
  }
  if (branches.size() == 1) return branches[0](operands);
  std::vector<Staged> staged;
  require_tracing_allowed("branch");
  for (const FlatFunction& branch : branches) staged.push_back(stage_open(branch, types_of(operands), "branch"));

  // All branches take the union of their captured values.
  Arrays captured;
  auto position = [&](const Array& value) {
    for (std::size_t i = 0; i < captured.size(); ++i) {
      if (captured[i].same_as(value)) return i;
    }
    captured.push_back(value);
    return captured.size() - 1;
  };
  std::vector<std::vector<std::size_t>> places;
  for (const Staged& one : staged) {
    places.emplace_back();
    for (const Array& value : one.captured) places.back().push_back(position(value));
  }
  Types types = types_of(captured);
  Types operand_types = types_of(operands);
  types.insert(types.end(), operand_types.begin(), operand_types.end());
  std::vector<Program> programs;
  Types outputs = staged[0].program.output_types();
  for (std::size_t b = 0; b < staged.size(); ++b) {
    Types own = staged[b].program.output_types();
    if (own.size() != outputs.size()) {
      throw TypeError(concat("cond branches must have identical types: branch 0 returns ", outputs.size(),
                             " values and branch ", b, " returns ", own.size()));
    }
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (same_type_and_axes(own[i], outputs[i])) continue;
      throw TypeError(concat("cond branches must have identical types, got branch 0 output ", i, " ",
                             to_string(outputs[i]), " and branch ", b, " output ", i, " ", to_string(own[i]),
                             pcast_hint(outputs[i], own[i], output_of(0, staged.size())),
                             pcast_hint(own[i], outputs[i], output_of(b, staged.size())),
                             staged.size() == 2 ? "; branch 1 is the one of a true predicate" : ""));
    }
    Program::Body body = staged[b].program.body();
    std::vector<Var> own_inputs = body.invars;
    body.invars.clear();
    for (std::size_t i = 0; i < captured.size(); ++i) {
      auto it = std::find(places[b].begin(), places[b].end(), i);
      if (it != places[b].end()) {
        body.invars.push_back(own_inputs[static_cast<std::size_t>(it - places[b].begin())]);
      } else {
        body.var_types.push_back(captured[i].type());
        body.invars.push_back(Var{static_cast<int32_t>(body.var_types.size()) - 1});
      }
    }
    body.invars.insert(body.invars.end(), own_inputs.begin() + static_cast<std::ptrdiff_t>(places[b].size()),
                       own_inputs.end());
    programs.push_back(Program(std::move(body)));
  }
  static const Primitive cond = primitive("cond");
  const Arrays inputs = joined(captured, operands);
  const std::vector<int> forwarded = forwarded_inputs(programs);
  std::vector<int> computed;
  for (std::size_t i = 0; i < forwarded.size(); ++i) {
    if (forwarded[i] < 0) computed.push_back(static_cast<int>(i));
  }
  for (Program& program : programs) program = reorder_outputs(program, computed);
  const Arrays results = capibara::bind(cond, joined(Arrays{index}, inputs), {{"branches", Attr::programs(programs)}});
  Arrays all;
  std::size_t next = 0;
  for (int input : forwarded) all.push_back(input < 0 ? results[next++] : inputs[static_cast<std::size_t>(input)]);
  return all;
}

}  // namespace capibara::jax::lax::detail
