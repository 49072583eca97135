// checkpoint: stages the function whose values are rematerialised, and the policies for which values are saved.
#include <capibara/remat.h>

#include "program/derive/custom_rules.h"
#include "program/ir/handles.h"
#include "program/trace/stage.h"

#include <algorithm>
#include <set>

namespace capibara {

namespace detail {

Arrays checkpoint_leaves(const FlatFunction& function, const TreeDef& in, std::span<const Array> leaves,
                         const jax::CheckpointOptions& options) {
  static const Primitive remat = primitive("remat2");
  require_values("checkpoint", in, leaves);
  Types types;
  for (const Array& leaf : leaves) types.push_back(leaf.type());
  require_tracing_allowed(options.name);
  Staged staged = stage_open(function, types, options.name);
  Arrays operands = staged.program.constants();
  operands.insert(operands.end(), staged.captured.begin(), staged.captured.end());
  operands.insert(operands.end(), leaves.begin(), leaves.end());
  Attr policy;
  if (options.policy) {
    policy = std::shared_ptr<const Opaque>(
        std::make_shared<Policy>(options.policy->save, options.policy->name, options.policy->named));
  }
  return capibara::bind(remat, operands,
                        {{"jaxpr", constants_to_inputs(staged.program)},
                         {"prevent_cse", options.prevent_cse},
                         {"differentiated", false},
                         {"policy", policy}});
}

Array name_leaf(const Array& array, const std::string& name) {
  static const Primitive name_primitive = primitive("name");
  return bind1(name_primitive, {array}, {{"name", name}});
}

}  // namespace detail

namespace jax::checkpoint_policies {

namespace {

bool is_plain_dot(const Primitive& primitive, const Attrs& attrs) {
  if (primitive != prim::dot_general()) return false;
  const auto& dims = attrs.get<DotDimensionNumbers>("dimension_numbers");
  return dims.lhs_batch.empty() && dims.rhs_batch.empty();
}

CheckpointPolicy dots(bool only_if_no_batch_dims) {
  return {concat("DotsSaveable(only_if_no_batch_dims=", only_if_no_batch_dims ? "True)" : "False)"),
          [only_if_no_batch_dims](const Primitive& primitive, std::span<const ArrayType>, const Attrs& attrs) {
            if (only_if_no_batch_dims) return is_plain_dot(primitive, attrs);
            return primitive == prim::dot_general() || primitive == prim::conv_general_dilated();
          },
          true};
}

CheckpointPolicy constant(const char* name, bool save) {
  return {concat("<function ", name, ">"),
          [save](const Primitive&, std::span<const ArrayType>, const Attrs&) { return save; }, true};
}

// Formats the names like Python's frozenset of strings, in sorted order.
std::string names_text(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += concat(text.empty() ? "" : ", ", "'", name, "'");
  return names.empty() ? "frozenset()" : concat("frozenset({", text, "})");
}

CheckpointPolicy by_name(std::string text, std::set<std::string> names, bool save_listed) {
  return {std::move(text),
          [names = std::move(names), save_listed](const Primitive& primitive, std::span<const ArrayType>,
                                                  const Attrs& attrs) {
            return primitive == prim::name() && names.contains(attrs.text("name")) == save_listed;
          },
          true};
}

std::set<std::string> as_set(const std::vector<std::string>& names) { return {names.begin(), names.end()}; }

}  // namespace

const CheckpointPolicy everything_saveable = constant("everything_saveable", true);
const CheckpointPolicy nothing_saveable = constant("nothing_saveable", false);
const CheckpointPolicy dots_saveable = dots(false);
const CheckpointPolicy checkpoint_dots = dots(false);
const CheckpointPolicy dots_with_no_batch_dims_saveable = dots(true);
const CheckpointPolicy checkpoint_dots_with_no_batch_dims = dots(true);

CheckpointPolicy offload_dot_with_no_batch_dims(const std::string& offload_src, const std::string& offload_dst) {
  CheckpointPolicy policy = dots(true);
  policy.name = concat("offload_dot_with_no_batch_dims(", offload_src, ", ", offload_dst, ")");
  return policy;
}

// jax 0.10.2 saves everything here, whatever the names.
CheckpointPolicy save_anything_except_these_names(const std::vector<std::string>& names) {
  CheckpointPolicy policy = constant("save_anything_except_these_names", true);
  policy.name = concat("save_anything_except_these_names(", names_text(as_set(names)), ")");
  return policy;
}

CheckpointPolicy save_any_names_but_these(const std::vector<std::string>& names) {
  std::set<std::string> set = as_set(names);
  return by_name(concat("SaveAnyNamesButThese(names=", names_text(set), ")"), set, false);
}

CheckpointPolicy save_only_these_names(const std::vector<std::string>& names) {
  std::set<std::string> set = as_set(names);
  return by_name(concat("SaveOnlyTheseNames(saveable_names=", names_text(set), ")"), set, true);
}

CheckpointPolicy save_from_both_policies(const CheckpointPolicy& first, const CheckpointPolicy& second) {
  return {concat("save_from_both_policies(", first.name, ", ", second.name, ")"),
          [a = first.save, b = second.save](const Primitive& primitive, std::span<const ArrayType> types,
                                            const Attrs& attrs) {
            return a(primitive, types, attrs) || b(primitive, types, attrs);
          },
          first.named && second.named};
}

CheckpointPolicy save_and_offload_only_these_names(const OffloadOptions& options) {
  std::set<std::string> saved = as_set(options.names_which_can_be_saved);
  std::set<std::string> offloaded = as_set(options.names_which_can_be_offloaded);
  for (const std::string& name : saved) {
    if (!offloaded.contains(name)) continue;
    throw ValueError(concat("save_and_offload_only_these_names: '", name,
                            "' is in both names_which_can_be_saved and names_which_can_be_offloaded"));
  }
  std::string text = concat("save_and_offload_only_these_names(", names_text(saved), ", ", names_text(offloaded), ", ",
                            options.offload_src, ", ", options.offload_dst, ")");
  saved.insert(offloaded.begin(), offloaded.end());
  return by_name(std::move(text), std::move(saved), true);
}

}  // namespace jax::checkpoint_policies
}  // namespace capibara
