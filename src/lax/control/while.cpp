// while: a loop that runs as long as a condition on its carry holds; forward-mode differentiable only.
#include <capibara/config.h>
#include <capibara/control.h>

#include "lax/control/control.h"
#include "lax/sharding/factors.h"
#include "program/ir/handles.h"

namespace capibara {

namespace {

Arrays bind_while(const Program& condition, std::size_t cond_consts, const Program& body, std::size_t body_consts,
                  std::span<const Array> operands) {
  return capibara::bind(prim::while_(), operands, WhileView::attrs(condition, cond_consts, body, body_consts));
}

// The condition with more inputs after its own, which it does not read.
Program with_unused_inputs(const Program& program, std::span<const ArrayType> extra) {
  Program::Body body = program.body();
  for (const ArrayType& type : extra) {
    body.var_types.push_back(type);
    body.invars.push_back(Var{static_cast<int32_t>(body.var_types.size()) - 1});
  }
  return Program(std::move(body));
}

TypeResult while_type(std::span<const ArrayType> types, const Attrs& attrs) {
  WhileView loop(attrs);
  if (types.size() != loop.first_carry() + loop.carry()) {
    throw TypeError(concat("while: ", loop.first_carry() + loop.carry(), " operands are needed, got ", types.size()));
  }
  const std::span<const ArrayType> consts = loop.cond_consts(types), carry = loop.carry(types);
  Types in(consts.begin(), consts.end());
  in.insert(in.end(), carry.begin(), carry.end());
  check_operands("while condition", loop.condition(), in);
  check_operands("while body", loop.body(), types.subspan(loop.cond_consts()));
  Types outputs = loop.body().output_types();
  if (outputs.size() != carry.size()) {
    throw TypeError(
        concat("while: the body must return ", carry.size(), " values like its carry, got ", outputs.size()));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].shape != carry[i].shape || outputs[i].dtype != carry[i].dtype) {
      throw TypeError(concat("while_loop body function carry input and carry output must have equal types, but they ",
                             "differ: carry ", i, " enters as ", to_string(carry[i]), " and leaves as ",
                             to_string(outputs[i])));
    }
  }
  Types predicate = loop.condition().output_types();
  if (predicate.size() != 1 || predicate[0].dtype != DType::bool_) {
    throw TypeError("while: the condition must return one bool");
  }
  Effects effects = loop.body().effects();
  effects.merge(loop.condition().effects());
  return TypeResult(std::move(outputs), std::move(effects));
}

JvpResult jvp_while(const JvpArgs& args) {
  WhileView loop(args.attrs);
  Mask nonzero = defined_mask(args.tangents);
  Mask consts = loop.body_consts(nonzero), carry = loop.carry(nonzero);
  JvpProgram derived;
  for (;;) {
    derived = jvp_program(loop.body(), join({consts, carry}), carry);
    if (derived.nonzero_outputs == carry) break;
    carry = either(carry, derived.nonzero_outputs);
  }
  std::vector<int> order;
  int tangent = static_cast<int>(loop.body_consts() + loop.carry()), primal = 0;
  for (const Mask& mask : {consts, carry}) {
    for (std::size_t i = 0; i < mask.size(); ++i) order.push_back(primal++);
    for (bool bit : mask) {
      if (bit) order.push_back(tangent++);
    }
  }
  Program body = reorder_inputs(derived.program, order);

  const std::span<const Array> carry_primals = loop.carry(args.primals);
  Arrays carry_tangents = part(args.tangents, loop.first_carry(), args.tangents.size());
  Types extra;
  for (std::size_t i = 0; i < loop.carry(); ++i) {
    if (!carry[i]) continue;
    carry_tangents[i] = instantiate(carry_tangents[i], carry_primals[i].type());
    extra.push_back(carry_tangents[i].type());
  }
  Arrays operands = part(args.primals, 0, loop.first_carry());
  append(operands, where(loop.body_consts(args.tangents), consts));
  append(operands, carry_primals);
  append(operands, where(carry_tangents, carry));
  Arrays all = bind_while(with_unused_inputs(loop.condition(), extra), loop.cond_consts(), body,
                          loop.body_consts() + count(consts), operands);
  return {part(all, 0, loop.carry()), spread(part(all, loop.carry(), all.size()), carry)};
}

BatchResult batch_while(const BatchArgs& args) {
  WhileView loop(args.attrs);
  Mask mapped = mapped_mask(args);
  Mask cond_consts = loop.cond_consts(mapped), body_consts = loop.body_consts(mapped), carry = loop.carry(mapped);
  BatchedProgram condition, body;
  bool mapped_predicate = false;
  for (;;) {
    condition = batch_program(loop.condition(), args.axis, join({cond_consts, carry}));
    mapped_predicate = condition.mapped_outputs[0];
    if (mapped_predicate) carry.assign(carry.size(), true);
    body = batch_program(loop.body(), args.axis, join({body_consts, carry}), carry);
    if (body.mapped_outputs == carry) break;
    carry = either(carry, body.mapped_outputs);
  }
  if (mapped_predicate) condition = batch_program(loop.condition(), args.axis, join({cond_consts, carry}));
  Arrays operands;
  std::size_t fixed = loop.first_carry();
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    bool wanted = i < fixed ? mapped[i] : carry[i - fixed];
    operands.push_back(wanted ? batch_at(args.inputs[i], args.dims[i], args.axis) : args.inputs[i]);
  }
  BatchResult result;
  if (!mapped_predicate) {
    result.outputs = bind_while(condition.program, loop.cond_consts(), body.program, loop.body_consts(), operands);
  } else {
    for (const Program* part : {&loop.condition(), &loop.body()}) {
      if (part->effects().has(Effects::io) || part->effects().has(Effects::ordered_io))
        throw NotImplementedError(
            "IO effect not supported in while_loop with batched predicate: lanes that are done would have it, too.");
    }
    // The loop runs until every lane is done; finished lanes keep their values. The condition's consts join the body's.
    namespace lax = jax::lax;
    Arrays condition_values = part(operands, 0, loop.cond_consts());
    Types carry_types;
    for (std::size_t i = fixed; i < operands.size(); ++i) carry_types.push_back(operands[i].type());
    Types condition_types, body_types;
    for (std::size_t i = 0; i < fixed; ++i) {
      if (i < loop.cond_consts()) condition_types.push_back(operands[i].type());
      body_types.push_back(operands[i].type());
    }
    condition_types.insert(condition_types.end(), carry_types.begin(), carry_types.end());
    body_types.insert(body_types.end(), carry_types.begin(), carry_types.end());
    Program any_lane = stage(
                           [&](std::span<const Array> in) {
                             Array lanes = evaluate_program(condition.program, in)[0];
                             return Arrays{lax::reduce_or(lanes, {.axes = {0}})};
                           },
                           condition_types, loop.condition().name())
                           .program;
    Program step = stage(
                       [&](std::span<const Array> in) {
                         Arrays state = part(in, fixed, in.size());
                         Arrays condition_in = part(in, 0, loop.cond_consts());
                         append(condition_in, state);
                         Array lanes = evaluate_program(condition.program, condition_in)[0];
                         Arrays next = evaluate_program(body.program, in.subspan(loop.cond_consts()));
                         for (std::size_t i = 0; i < next.size(); ++i) {
                           Array predicate = lanes;
                           const Sharding& split = next[i].type().sharding;
                           if (next[i].ndim() > 1)
                             predicate = lax::broadcast_in_dim(lanes, next[i].shape(), {0},
                                                               split.is_explicit() ? split : Sharding());
                           next[i] = lax::select(predicate, next[i], state[i]);
                         }
                         return next;
                       },
                       body_types, loop.body().name())
                       .program;
    Arrays all = condition_values;
    append(all, operands);
    result.outputs = bind_while(any_lane, loop.cond_consts(), step, fixed, all);
  }
  for (std::size_t i = 0; i < loop.carry(); ++i) {
    result.dims.push_back(carry[i] ? 0 : not_mapped);
    // A carry that the body returns unchanged keeps its start value, mapped or not.
    if (!(loop.body().outputs()[i] == Atom(loop.body().invars()[loop.body_consts() + i]))) continue;
    result.outputs[i] = args.inputs[fixed + i];
    result.dims[i] = args.dims[fixed + i];
  }
  return result;
}

// Carries that do not depend on unknown values are computed now by a separate loop; the whole loop runs later.
PartialEvalSplit partial_eval_while(const PartialEvalArgs& args) {
  WhileView loop(args.attrs);
  Mask cond_consts = loop.cond_consts(args.unknown), body_consts = loop.body_consts(args.unknown),
       carry = loop.carry(args.unknown);
  ProgramSplit halves;
  for (;;) {
    halves = partial_eval_program(loop.body(), join({body_consts, carry}), carry, args.policy);
    if (halves.unknown_outputs == carry) break;
    carry = either(carry, halves.unknown_outputs);
  }
  ProgramSplit condition = partial_eval_program(loop.condition(), join({cond_consts, carry}), {}, args.policy);
  PartialEvalSplit split;
  bool nothing_known = condition.unknown_outputs[0] || count(carry) == loop.carry();
  split.unknown_outputs = nothing_known ? Mask(loop.carry(), true) : carry;
  split.known =
      stage(
          [&](std::span<const Array> inputs) {
            if (nothing_known) return Arrays{};
            Arrays all = spread(inputs, !args.unknown);
            DceProgram known_condition =
                dce_program(loop.condition(), {true}, join({Mask(loop.cond_consts(), true), !carry}));
            Mask condition_keep = join({Mask(loop.cond_consts(), true), !carry});
            // The known body computes only the known carries.
            Mask body_keep = join({!body_consts, !carry});
            DceProgram known_body = dce_program(loop.body(), !carry, body_keep);
            if (known_body.used_inputs != body_keep) {
              // An equation that holds a program may yield both known and unknown values: the known half splits it.
              Mask results(halves.known.outputs().size(), false);
              std::fill_n(results.begin(), count(!carry), true);
              known_body.program = dce_program(halves.known, results, Mask(halves.known.invars().size(), true)).program;
              known_body.used_inputs = body_keep;
            }
            if (known_condition.used_inputs != condition_keep) {
              throw InternalError("while: the known half of a loop reads an unknown value");
            }
            Arrays operands = part(all, 0, loop.cond_consts());
            Arrays consts = where(loop.body_consts(all), !body_consts);
            std::size_t const_count = consts.size();
            append(operands, consts);
            append(operands, where(loop.carry(all), !carry));
            return bind_while(known_condition.program, loop.cond_consts(), known_body.program, const_count, operands);
          },
          where(args.types, !args.unknown), "known")
          .program;
  for (std::size_t i = 0; i < args.types.size(); ++i) split.operands.push_back({false, static_cast<int>(i)});
  split.staged = stage(
                     [&](std::span<const Array> inputs) {
                       Arrays all =
                           bind_while(loop.condition(), loop.cond_consts(), loop.body(), loop.body_consts(), inputs);
                       Arrays ordered = where(all, split.unknown_outputs);
                       if (args.policy) append(ordered, where(all, !split.unknown_outputs));
                       return ordered;
                     },
                     args.types, "staged")
                     .program;
  return split;
}

// A carry stays if its last value is read, or if the condition or a carry that stays needs it.
DceResult dce_while(const Attrs& attrs, const Mask& used) {
  WhileView loop(attrs);
  Mask carry = used;
  DceProgram condition, body;
  for (;;) {
    condition = dce_program(loop.condition(), {true}, join({Mask(loop.cond_consts(), false), carry}));
    body = dce_program(loop.body(), carry, join({Mask(loop.body_consts(), false), carry}));
    Mask needed = either(part(condition.used_inputs, loop.cond_consts(), condition.used_inputs.size()),
                         part(body.used_inputs, loop.body_consts(), body.used_inputs.size()));
    if (needed == carry) break;
    carry = either(carry, needed);
  }
  Mask cond_consts = part(condition.used_inputs, 0, loop.cond_consts());
  Mask body_consts = part(body.used_inputs, 0, loop.body_consts());
  return {join({cond_consts, body_consts, carry}),
          WhileView::attrs(condition.program, count(cond_consts), body.program, count(body_consts)), carry};
}

}  // namespace

PrimitiveRecord while_record() {
  PrimitiveRecord record;
  record.name = "while";
  record.factors = while_factors;
  record.localise = localise_while;
  record.traits.control = Control::while_loop;
  record.traits.multiple_results = true;
  record.doc = "Runs a body on its carry as long as a condition holds.";
  record.type = while_type;
  record.jvp = jvp_while;
  record.batch = batch_while;
  record.partial_eval = partial_eval_while;
  record.dce = dce_while;
  record.transpose = [](const TransposeArgs&) -> Arrays {
    throw ValueError(
        "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with dynamic start/stop "
        "values. "
        "Try using lax.scan, or using fori_loop with static start/stop.");
  };
  record.stablehlo = "stablehlo.while";
  return record;
}

}  // namespace capibara

namespace capibara::jax::lax::detail {

Arrays while_flat(const FlatFunction& condition, const FlatFunction& body, const Arrays& given_init) {
  Arrays init = given_init;
  if (capibara::config().disable_jit && all_concrete({&init})) {
    while (condition(init)[0].item<bool>()) init = body(init);
    return init;
  }
  require_tracing_allowed("body");
  Staged body_staged = stage_open(body, types_of(init), "body");
  Types outputs = body_staged.program.output_types();
  if (outputs.size() == init.size() && strengthen(init, outputs)) {
    body_staged = stage_open(body, types_of(init), "body");
    outputs = body_staged.program.output_types();
  }
  check_carry_types("while_loop", types_of(init), outputs);
  Staged condition_staged = stage_open(condition, types_of(init), "cond");
  const ArrayType predicate = condition_staged.program.output_types()[0];
  if (predicate.rank() != 0 || predicate.dtype != DType::bool_) {
    throw TypeError(concat("while_loop: cond_fun must return a boolean scalar, got ", to_string(predicate)));
  }
  return bind_while(condition_staged, body_staged, init);
}

}  // namespace capibara::jax::lax::detail
