// optimize_remat of custom_vjp: a forward rule that becomes the function itself if its residuals are unused.
//
// Under checkpoint the forward pass keeps the rule's outputs and drops its residuals. A rule that computes both at once
// then does more work than the function; here it is one equation, which dead code elimination replaces.
#include "transforms/optimized_forward.h"
#include "lax/control/control.h"

namespace capibara::detail {

namespace {

// The first program returns outputs and residuals, the second only the outputs; both take all operands.
constexpr const char* full = "fwd_jaxpr";
constexpr const char* plain = "fun_jaxpr";

DceResult prune(const Attrs& attrs, const Mask& used) {
  const std::size_t outputs = attrs.program(plain).outputs().size();
  if (any(part(used, outputs, used.size()))) {
    return {Mask(attrs.program(full).invars().size(), true), attrs, Mask(used.size(), true)};
  }
  DceProgram pruned = dce_program(attrs.program(plain), part(used, 0, outputs));
  return {pruned.used_inputs, attrs.with(full, pruned.program).with(plain, pruned.program), {}};
}

JvpResult jvp(const JvpArgs& args) {
  return jvp_of_call(args.attrs.program(full), args, [](const Program& program, std::span<const Array> operands) {
    return evaluate_program(program, operands);
  });
}

BatchResult batch(const BatchArgs& args) {
  auto batched = [&](const char* name) {
    const Program& program = args.attrs.program(name);
    return batch_program(program, args.axis, mapped_mask(args), Mask(program.outputs().size(), true)).program;
  };
  Attrs attrs = args.attrs.with(full, batched(full)).with(plain, batched(plain));
  Arrays operands;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    operands.push_back(args.mapped(i) ? batch_at(args.inputs[i], args.dims[i], args.axis) : args.inputs[i]);
  }
  Arrays outputs = capibara::bind(args.primitive, operands, attrs);
  std::vector<int64_t> dims(outputs.size(), 0);
  return {std::move(outputs), std::move(dims)};
}

Primitive remat_opt() {
  static const Primitive instance = [] {
    PrimitiveRecord record;
    record.name = "remat_opt";
    record.doc = "A forward rule of custom_vjp, or the function itself where the residuals are not read.";
    record.type = [](std::span<const ArrayType> types, const Attrs& attrs) {
      check_operands("custom_vjp", attrs.program(full), types);
      return TypeResult(attrs.program(full).output_types(), attrs.program(full).effects());
    };
    record.jvp = jvp;
    record.batch = batch;
    record.dce = prune;
    record.lower = [](std::span<const Array> inputs, const Attrs& attrs) {
      return evaluate_program(attrs.program(full), inputs);
    };
    record.evaluate = record.lower;
    return make_primitive(std::move(record));
  }();
  return instance;
}

// The program of a staged function, extended to the operands of both functions: its captured ones begin at `first`.
Program of_all(const Staged& staged, const Types& types, std::size_t first, std::size_t arguments) {
  const Program closed = constants_to_inputs(staged.program);
  const std::size_t captured = closed.invars().size() - arguments;
  return stage(
             [&](std::span<const Array> in) {
               Arrays operands = part(in, first, first + captured);
               append(operands, in.subspan(in.size() - arguments));
               return evaluate_program(closed, operands);
             },
             types, staged.program.name())
      .program;
}

}  // namespace

CustomVjpRule::Forward optimized_forward(const FlatFunction& function, const CustomVjpRule::Forward& forward,
                                         const RuleNames& names) {
  return [=](std::span<const Array> arguments, const std::vector<bool>& perturbed) {
    Types types;
    for (const Array& argument : arguments) types.push_back(argument.type());
    std::size_t count = 0;
    CustomBackward::Rule backward;
    auto all_of_forward = [&](std::span<const Array> in) {
      CustomVjpRule::Forwarded one = forward(in, perturbed);
      count = one.outputs.size();
      backward = std::move(one.backward);
      append(one.outputs, one.residuals);
      return one.outputs;
    };
    const Staged rule = stage_open(all_of_forward, types, names.first);
    const Staged itself = stage_open(function, types, names.function);
    Arrays operands = rule.program.constants();
    append(operands, rule.captured);
    const std::size_t first = operands.size();
    append(operands, itself.program.constants());
    append(operands, itself.captured);
    append(operands, arguments);
    types.clear();
    for (const Array& operand : operands) types.push_back(operand.type());
    const Attrs programs = {{full, of_all(rule, types, 0, arguments.size())},
                            {plain, of_all(itself, types, first, arguments.size())}};
    Arrays all = capibara::bind(remat_opt(), operands, programs);
    for (std::size_t i = count; i < all.size(); ++i) {  // a residual that is an argument does not need the rule
      const Atom residual = rule.program.outputs()[i];
      const std::vector<Var>& inputs = rule.program.invars();
      const std::size_t captured = rule.captured.size();
      for (std::size_t k = captured; k < inputs.size(); ++k) {
        if (!residual.is_literal() && residual.code == inputs[k].id) all[i] = arguments[k - captured];
      }
    }
    return CustomVjpRule::Forwarded{part(all, 0, count), part(all, count, all.size()), std::move(backward)};
  };
}

}  // namespace capibara::detail
