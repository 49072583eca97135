// Binding functions with the user's own rules: their programs are staged, their rules are carried by the equation.
#include "program/derive/custom.h"

#include "program/derive/derive.h"
#include "program/derive/values.h"

#include <algorithm>

namespace capibara::detail {

namespace {

// The program of a function, closed over nothing, and the operands of its equation: captured values, then the leaves.
struct ClosedCall {
  Program program;
  Arrays operands;
  int64_t captured;
};

ClosedCall close(const char* operation, const FlatFunction& function, const TreeDef& in, std::span<const Array> leaves,
                 const std::string& name) {
  require_values(operation, in, leaves);
  Types types;
  for (const Array& leaf : leaves) types.push_back(leaf.type());
  Staged staged = stage_open(function, types, name);
  ClosedCall call{constants_to_inputs(staged.program), staged.program.constants(), 0};
  call.operands.insert(call.operands.end(), staged.captured.begin(), staged.captured.end());
  call.captured = static_cast<int64_t>(call.operands.size());
  call.operands.insert(call.operands.end(), leaves.begin(), leaves.end());
  return call;
}

}  // namespace

Arrays bind_custom(const CustomCall& call, const TreeDef& in, std::span<const Array> leaves) {
  auto is_tracer = [](const Array& leaf) { return leaf.defined() && leaf.is_tracer(); };
  require_values(call.jvp ? "custom_jvp" : "custom_vjp", in, leaves);
  if (evaluating() && std::none_of(leaves.begin(), leaves.end(), is_tracer)) return call.function(leaves);
  if (call.jvp) {
    static const Primitive custom_jvp_call = primitive("custom_jvp_call");
    ClosedCall closed = close("custom_jvp", call.function, in, leaves, call.names.function);
    return capibara::bind(custom_jvp_call, closed.operands,
                          {{"name", call.names.function},
                           {"call_jaxpr", closed.program},
                           {"jvp_jaxpr_fun", std::shared_ptr<const Opaque>(call.jvp)},
                           {"num_consts", closed.captured},
                           {"symbolic_zeros", call.symbolic_zeros}});
  }
  static const Primitive custom_vjp_call = primitive("custom_vjp_call");
  ClosedCall closed = close("custom_vjp", call.function, in, leaves, call.names.function);
  std::shared_ptr<const Opaque> rule = call.vjp;
  return capibara::bind(custom_vjp_call, closed.operands,
                        {{"name", call.names.function},
                         {"call_jaxpr", closed.program},
                         {"fwd_jaxpr_thunk", rule},
                         {"bwd", rule},
                         {"num_consts", closed.captured},
                         {"symbolic_zeros", call.symbolic_zeros}});
}

bool is_staged(const Trace& trace) {
  for (const Trace* outer = trace.parent.get(); outer && outer->parent; outer = outer->parent.get()) {
    if (!dynamic_cast<const CustomCallTrace*>(outer)) return true;
  }
  return false;
}

Arrays call_custom(const CustomCall& call, std::span<const Array> inputs) {
  std::shared_ptr<Trace> trace = current_trace();
  if (auto* taking = dynamic_cast<CustomCallTrace*>(trace.get())) {
    if (std::optional<Arrays> outputs = taking->call(call, inputs)) return *outputs;
  }
  std::vector<TreeDef> leaves(inputs.size(), TreeDef::leaf());
  return bind_custom(call, TreeDef::tuple(std::move(leaves)), inputs);
}

Arrays custom_jvp_leaves(const FlatFunction& function, const TreeDef& in, std::span<const Array> leaves,
                         const RuleNames& names, FlatJvpRule rule) {
  return bind_custom({function, names, std::make_shared<CustomJvpRule>(names.first, std::move(rule)), nullptr}, in,
                     leaves);
}

Arrays custom_vjp_leaves(const FlatFunction& function, const TreeDef& in, std::span<const Array> leaves,
                         const RuleNames& names, FlatForward forward, FlatBackward backward) {
  auto rule = [forward = std::move(forward), backward = std::move(backward)](std::span<const Array> arguments,
                                                                             const std::vector<bool>&) {
    auto [outputs, residuals] = forward(arguments);
    return CustomVjpRule::Forwarded{std::move(outputs), std::move(residuals), backward};
  };
  return bind_custom({function, names, nullptr, std::make_shared<CustomVjpRule>(names.first, names.second, rule)}, in,
                     leaves);
}

Arrays custom_vmap_leaves(const FlatFunction& function, const TreeDef& in, std::span<const Array> leaves,
                          const RuleNames& names, FlatVmapRule rule) {
  static const Primitive custom_vmap_call = primitive("custom_vmap_call");
  ClosedCall call = close("custom_vmap", function, in, leaves, names.function);
  std::size_t captured = static_cast<std::size_t>(call.captured);
  const std::size_t count = call.program.outputs().size();
  auto checked = [rule = std::move(rule), names, captured, count](int64_t size, const std::vector<bool>& batched,
                                                                  std::span<const Array> inputs) {
    for (std::size_t i = 0; i < captured; ++i) {
      if (batched[i]) {
        throw UnexpectedTracerError(
            concat("custom_vmap: function ", names.function,
                   " closes over a value that is being mapped.\nHint: pass it as an argument."));
      }
    }
    std::vector<bool> arguments(batched.begin() + static_cast<std::ptrdiff_t>(captured), batched.end());
    auto [outputs, mask] = rule(size, arguments, inputs.subspan(captured));
    if (outputs.size() != count || mask.size() != outputs.size()) {
      throw TypeError(concat("custom_vmap: rule ", names.first, " must return ", count,
                             " arrays and as many flags, got ", outputs.size(), " and ", mask.size()));
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!mask[i] || (outputs[i].ndim() > 0 && outputs[i].shape()[0] == size)) continue;
      throw TypeError(concat("custom_vmap: rule ", names.first, " must return an array with a first dimension of ",
                             size, " for output ", i, ", which it calls batched, got ", to_string(outputs[i].type())));
    }
    return CustomVmapRule::Result{std::move(outputs), std::move(mask)};
  };
  std::shared_ptr<const Opaque> opaque = std::make_shared<CustomVmapRule>(names.first, std::move(checked));
  return capibara::bind(custom_vmap_call, call.operands,
                        {{"name", names.function}, {"call_jaxpr", call.program}, {"rule", std::move(opaque)}});
}

// ---- checks of what the rules return ------------------------------------------------------------------------------

void throw_missing_rule(const char* kind, const char* definition, const std::string& function) {
  throw NameError(concat("No rule defined for ", kind, " function ", function, " using ", definition, "."));
}

void check_rule_structure(const std::string& what, const TreeDef& expected, const TreeDef& got) {
  if (expected == got) return;
  throw TypeError(concat(what, ", but got ", expected.to_string(), " and ", got.to_string(),
                         " respectively: ", tree_difference(expected, got)));
}

void check_jvp_types(const Arrays& primals, const Arrays& tangents) {
  for (std::size_t i = 0; i < primals.size(); ++i) {
    if (!primals[i].defined() || !tangents[i].defined())
      throw TypeError("Custom JVP rule returned an empty array handle");
    ArrayType wanted = tangent_type(primals[i].type());
    if (wanted.shape == tangents[i].shape() && wanted.dtype == tangents[i].dtype()) continue;
    throw TypeError(concat(
        "Custom JVP rule must produce primal and tangent outputs with corresponding shapes and dtypes. Expected ",
        to_string(wanted), " (tangent type of ", to_string(primals[i].type()), ") but got ",
        to_string(tangents[i].type()), "."));
  }
}

Arrays filled_tangents(std::span<const Array> tangents, const Types& primal_types) {
  Arrays filled;
  for (std::size_t i = 0; i < tangents.size(); ++i) filled.push_back(instantiate(tangents[i], primal_types[i]));
  return filled;
}

std::atomic<bool>& checks_backward_rules() {
  static std::atomic<bool> checks = true;
  return checks;
}

void append_cotangents(Arrays& to, const RuleNames& names, std::size_t argument, const TreeDef& expected,
                       const TreeDef* got, const Arrays& leaves, std::span<const ArrayType> types) {
  if (!(expected == *got)) {
    throw TypeError(concat("Custom VJP bwd rule ", names.second,
                           " must produce an output with the same container (pytree) structure "
                           "as the args tuple of the primal function, but at output[",
                           argument, "] got ", got->to_string(), " for ", expected.to_string(), ": ",
                           tree_difference(expected, *got)));
  }
  std::vector<KeyPath> paths = expected.paths();
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    ArrayType wanted = tangent_type(types[i]);
    if (!leaves[i].defined() || wanted.dtype == DType::float0) {
      to.push_back(Array());
      continue;
    }
    const ArrayType& type = leaves[i].type();
    // Rules may compute in a different precision than their arguments': the cotangent is passed on unconverted.
    const bool differs = type.shape != wanted.shape || (type.dtype != wanted.dtype && !is_inexact(type.dtype));
    if (differs && checks_backward_rules()) {
      throw ValueError(concat("Custom VJP bwd rule ", names.second,
                              " must produce an output with the same type as the args tuple of "
                              "the primal function, but at output[",
                              argument, "]", keystr(paths[i]), " the bwd rule produced an output of type ",
                              to_string(type), " corresponding to an input of type ", to_string(types[i]), ", so the ",
                              type.shape != wanted.shape ? "shapes" : "dtypes", " do not match"));
    }
    to.push_back(leaves[i]);
  }
}

}  // namespace capibara::detail
