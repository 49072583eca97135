// Functions with the user's own derivative: custom_jvp_call, custom_vjp_call and the linear half of the latter.
#include "primitives/control.h"
#include "program/custom_rules.h"

#include <numeric>

namespace capibara {

namespace {

TypeResult call_type(std::span<const ArrayType> types, const Attrs& attrs) {
  const Program& program = attrs.program("call_jaxpr");
  check_operands("custom derivative call", program, types);
  return TypeResult(program.output_types(), program.effects());
}

Arrays lower_call(std::span<const Array> inputs, const Attrs& attrs) {
  const std::string& name = attrs.has("name") ? attrs.text("name") : std::string();
  return call_program(attrs.program("call_jaxpr"), inputs, name.empty() ? "custom" : name);
}

std::size_t captured_count(const Attrs& attrs) { return static_cast<std::size_t>(attrs.integer("num_consts")); }

void check_captured(const char* kind, const JvpArgs& args) {
  for (std::size_t i = 0; i < captured_count(args.attrs); ++i) {
    if (!args.tangents[i].defined()) continue;
    throw UnexpectedTracerError(
        concat("Detected differentiation of a ", kind,
               " function with respect to a closed-over value. That's not supported because the "
               "custom rule only specifies how to differentiate with respect to its arguments.\n"
               "Hint: pass the closed-over value as an argument."));
  }
}

Arrays moved_to_front(const BatchArgs& args) {
  Arrays operands;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    operands.push_back(args.mapped(i) ? batch_at(args.inputs[i], args.dims[i], args.axis.size) : args.inputs[i]);
  }
  return operands;
}

std::vector<int64_t> front_dims(const Mask& mapped) {
  std::vector<int64_t> dims;
  for (bool is_mapped : mapped) dims.push_back(is_mapped ? 0 : not_mapped);
  return dims;
}

// ---- custom_jvp_call --------------------------------------------------------------------------------------------

JvpResult custom_jvp(const JvpArgs& args) {
  check_captured("custom_jvp", args);
  std::size_t captured = captured_count(args.attrs);
  Arrays tangents;
  const bool symbolic = args.attrs.boolean("symbolic_zeros");
  for (std::size_t i = captured; i < args.primals.size(); ++i) {
    tangents.push_back(symbolic ? args.tangents[i] : instantiate(args.tangents[i], args.primals[i].type()));
  }
  return args.attrs.opaque<CustomJvpRule>("jvp_jaxpr_fun")->rule(args.primals.subspan(captured), tangents);
}

// A function that is linear itself: its rule has no part in its transpose.
Arrays transpose_custom_jvp(const TransposeArgs& args) {
  Mask linear;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) linear.push_back(args.linear(i));
  return backward_pass(args.attrs.program("call_jaxpr"), linear, args.inputs, args.cotangents);
}

BatchResult batch_custom_jvp(const BatchArgs& args) {
  Mask mapped = mapped_mask(args);
  std::size_t outputs = args.attrs.program("call_jaxpr").outputs().size();
  BatchedProgram derived = batch_program(args.attrs.program("call_jaxpr"), args.axis, mapped, Mask(outputs, true));
  std::size_t captured = captured_count(args.attrs);
  auto rule = args.attrs.opaque<CustomJvpRule>("jvp_jaxpr_fun");
  Mask argument_mask = part(mapped, captured, mapped.size());
  auto batched =
      std::make_shared<CustomJvpRule>(rule->name, [rule, axis = args.axis, argument_mask, outputs](
                                                      std::span<const Array> primals, std::span<const Array> tangents) {
        Arrays all(primals.begin(), primals.end());
        Mask given = defined_mask(tangents);
        append(all, where(tangents, given));
        std::size_t count = primals.size();
        std::vector<int64_t> dims = front_dims(argument_mask);
        for (std::size_t i = 0; i < count; ++i) {
          if (given[i]) dims.push_back(dims[i]);
        }
        Arrays results = vmap_flat(
            [&](std::span<const Array> in) {
              JvpResult jvp = rule->rule(in.first(count), spread(in.subspan(count), given));
              for (std::size_t i = 0; i < outputs; ++i) {
                jvp.primals.push_back(instantiate(jvp.tangents[i], jvp.primals[i].type()));
              }
              return jvp.primals;
            },
            all, dims, {}, axis);
        return JvpResult{part(results, 0, outputs), part(results, outputs, results.size())};
      });
  Attrs attrs = args.attrs.with("call_jaxpr", derived.program)
                    .with("jvp_jaxpr_fun", std::shared_ptr<const Opaque>(std::move(batched)));
  return {capibara::bind(args.primitive, moved_to_front(args), attrs), std::vector<int64_t>(outputs, 0)};
}

// ---- custom_vjp_call --------------------------------------------------------------------------------------------

JvpResult custom_vjp(const JvpArgs& args) {
  check_captured("custom_vjp", args);
  std::size_t captured = captured_count(args.attrs);
  auto rule = args.attrs.opaque<CustomVjpRule>("fwd_jaxpr_thunk");
  Mask perturbed = defined_mask(args.tangents.subspan(captured));
  auto [outputs, residuals] = rule->forward(args.primals.subspan(captured), perturbed);
  Arrays operands = residuals;
  Mask in_zeros;
  for (std::size_t i = captured; i < args.primals.size(); ++i) {
    in_zeros.push_back(!args.tangents[i].defined());
    if (args.tangents[i].defined()) operands.push_back(args.tangents[i]);
  }
  Attr::List types;
  Mask with_tangent;
  for (const Array& output : outputs) {
    with_tangent.push_back(is_inexact(output.dtype()));
    if (with_tangent.back()) types.emplace_back(tangent_type(output.type()));
  }
  static const Primitive custom_lin = primitive("custom_lin");
  Arrays tangents = capibara::bind(custom_lin, operands,
                                   {{"bwd", std::shared_ptr<const Opaque>(rule)},
                                    {"num_res", static_cast<int64_t>(residuals.size())},
                                    {"out_types", std::move(types)},
                                    {"with_tangent", Attr::bools(with_tangent)},
                                    {"in_zeros", Attr::bools(in_zeros)},
                                    {"symbolic_zeros", args.attrs.boolean("symbolic_zeros")}});
  return {std::move(outputs), spread(tangents, with_tangent)};
}

Arrays transpose_custom_lin(const TransposeArgs& args) {
  std::size_t residuals = static_cast<std::size_t>(args.attrs.integer("num_res"));
  Mask with_tangent = args.attrs.booleans("with_tangent"), in_zeros = args.attrs.booleans("in_zeros");
  Arrays cotangents;
  const Attr::List& types = args.attrs.list("out_types");
  const bool symbolic = args.attrs.boolean("symbolic_zeros");
  std::size_t next = 0;
  for (bool has : with_tangent) {
    if (!has) {
      cotangents.push_back(Array());
      continue;
    }
    const Array& cotangent = args.cotangents[next];
    cotangents.push_back(symbolic ? cotangent : instantiate(cotangent, *types[next].get_if<ArrayType>()));
    ++next;
  }
  Arrays results = args.attrs.opaque<CustomVjpRule>("bwd")->backward(args.inputs.first(residuals), cotangents);
  Arrays all(residuals);
  append(all, where(results, !in_zeros));
  return all;
}

BatchResult batch_custom_vjp(const BatchArgs& args) {
  Mask mapped = mapped_mask(args);
  std::size_t outputs = args.attrs.program("call_jaxpr").outputs().size();
  BatchedProgram derived = batch_program(args.attrs.program("call_jaxpr"), args.axis, mapped, Mask(outputs, true));
  auto rule = args.attrs.opaque<CustomVjpRule>("fwd_jaxpr_thunk");
  Mask arguments = part(mapped, captured_count(args.attrs), mapped.size());
  MappedAxis axis = args.axis;
  auto residual_dims = std::make_shared<std::vector<int64_t>>();  // where forward left the axis, for backward
  auto forward = [rule, axis, arguments, residual_dims](std::span<const Array> inputs, const Mask& perturbed) {
    std::size_t count = 0;
    BatchResult all = vmap_in_place(
        [&](std::span<const Array> in) {
          auto [outs, residuals] = rule->forward(in, perturbed);
          count = outs.size();
          append(outs, residuals);
          return outs;
        },
        inputs, front_dims(arguments), axis);
    for (std::size_t i = 0; i < count; ++i) all.outputs[i] = batch_at(all.outputs[i], all.dims[i], axis.size);
    residual_dims->assign(all.dims.begin() + static_cast<std::ptrdiff_t>(count), all.dims.end());
    return std::pair(part(all.outputs, 0, count), part(all.outputs, count, all.outputs.size()));
  };
  auto backward = [rule, axis, arguments, residual_dims](std::span<const Array> residuals,
                                                         std::span<const Array> cotangents) {
    Arrays operands(residuals.begin(), residuals.end());
    Mask given = defined_mask(cotangents);
    append(operands, where(cotangents, given));
    std::vector<int64_t> in_dims = *residual_dims;
    in_dims.resize(operands.size(), 0);
    Mask results_given;
    Arrays results = vmap_flat(
        [&](std::span<const Array> in) {
          Arrays all = rule->backward(in.first(residuals.size()), spread(in.subspan(residuals.size()), given));
          results_given = defined_mask(all);
          Arrays out = where(all, results_given);
          return out;
        },
        operands, in_dims, {}, axis);
    Arrays all = spread(results, results_given);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].defined() && !arguments[i]) all[i] = jax::lax::reduce_sum(all[i], {.axes = {0}});
    }
    return all;
  };
  auto batched = std::make_shared<CustomVjpRule>(rule->forward_name, rule->backward_name, forward, backward);
  std::shared_ptr<const Opaque> opaque = batched;
  Attrs attrs = args.attrs.with("call_jaxpr", derived.program).with("fwd_jaxpr_thunk", opaque).with("bwd", opaque);
  return {capibara::bind(args.primitive, moved_to_front(args), attrs), std::vector<int64_t>(outputs, 0)};
}

// ---- custom_vmap_call -------------------------------------------------------------------------------------------

BatchResult batch_custom_vmap(const BatchArgs& args) {
  auto rule = args.attrs.opaque<CustomVmapRule>("rule");
  CustomVmapRule::Result result = rule->rule(args.axis.size, mapped_mask(args), moved_to_front(args));
  return {result.outputs, front_dims(result.batched)};
}

JvpResult jvp_custom_vmap(const JvpArgs& args) {
  const Program& called = args.attrs.program("call_jaxpr");
  return jvp_of_call(called, args, [&](const Program& program, std::span<const Array> operands) {
    return call_program(program, operands, called.name());
  });
}

PrimitiveRecord call_record(std::string name, std::string doc) {
  PrimitiveRecord record;
  record.name = std::move(name);
  record.doc = std::move(doc);
  record.type = call_type;
  record.lower = lower_call;
  return record;
}

}  // namespace

std::vector<PrimitiveRecord> custom_rule_records() {
  PrimitiveRecord jvp = call_record("custom_jvp_call", "Calls a function whose forward derivative the user wrote.");
  jvp.jvp = custom_jvp;
  jvp.transpose = transpose_custom_jvp;
  jvp.batch = batch_custom_jvp;

  PrimitiveRecord vjp = call_record("custom_vjp_call", "Calls a function whose reverse derivative the user wrote.");
  vjp.jvp = custom_vjp;
  vjp.batch = batch_custom_vjp;
  vjp.print_attr = [](const std::string& name, const Attr& attr) -> std::optional<std::string> {
    const auto* opaque = attr.get_if<std::shared_ptr<const Opaque>>();
    const auto* rule = opaque && name == "bwd" ? dynamic_cast<const CustomVjpRule*>(opaque->get()) : nullptr;
    return rule ? std::optional(rule->backward_name) : std::nullopt;
  };

  PrimitiveRecord linear;
  linear.name = "custom_lin";
  linear.doc = "The linear map that a custom_vjp function's backward rule transposes; it has no forward evaluation.";
  linear.type = [](std::span<const ArrayType>, const Attrs& attrs) {
    Types types;
    for (const Attr& attr : attrs.list("out_types")) types.push_back(*attr.get_if<ArrayType>());
    return TypeResult(std::move(types));
  };
  linear.transpose = transpose_custom_lin;
  linear.print_attr = [](const std::string& name, const Attr& attr) -> std::optional<std::string> {
    if (name == "bwd") {
      auto rule = std::dynamic_pointer_cast<const CustomVjpRule>(*attr.get_if<std::shared_ptr<const Opaque>>());
      return rule->backward_name;
    }
    if (name != "in_zeros") return std::nullopt;
    std::string text = "[";
    for (const Attr& entry : **attr.get_if<std::shared_ptr<const Attr::List>>()) {
      text += concat(text.size() > 1 ? ", " : "", *entry.get_if<bool>() ? "True" : "False");
    }
    return text + "]";
  };
  linear.evaluate = [](std::span<const Array>, const Attrs&) -> Arrays {
    throw TypeError("can't apply forward-mode differentiation (jvp) to a custom_vjp function.");
  };

  PrimitiveRecord vmap = call_record("custom_vmap_call", "Calls a function whose batched form the user wrote.");
  vmap.jvp = jvp_custom_vmap;
  vmap.batch = batch_custom_vmap;
  return {jvp, vjp, linear, vmap};
}

}  // namespace capibara
