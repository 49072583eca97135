// Functions with the user's own derivative: custom_jvp_call, custom_vjp_call and the linear half of the latter.
#include "lax/control/control.h"
#include "lax/sharding/factors.h"
#include "lax/sharding/splits.h"
#include "program/derive/custom_rules.h"

#include <algorithm>
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
    operands.push_back(args.mapped(i) ? batch_at(args.inputs[i], args.dims[i], args.axis) : args.inputs[i]);
  }
  return operands;
}

Mapping mapping_over(const MappedAxis& axis) {
  return {[axis](const FlatFunction& function, std::span<const Array> inputs, std::span<const int64_t> dims) {
            return vmap_in_place(function, inputs, dims, axis);
          },
          axis.size};
}

// The batched form of a call's program. If it has collectives over the axis, an output that all lanes share stays
// unmapped. Otherwise all outputs are mapped: a rule's derivatives may be mapped where values are
// not.
BatchedProgram batched_call(const BatchArgs& args, const Mask& mapped) {
  const Program& program = args.attrs.program("call_jaxpr");
  const std::vector<std::string>& axes = program.effects().axes;
  const bool collective = std::find(axes.begin(), axes.end(), args.axis.name) != axes.end();
  return batch_program(program, args.axis, mapped, Mask(program.outputs().size(), !collective));
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
  JvpResult result = args.attrs.opaque<CustomJvpRule>("jvp_jaxpr_fun")->rule(args.primals.subspan(captured), tangents);
  const Types expected = args.attrs.program("call_jaxpr").output_types();
  bool fits = result.primals.size() == expected.size();
  for (std::size_t i = 0; fits && i < expected.size(); ++i) {
    fits = result.primals[i].shape() == expected[i].shape && result.primals[i].dtype() == expected[i].dtype;
  }
  if (fits) return result;
  auto list = [](const auto& all, auto type_of) {
    std::string text;
    for (const auto& one : all) text += concat("\n    ", to_string(type_of(one)));
    return text;
  };
  throw TypeError(concat(
      "Custom JVP rule ", args.attrs.opaque<CustomJvpRule>("jvp_jaxpr_fun")->name, " for function ",
      args.attrs.text("name"),
      " must produce a pair (list or tuple of length two) where the first element represents the primal output ",
      "(equal in value to the output of the custom_jvp-decorated function ", args.attrs.text("name"),
      ", and in particular with leaves of the same shape/dtype), but instead the JVP rule output's first element ",
      "had shapes/dtypes of:", list(result.primals, [](const Array& x) { return x.type(); }),
      "\nwhile the custom_jvp-decorated function had output shapes/dtypes of:",
      list(expected, [](const ArrayType& type) { return type; })));
}

// A function that is itself linear: its rule is not used in its transpose.
Arrays transpose_custom_jvp(const TransposeArgs& args) {
  Mask linear;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) linear.push_back(args.linear(i));
  return backward_pass(args.attrs.program("call_jaxpr"), linear, args.inputs, args.cotangents);
}

BatchResult batch_custom_jvp(const BatchArgs& args) {
  Mask mapped = mapped_mask(args);
  BatchedProgram derived = batched_call(args, mapped);
  const auto outputs = std::make_shared<Mask>(derived.mapped_outputs);
  const std::shared_ptr<const CustomJvpRule> batched =
      batched_rule(args.attrs.opaque<CustomJvpRule>("jvp_jaxpr_fun"), mapping_over(args.axis),
                   part(mapped, captured_count(args.attrs), mapped.size()), outputs);
  std::shared_ptr<const Opaque> rule = std::make_shared<CustomJvpRule>(
      batched->name, [batched, outputs, values = derived.mapped_outputs, name = args.axis.name](
                         std::span<const Array> primals, std::span<const Array> tangents) {
        JvpResult result = batched->rule(primals, tangents);
        if (*outputs != values) {
          throw ValueError(concat("custom_jvp rule ", batched->name, ": a tangent is mapped over the axis '", name,
                                  "', its output is not"));
        }
        return result;
      });
  Attrs attrs = args.attrs.with("call_jaxpr", derived.program).with("jvp_jaxpr_fun", std::move(rule));
  return {capibara::bind(args.primitive, moved_to_front(args), attrs), front_dims(derived.mapped_outputs)};
}

// ---- custom_vjp_call --------------------------------------------------------------------------------------------

JvpResult custom_vjp(const JvpArgs& args) {
  check_captured("custom_vjp", args);
  std::size_t captured = captured_count(args.attrs);
  return jvp_by_forward(args.attrs.opaque<CustomVjpRule>("fwd_jaxpr_thunk"), args.attrs.boolean("symbolic_zeros"),
                        args.primals.subspan(captured), args.tangents.subspan(captured));
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
  Arrays results = args.attrs.opaque<CustomBackward>("bwd")->rule(args.inputs.first(residuals), cotangents);
  Arrays all(residuals);
  append(all, where(results, !in_zeros));
  return all;
}

[[noreturn]] void refuse_forward_mode() {
  throw TypeError("can't apply forward-mode autodiff (jvp) to a custom_vjp function.");
}

BatchResult batch_custom_vjp(const BatchArgs& args) {
  Mask mapped = mapped_mask(args);
  BatchedProgram derived = batched_call(args, mapped);
  std::shared_ptr<const Opaque> rule = batched_rule(
      args.attrs.opaque<CustomVjpRule>("fwd_jaxpr_thunk"), mapping_over(args.axis),
      part(mapped, captured_count(args.attrs), mapped.size()), std::make_shared<Mask>(derived.mapped_outputs));
  Attrs attrs = args.attrs.with("call_jaxpr", derived.program).with("fwd_jaxpr_thunk", rule).with("bwd", rule);
  return {capibara::bind(args.primitive, moved_to_front(args), attrs), front_dims(derived.mapped_outputs)};
}

// ---- custom_vmap_call -------------------------------------------------------------------------------------------

BatchResult batch_custom_vmap(const BatchArgs& args) {
  auto rule = args.attrs.opaque<CustomVmapRule>("rule");
  CustomVmapRule::Result result = rule->rule(args.axis.size, mapped_mask(args), moved_to_front(args));
  return {result.outputs, front_dims(result.batched)};
}

// A batched call of the derivative: the derivative of the rule's function of the primals. Arguments of which
// only the primal or only the tangent is mapped are unmapped for the rule, and its derivative is mapped over them.
CustomVmapRule::Result derived_rule(const CustomVmapRule& rule, int64_t size, const Mask& batched,
                                    std::span<const Array> inputs, const Mask& with_tangent,
                                    const Mask& wanted_tangents) {
  std::size_t count = with_tangent.size();
  Arrays primals = part(inputs, 0, count), tangents = spread(inputs.subspan(count), with_tangent);
  Mask primal_mapped = part(batched, 0, count), tangent_mapped = primal_mapped;
  for (std::size_t i = 0, next = count; i < count; ++i) {
    if (with_tangent[i]) tangent_mapped[i] = batched[next++];
  }
  Mask both(count), one(count);
  for (std::size_t i = 0; i < count; ++i) {
    both[i] = primal_mapped[i] && tangent_mapped[i];
    one[i] = primal_mapped[i] != tangent_mapped[i];
  }
  if (any(both) && any(one)) {  // the rule handles one axis only
    for (std::size_t i = 0; i < count; ++i) {
      if (!one[i]) continue;
      primals[i] = batch_at(primals[i], primal_mapped[i] ? 0 : not_mapped, size);
      tangents[i] = batch_at(tangents[i], tangent_mapped[i] ? 0 : not_mapped, size);
    }
    both = either(both, one);
    one.assign(count, false);
  }
  Mask ruled;  // outputs that the rule maps
  FlatFunction derivative = [&](std::span<const Array> in) {
    FlatFunction primal = [&](std::span<const Array> xs) {
      CustomVmapRule::Result result = rule.rule(size, both, xs);
      ruled = result.batched;
      return result.outputs;
    };
    JvpResult jvp = jvp_flat(primal, in.first(count), spread(in.subspan(count), with_tangent));
    Arrays outputs = jvp.primals;
    for (std::size_t i = 0; i < jvp.tangents.size(); ++i) {
      if (wanted_tangents[i]) outputs.push_back(instantiate(jvp.tangents[i], jvp.primals[i].type()));
    }
    return outputs;
  };
  Arrays operands = primals;
  append(operands, where(tangents, with_tangent));
  std::vector<int64_t> dims;
  for (std::size_t i = 0; i < count; ++i) dims.push_back(one[i] && primal_mapped[i] ? 0 : not_mapped);
  for (std::size_t i = 0; i < count; ++i) {
    if (with_tangent[i]) dims.push_back(one[i] && tangent_mapped[i] ? 0 : not_mapped);
  }
  BatchResult result = any(one) ? vmap_in_place(derivative, operands, dims, MappedAxis{"", size})
                                : BatchResult{derivative(operands), std::vector<int64_t>()};
  result.dims.resize(result.outputs.size(), not_mapped);
  CustomVmapRule::Result all;
  Mask of_output = ruled;
  for (std::size_t i = 0; i < wanted_tangents.size(); ++i) {
    if (wanted_tangents[i]) of_output.push_back(ruled[i]);
  }
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    bool mapped = result.dims[i] != not_mapped;
    all.outputs.push_back(mapped ? batch_at(result.outputs[i], result.dims[i], size) : result.outputs[i]);
    all.batched.push_back(mapped || of_output[i]);
  }
  return all;
}

JvpResult jvp_custom_vmap(const JvpArgs& args) {
  auto rule = args.attrs.opaque<CustomVmapRule>("rule");
  Mask with_tangent = defined_mask(args.tangents);
  JvpProgram derived = jvp_program(args.attrs.program("call_jaxpr"), with_tangent);
  std::shared_ptr<const Opaque> of_derivative = std::make_shared<CustomVmapRule>(
      rule->name, [rule, with_tangent, wanted = derived.nonzero_outputs](int64_t size, const Mask& batched,
                                                                         std::span<const Array> inputs) {
        return derived_rule(*rule, size, batched, inputs, with_tangent, wanted);
      });
  Arrays operands(args.primals.begin(), args.primals.end());
  append(operands, where(args.tangents, with_tangent));
  Arrays all = capibara::bind(args.primitive, operands,
                              args.attrs.with("call_jaxpr", derived.program).with("rule", std::move(of_derivative)));
  std::size_t count = derived.nonzero_outputs.size();
  return {part(all, 0, count), spread(part(all, count, all.size()), derived.nonzero_outputs)};
}

// In reverse mode the function itself is split; its rule is not used by the halves.
PartialEvalSplit partial_eval_custom_vmap(const PartialEvalArgs& args) {
  static const Primitive jit = primitive("jit");
  const Attrs attrs{{"jaxpr", args.attrs.program("call_jaxpr")}, {"name", args.attrs.text("name")}};
  return jit->partial_eval({jit, args.types, attrs, args.unknown, args.policy});
}

PrimitiveRecord call_record(std::string name, std::string doc) {
  PrimitiveRecord record;
  record.name = std::move(name);
  record.factors = call_factors;
  record.localise = localise_call;
  record.doc = std::move(doc);
  record.traits.control = Control::call;
  record.traits.multiple_results = true;
  record.traits.called_program = "call_jaxpr";
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
  linear.factors = whole_factors;
  linear.splits = stated_splits;
  linear.localise = nullptr;
  linear.traits.repeatable = false;
  linear.traits.multiple_results = true;
  linear.doc = "The linear map that a custom_vjp function's backward rule transposes; it has no forward evaluation.";
  linear.type = [](std::span<const ArrayType>, const Attrs& attrs) {
    Types types;
    for (const Attr& attr : attrs.list("out_types")) types.push_back(*attr.get_if<ArrayType>());
    return TypeResult(std::move(types));
  };
  linear.transpose = transpose_custom_lin;
  linear.batch = [](const BatchArgs&) -> BatchResult { refuse_forward_mode(); };
  linear.print_attr = [](const std::string& name, const Attr& attr) -> std::optional<std::string> {
    if (name != "in_zeros") return std::nullopt;
    std::string text = "[";
    for (const Attr& entry : **attr.get_if<std::shared_ptr<const Attr::List>>()) {
      text += concat(text.size() > 1 ? ", " : "", *entry.get_if<bool>() ? "True" : "False");
    }
    return text + "]";
  };
  linear.evaluate = [](std::span<const Array>, const Attrs&) -> Arrays { refuse_forward_mode(); };

  PrimitiveRecord vmap = call_record("custom_vmap_call", "Calls a function whose batched form the user wrote.");
  vmap.jvp = jvp_custom_vmap;
  vmap.batch = batch_custom_vmap;
  vmap.partial_eval = partial_eval_custom_vmap;
  return {jvp, vjp, linear, vmap};
}

}  // namespace capibara
