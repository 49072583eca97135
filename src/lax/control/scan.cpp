// scan: a loop of known length that carries values and stacks outputs.
#include "lax/control/control.h"
#include "lax/sharding/factors.h"
#include "program/ir/explicit_types.h"
#include "program/ir/handles.h"

#include <algorithm>

namespace capibara {

namespace {

Arrays bind_scan(const Attrs& attrs, const Program& body, std::size_t consts, std::size_t carry,
                 std::span<const Array> operands) {
  return capibara::bind(prim::scan(), operands, ScanView(attrs).with(body, consts, carry));
}

TypeResult type_rule(std::span<const ArrayType> types, const Attrs& attrs) {
  ScanView loop(attrs);
  int64_t length = loop.length();
  Types slices(types.begin(), types.end());
  if (types.size() != loop.body().invars().size()) {
    throw TypeError(concat("scan: the body takes ", loop.body().invars().size(), " operands, got ", types.size()));
  }
  for (std::size_t i = loop.first_xs(); i < slices.size(); ++i) {
    if (slices[i].shape.empty() || slices[i].shape[0] != length) {
      throw ValueError(concat("scan: xs ", i - loop.first_xs(), " must have leading dimension ", length, ", got ",
                              to_string(slices[i])));
    }
    slices[i] = without_dimension(std::move(slices[i]), 0);
  }
  check_operands("scan", loop.body(), slices);
  Types outputs = loop.body().output_types();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (i >= loop.carry()) {
      outputs[i] = with_dimension(std::move(outputs[i]), 0, length);
    } else if (outputs[i].shape != slices[loop.consts() + i].shape ||
               outputs[i].dtype != slices[loop.consts() + i].dtype) {
      throw TypeError(
          concat("scan body function carry input and carry output must have equal types, but they differ: ", "carry ",
                 i, " enters as ", to_string(slices[loop.consts() + i]), " and leaves as ", to_string(outputs[i])));
    }
  }
  return TypeResult(std::move(outputs), loop.body().effects());
}

JvpResult jvp_scan(const JvpArgs& args) {
  ScanView loop(args.attrs);
  Mask nonzero = defined_mask(args.tangents);
  Mask consts = loop.consts(nonzero), carry = loop.carry(nonzero), xs = loop.xs(nonzero);
  JvpProgram derived;
  // A carry becomes nonzero when the body makes it nonzero; at most one round per carry.
  for (;;) {
    derived = jvp_program(loop.body(), join({consts, carry, xs}), join({carry, Mask(loop.ys(), false)}));
    Mask out = loop.last_carry(derived.nonzero_outputs);
    if (out == carry) break;
    carry = either(carry, out);
  }
  Mask ys = loop.ys(derived.nonzero_outputs);

  // The derived body takes all primals, then all tangents; the loop needs each role's tangents after its primals.
  std::vector<int> order;
  int tangent = static_cast<int>(nonzero.size());
  int primal = 0;
  for (const Mask& mask : {consts, carry, xs}) {
    for (std::size_t i = 0; i < mask.size(); ++i) order.push_back(primal++);
    for (bool bit : mask) {
      if (bit) order.push_back(tangent++);
    }
  }
  std::vector<int> outputs;
  tangent = static_cast<int>(loop.carry() + loop.ys());
  primal = 0;
  for (const Mask& mask : {carry, ys}) {
    for (std::size_t i = 0; i < mask.size(); ++i) outputs.push_back(primal++);
    for (bool bit : mask) {
      if (bit) outputs.push_back(tangent++);
    }
  }
  Program body = reorder_outputs(reorder_inputs(derived.program, order), outputs);

  Arrays tangents(args.tangents.begin(), args.tangents.end());
  for (std::size_t i = 0; i < loop.carry(); ++i) {
    if (carry[i])
      tangents[loop.consts() + i] = instantiate(tangents[loop.consts() + i], args.primals[loop.consts() + i].type());
  }
  Arrays operands;
  append(operands, loop.consts(args.primals));
  append(operands, where(loop.consts(tangents), consts));
  append(operands, loop.carry(args.primals));
  append(operands, where(loop.carry(tangents), carry));
  append(operands, loop.xs(args.primals));
  append(operands, where(loop.xs(tangents), xs));
  Arrays all = bind_scan(args.attrs, body, loop.consts() + count(consts), loop.carry() + count(carry), operands);

  JvpResult result;
  std::size_t split = loop.carry() + count(carry);
  Arrays carries = part(all, 0, split), stacked = part(all, split, all.size());
  append(result.primals, part(carries, 0, loop.carry()));
  append(result.primals, part(stacked, 0, loop.ys()));
  append(result.tangents, spread(part(carries, loop.carry(), carries.size()), carry));
  append(result.tangents, spread(part(stacked, loop.ys(), stacked.size()), ys));
  return result;
}

BatchResult batch_scan(const BatchArgs& args) {
  ScanView loop(args.attrs);
  Mask mapped = mapped_mask(args);
  Mask consts = loop.consts(mapped), carry = loop.carry(mapped), xs = loop.xs(mapped);
  BatchedProgram derived;
  for (;;) {
    derived = batch_program(loop.body(), args.axis, join({consts, carry, xs}), join({carry, Mask(loop.ys(), false)}));
    Mask out = loop.last_carry(derived.mapped_outputs);
    if (out == carry) break;
    carry = either(carry, out);
  }
  Arrays operands;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    bool is_carry = i >= loop.consts() && i < loop.first_xs();
    bool is_xs = i >= loop.first_xs();
    bool wanted = is_carry ? carry[i - loop.consts()] : mapped[i];
    operands.push_back(wanted ? batch_at(args.inputs[i], args.dims[i], args.axis, is_xs ? 1 : 0) : args.inputs[i]);
  }
  BatchResult result{bind_scan(args.attrs, derived.program, loop.consts(), loop.carry(), operands), {}};
  for (std::size_t i = 0; i < derived.mapped_outputs.size(); ++i) {
    result.dims.push_back(derived.mapped_outputs[i] ? (i < loop.carry() ? 0 : 1) : not_mapped);
  }
  return result;
}

// The origin of a residual of the known loop: an invariant (const or computed from consts), a slice of xs, or a new
// stacked output.
struct Residual {
  enum Kind { constant, slice, hoisted, stacked } kind;
  int index;
};

// Under a policy the staged loop recomputes the known carries along with the unknown ones, and reads from stacks only
// what the policy lets the known loop save. It yields the known outputs too, for a staged half that needs them.
PartialEvalSplit partial_eval_with_policy(const PartialEvalArgs& args) {
  ScanView loop(args.attrs);
  Mask consts = loop.consts(args.unknown), carry = loop.carry(args.unknown), xs = loop.xs(args.unknown), unknown_ys;
  for (;;) {
    ProgramSplit halves =
        partial_eval_program(loop.body(), join({consts, carry, xs}), join({carry, Mask(loop.ys(), false)}));
    Mask out = loop.last_carry(halves.unknown_outputs);
    unknown_ys = loop.ys(halves.unknown_outputs);
    if (out == carry) break;
    carry = either(carry, out);
  }
  // Outputs of the doubled body: all of them for the staged loop, then those for the known loop.
  const Mask unknown_outputs = join({carry, unknown_ys});
  std::vector<int> doubled;
  for (std::size_t i = 0; i < unknown_outputs.size(); ++i) doubled.push_back(static_cast<int>(i));
  for (std::size_t i = 0; i < unknown_outputs.size(); ++i) {
    if (!unknown_outputs[i]) doubled.push_back(static_cast<int>(i));
  }
  std::size_t known_carry = count(!carry), known_ys = count(!unknown_ys);
  ProgramSplit halves = partial_eval_program(
      reorder_outputs(loop.body(), doubled), join({consts, carry, xs}),
      join({Mask(unknown_outputs.size(), true), Mask(known_carry + known_ys, false)}), args.policy);
  std::size_t residuals = halves.residual_types.size();

  PartialEvalSplit split;
  split.unknown_outputs = unknown_outputs;
  std::vector<int> known_outputs;
  for (std::size_t i = 0; i < known_carry + known_ys; ++i) known_outputs.push_back(static_cast<int>(i));
  for (std::size_t r = 0; r < residuals; ++r) {
    if (halves.residual_inputs[r] < 0) known_outputs.push_back(static_cast<int>(known_carry + known_ys + r));
  }
  Program known_body = reorder_outputs(halves.known, known_outputs);
  split.known = stage(
                    [&](std::span<const Array> inputs) {
                      Arrays all = spread(inputs, !args.unknown);
                      Arrays operands = where(loop.consts(all), !consts);
                      std::size_t const_count = operands.size();
                      append(operands, where(loop.carry(all), !carry));
                      append(operands, where(loop.xs(all), !xs));
                      if (known_body.outputs().empty() && !known_body.effects().keeps_equation()) return Arrays{};
                      return bind_scan(args.attrs, known_body, const_count, known_carry, operands);
                    },
                    where(args.types, !args.unknown), "known")
                    .program;

  // The staged body takes every input of the original body, then one slice of each stack.
  Types body_types = loop.body().input_types();
  for (std::size_t r = 0; r < residuals; ++r) {
    if (halves.residual_inputs[r] < 0) body_types.push_back(halves.residual_types[r]);
  }
  Program staged_body = stage(
                            [&](std::span<const Array> in) {
                              Arrays operands;
                              std::size_t stack = args.unknown.size();
                              for (std::size_t r = 0; r < residuals; ++r) {
                                int input = halves.residual_inputs[r];
                                operands.push_back(input >= 0 ? in[static_cast<std::size_t>(input)] : in[stack++]);
                              }
                              append(operands, where(in.first(args.unknown.size()), join({consts, carry, xs})));
                              return evaluate_program(halves.staged, operands);
                            },
                            body_types, loop.body().name())
                            .program;
  Types staged_types(args.types.begin(), args.types.end());
  int64_t length = loop.length();
  for (std::size_t i = args.types.size(); i < body_types.size(); ++i) {
    staged_types.push_back(body_types[i]);
    staged_types.back().shape.insert(staged_types.back().shape.begin(), length);
  }
  Program staged = stage(
                       [&](std::span<const Array> inputs) {
                         Arrays outputs = bind_scan(args.attrs, staged_body, loop.consts(), loop.carry(), inputs);
                         Arrays ordered = where(outputs, unknown_outputs);
                         append(ordered, where(outputs, !unknown_outputs));
                         return ordered;
                       },
                       staged_types, "staged")
                       .program;
  DceProgram pruned = dce_program(staged, Mask(staged.outputs().size(), true));
  split.staged = pruned.program;
  for (std::size_t i = 0; i < pruned.used_inputs.size(); ++i) {
    bool stack = i >= args.types.size();
    int position = stack ? split.residual_count++ : static_cast<int>(i);
    if (pruned.used_inputs[i]) split.operands.push_back({stack, position});
  }
  return split;
}

PartialEvalSplit partial_eval_scan(const PartialEvalArgs& args) {
  if (args.policy) return partial_eval_with_policy(args);
  ScanView loop(args.attrs);
  Mask consts = loop.consts(args.unknown), carry = loop.carry(args.unknown), xs = loop.xs(args.unknown);
  ProgramSplit halves;
  for (;;) {
    halves = partial_eval_program(loop.body(), join({consts, carry, xs}), join({carry, Mask(loop.ys(), false)}));
    Mask out = loop.last_carry(halves.unknown_outputs);
    if (out == carry) break;
    carry = either(carry, out);
  }
  std::size_t known_consts = count(!consts), known_carry = count(!carry), known_xs = count(!xs);
  Mask unknown_ys = loop.ys(halves.unknown_outputs);
  std::size_t known_ys = count(!unknown_ys);
  std::size_t residual_count = halves.residual_types.size();

  // Values of the known body that depend only on consts are computed once, before the loop.
  std::size_t varying = known_carry + known_xs;
  ProgramSplit invariant =
      partial_eval_program(halves.known, join({Mask(known_consts, false), Mask(varying, true)}),
                           join({Mask(known_carry + known_ys, true), Mask(residual_count, false)}));

  std::vector<Residual> residuals;
  std::vector<int> loop_outputs;  // those of invariant.staged that the known loop keeps
  for (std::size_t i = 0; i < known_carry + known_ys; ++i) loop_outputs.push_back(static_cast<int>(i));
  int hoisted = 0, next_varying = static_cast<int>(known_carry + known_ys), stacked = 0;
  for (std::size_t r = 0; r < residual_count; ++r) {
    int input = halves.residual_inputs[r];
    bool invariant_value = !invariant.unknown_outputs[known_carry + known_ys + r];
    int position = invariant_value ? hoisted++ : next_varying++;
    if (input >= 0 && static_cast<std::size_t>(input) < loop.consts()) {
      residuals.push_back({Residual::constant, input});
    } else if (input >= 0 && static_cast<std::size_t>(input) >= loop.first_xs()) {
      residuals.push_back({Residual::slice, input});
    } else if (invariant_value) {
      residuals.push_back({Residual::hoisted, position});
    } else {
      loop_outputs.push_back(position);
      residuals.push_back({Residual::stacked, stacked++});
    }
  }
  Program known_body = reorder_outputs(invariant.staged, loop_outputs);

  PartialEvalSplit split;
  split.unknown_outputs = halves.unknown_outputs;
  split.known = stage(
                    [&](std::span<const Array> inputs) {
                      Arrays all = spread(inputs, !args.unknown);
                      Arrays known_const_values = where(loop.consts(all), !consts);
                      Arrays before = evaluate_program(invariant.known, known_const_values);
                      std::size_t hoisted_count = before.size() - invariant.residual_types.size();
                      Arrays operands = part(before, hoisted_count, before.size());
                      std::size_t loop_consts = operands.size();
                      append(operands, where(loop.carry(all), !carry));
                      append(operands, where(loop.xs(all), !xs));
                      Arrays outputs, looped;
                      if (!known_body.outputs().empty() || known_body.effects().keeps_equation()) {
                        looped = bind_scan(args.attrs, known_body, loop_consts, known_carry, operands);
                      }
                      append(outputs, part(looped, 0, known_carry + known_ys));
                      std::size_t next_stacked = known_carry + known_ys;
                      for (const Residual& residual : residuals) {
                        if (residual.kind == Residual::hoisted)
                          outputs.push_back(before[static_cast<std::size_t>(residual.index)]);
                        if (residual.kind == Residual::stacked) outputs.push_back(looped[next_stacked++]);
                      }
                      return outputs;
                    },
                    where(args.types, !args.unknown), "known")
                    .program;

  // The staged loop: invariant residuals and unknown consts, the unknown carry, unknown xs and stacked residuals.
  std::vector<int> order;
  std::vector<PartialEvalSplit::Operand> invariants, stacks;
  int staged_unknown = static_cast<int>(residual_count);
  for (std::size_t r = 0; r < residual_count; ++r) {
    const Residual& residual = residuals[r];
    bool saved = residual.kind == Residual::hoisted || residual.kind == Residual::stacked;
    PartialEvalSplit::Operand operand{saved, saved ? split.residual_count++ : residual.index};
    bool is_invariant = residual.kind == Residual::constant || residual.kind == Residual::hoisted;
    (is_invariant ? invariants : stacks).push_back(operand);
    if (is_invariant) order.push_back(static_cast<int>(r));
  }
  std::size_t staged_consts = invariants.size() + count(consts);
  split.operands = invariants;
  Mask staged_inputs = join({consts, carry, xs});
  for (std::size_t i = 0; i < staged_inputs.size(); ++i) {
    if (!staged_inputs[i]) continue;
    order.push_back(staged_unknown++);
    split.operands.push_back({false, static_cast<int>(i)});
  }
  for (std::size_t r = 0; r < residual_count; ++r) {
    if (residuals[r].kind == Residual::slice || residuals[r].kind == Residual::stacked)
      order.push_back(static_cast<int>(r));
  }
  split.operands.insert(split.operands.end(), stacks.begin(), stacks.end());
  Program staged_body = reorder_inputs(halves.staged, order);
  std::size_t staged_carry = count(carry);
  Types staged_types = staged_body.input_types();
  int64_t length = loop.length();
  for (std::size_t i = staged_consts + staged_carry; i < staged_types.size(); ++i) {
    staged_types[i].shape.insert(staged_types[i].shape.begin(), length);
  }
  split.staged = stage(
                     [&](std::span<const Array> inputs) {
                       return bind_scan(args.attrs, staged_body, staged_consts, staged_carry, inputs);
                     },
                     staged_types, "staged")
                     .program;
  return split;
}

Arrays transpose_scan(const TransposeArgs& args) {
  ScanView loop(args.attrs);
  Mask linear = !defined_mask(args.inputs);
  for (std::size_t i = 0; i < args.types.size(); ++i) {
    if (!args.types[i].ref || !linear[i]) continue;
    throw NotImplementedError(
        "scan: the reverse derivative of a loop that reads or writes a ref is not supported; carry the value instead");
  }
  // A carry that starts at a known value starts at zero: it became linear inside the loop.
  Mask consts = loop.consts(linear), xs = loop.xs(linear);
  Arrays residual_consts = where(loop.consts(args.inputs), !consts);
  Arrays residual_xs = where(loop.xs(args.inputs), !xs);
  Arrays carry_cotangents, ys_cotangents;
  Types outputs = loop.body().output_types();
  for (std::size_t i = 0; i < loop.carry(); ++i)
    carry_cotangents.push_back(instantiate(args.cotangents[i], outputs[i]));
  Mask nonzero_ys;
  for (std::size_t i = 0; i < loop.ys(); ++i) {
    nonzero_ys.push_back(args.cotangents[loop.carry() + i].defined());
    if (nonzero_ys.back()) ys_cotangents.push_back(args.cotangents[loop.carry() + i]);
  }
  Arrays const_cotangents;
  for (std::size_t i = 0; i < loop.consts(); ++i) {
    if (consts[i]) const_cotangents.push_back(instantiate(Array(), args.types[i]));
  }

  // The body backwards: (residual consts, sums of const cotangents, carry cotangents, ys cotangents, residual xs).
  Types types;
  auto add_types = [&](std::span<const Array> arrays, bool slices) {
    for (const Array& array : arrays) {
      types.push_back(array.type());
      if (slices) types.back() = without_dimension(std::move(types.back()), 0);
    }
  };
  add_types(residual_consts, false);
  add_types(const_cotangents, false);
  add_types(carry_cotangents, false);
  add_types(ys_cotangents, true);
  add_types(residual_xs, true);
  std::size_t fixed = residual_consts.size(), sums = const_cotangents.size();
  Staged body = stage(
      [&](std::span<const Array> in) {
        std::size_t at = fixed + sums + loop.carry();
        Arrays inputs;
        append(inputs, spread(in.first(fixed), !consts));
        inputs.resize(loop.first_xs());
        append(inputs, spread(in.subspan(at + ys_cotangents.size()), !xs));
        Arrays cotangents = part(in, fixed + sums, at);
        append(cotangents, spread(in.subspan(at, ys_cotangents.size()), nonzero_ys));
        Arrays running = spread(in.subspan(fixed, sums), consts);
        running.resize(inputs.size());
        Arrays results =
            backward_pass(loop.body(), join({consts, Mask(loop.carry(), true), xs}), inputs, cotangents, running);
        Arrays out = where(part(results, 0, loop.consts()), consts);
        for (std::size_t i = loop.consts(); i < results.size(); ++i) {
          bool is_carry = i < loop.first_xs();
          if (is_carry || linear[i]) out.push_back(instantiate(results[i], loop.body().type(loop.body().invars()[i])));
        }
        return out;
      },
      types, loop.body().name());

  Arrays operands = body.captured;
  append(operands, residual_consts);
  append(operands, const_cotangents);
  append(operands, carry_cotangents);
  append(operands, ys_cotangents);
  append(operands, residual_xs);
  Attrs attrs = args.attrs.with("reverse", !loop.reverse());
  Arrays results = bind_scan(attrs, body.program, body.captured.size() + fixed, sums + loop.carry(), operands);
  Arrays all = spread(results, join({consts, Mask(loop.carry(), true), xs}));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!linear[i]) all[i] = Array();
  }
  return all;
}

DceResult dce_scan(const Attrs& attrs, const Mask& used) {
  ScanView loop(attrs);
  Mask used_carry = loop.last_carry(used), used_ys = loop.ys(used);
  DceProgram pruned;
  for (;;) {
    Mask keep = join({Mask(loop.consts(), false), used_carry, Mask(loop.xs(), false)});
    pruned = dce_program(loop.body(), join({used_carry, used_ys}), keep);
    Mask needed = loop.carry(pruned.used_inputs);
    if (needed == used_carry) break;
    used_carry = either(used_carry, needed);
  }
  // A carry that feeds another stays in the loop although its last value is not read.
  return {pruned.used_inputs, loop.with(pruned.program, count(loop.consts(pruned.used_inputs)), count(used_carry)),
          join({used_carry, used_ys})};
}

// StableHLO has no scan: a while loop over an index, slices taken and written by that index. Each iteration does
// `unroll` steps; the remaining steps follow the loop.
Arrays lower_scan(std::span<const Array> inputs, const Attrs& attrs) {
  namespace lax = jax::lax;
  ScanView loop(attrs);
  int64_t length = loop.length();
  Types outputs = loop.body().output_types();
  Arrays state = {scalar_of(DType::int32, 0)};
  append(state, loop.carry(inputs));
  for (std::size_t i = loop.carry(); i < outputs.size(); ++i) {
    state.push_back(lax::zeros(with_dimension(outputs[i], 0, length)));
  }
  if (length == 0) return part(state, 1, state.size());  // there is no slice to take
  const int64_t unroll = std::min(length, loop.unroll()), looped = length / unroll * unroll;
  auto step = [&](Arrays s, const Array& position) {  // (carry, ys) after the step at this position
    Array index =
        loop.reverse() ? lax::sub(scalar_of(DType::int32, static_cast<double>(length - 1)), position) : position;
    Arrays operands = part(inputs, 0, loop.consts());
    append(operands, part(s, 0, loop.carry()));
    for (const Array& x : loop.xs(inputs)) operands.push_back(lax::dynamic_index_in_dim(x, index, 0, false));
    Arrays results = call_program(loop.body(), operands, loop.body().name().empty() ? "body" : loop.body().name());
    Arrays next = part(results, 0, loop.carry());
    for (std::size_t i = 0; i < loop.ys(); ++i) {
      next.push_back(lax::dynamic_update_index_in_dim(s[loop.carry() + i], results[loop.carry() + i], index, 0));
    }
    return next;
  };
  const bool loops = loop.unroll() == 1 || looped > unroll;  // else one iteration would do all steps
  Arrays results = state;
  if (loops) {
    Types types;
    for (const Array& array : state) types.push_back(array.type());
    Staged condition = stage(
        [&](std::span<const Array> s) {
          return Arrays{lax::lt(s[0], scalar_of(DType::int32, static_cast<double>(looped)))};
        },
        types, "cond");
    Staged body = stage(
        [&](std::span<const Array> s) {
          Arrays now = part(s, 1, s.size());
          Array position = s[0];
          for (int64_t i = 0; i < unroll; ++i) {
            now = step(std::move(now), position);
            position = lax::add(position, scalar_of(DType::int32, 1));
          }
          now.insert(now.begin(), position);
          return now;
        },
        types, "body");
    results = bind_while(condition, body, state);
  }
  Arrays now = part(results, 1, results.size());
  for (int64_t i = loops ? looped : 0; i < length; ++i)
    now = step(std::move(now), scalar_of(DType::int32, static_cast<double>(i)));
  return now;
}

}  // namespace

PrimitiveRecord scan_record() {
  PrimitiveRecord record;
  record.name = "scan";
  record.factors = scan_factors;
  record.localise = localise_scan;
  record.traits.control = Control::scan;
  record.traits.multiple_results = true;
  record.doc = "Runs a body once per slice of its stacked operands, carrying values from step to step.";
  record.type = type_rule;
  record.jvp = jvp_scan;
  record.transpose = transpose_scan;
  record.batch = batch_scan;
  record.partial_eval = partial_eval_scan;
  record.dce = dce_scan;
  record.lower = lower_scan;
  return record;
}

}  // namespace capibara
