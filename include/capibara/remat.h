// Gradient checkpointing: values of a function are recomputed in the backward pass instead of being kept.
#pragma once

#include <capibara/callable.h>

#include <optional>
#include <string>
#include <vector>

namespace capibara::jax {

// Decides for each equation whether its outputs may be saved. Two policies with the same name from checkpoint_policies
// are equal.
struct CheckpointPolicy {
  std::string name;
  SavePolicy save;
  bool named = false;

  // A user's own policy.
  static CheckpointPolicy from(SavePolicy save, std::string name = "policy") {
    return {std::move(name), std::move(save), false};
  }
};

// jax.checkpoint_policies. On devices whose memory is host memory, offloading is the same as saving.
namespace checkpoint_policies {
extern const CheckpointPolicy everything_saveable;
extern const CheckpointPolicy nothing_saveable;
extern const CheckpointPolicy dots_saveable;
extern const CheckpointPolicy checkpoint_dots;
extern const CheckpointPolicy dots_with_no_batch_dims_saveable;
extern const CheckpointPolicy checkpoint_dots_with_no_batch_dims;
// Offloads the results of dot products without batch dimensions from one memory kind to another.
CheckpointPolicy offload_dot_with_no_batch_dims(const std::string& offload_src, const std::string& offload_dst);
// Saves every value except those that checkpoint_name has given one of these names.
CheckpointPolicy save_anything_except_these_names(const std::vector<std::string>& names);
// Saves every named value except those with these names.
CheckpointPolicy save_any_names_but_these(const std::vector<std::string>& names);
// Saves only the values with these names.
CheckpointPolicy save_only_these_names(const std::vector<std::string>& names);
// Saves what either policy saves.
CheckpointPolicy save_from_both_policies(const CheckpointPolicy& first, const CheckpointPolicy& second);
struct OffloadOptions {
  std::vector<std::string> names_which_can_be_saved = {}, names_which_can_be_offloaded = {};
  std::string offload_src = "device", offload_dst = "pinned_host";
};
// Saves the values with some names, offloads those with others, and recomputes the rest.
CheckpointPolicy save_and_offload_only_these_names(const OffloadOptions& options);
// save_only_these_names under its class name in jax.
inline CheckpointPolicy SaveOnlyTheseNames(const std::vector<std::string>& names) {
  return save_only_these_names(names);
}
// save_any_names_but_these under its class name in jax.
inline CheckpointPolicy SaveAnyNamesButThese(const std::vector<std::string>& names) {
  return save_any_names_but_these(names);
}
// save_and_offload_only_these_names under its class name in jax.
inline CheckpointPolicy SaveAndOffloadOnlyTheseNames(const OffloadOptions& options) {
  return save_and_offload_only_these_names(options);
}
}  // namespace checkpoint_policies

struct CheckpointOptions {
  std::optional<CheckpointPolicy> policy = std::nullopt;  // absent: nothing is saved
  bool prevent_cse = true;
  std::string name = "checkpoint";
};

}  // namespace capibara::jax

namespace capibara::detail {

Arrays checkpoint_leaves(const FlatFunction& function, const TreeDef& in, std::span<const Array> leaves,
                         const jax::CheckpointOptions& options);
Array name_leaf(const Array& array, const std::string& name);

}  // namespace capibara::detail

namespace capibara::jax {

template <class F>
class Checkpointed {
 public:
  using parameter_types = capibara::detail::parameters_t<F>;

  Checkpointed(F f, CheckpointOptions options) : f_(std::move(f)), options_(std::move(options)) {}

  template <class... Args>
  auto operator()(Args&&... args) const {
    namespace detail = capibara::detail;
    auto packed = detail::pack_arguments<F>(std::forward<Args>(args)...);
    using Arguments = decltype(packed);
    TreeDef in = detail::make_structure(packed), out;
    Arrays outputs =
        detail::checkpoint_leaves(detail::flattened<Arguments>(f_, in, out), in, detail::leaves_of(packed), options_);
    return detail::rebuild<detail::result_of<F, Arguments>>(out, outputs);
  }

 private:
  F f_;
  CheckpointOptions options_;
};

// A function whose backward pass recomputes what the policy does not save: checkpoint(f, {.policy =
// checkpoint_policies::dots_saveable}).
template <class F>
auto checkpoint(F&& f, CheckpointOptions options = {}) {
  return Checkpointed<std::decay_t<F>>(std::forward<F>(f), std::move(options));
}
// An alias of checkpoint.
template <class F>
auto remat(F&& f, CheckpointOptions options = {}) {
  return checkpoint(std::forward<F>(f), std::move(options));
}

// Names every array of a tree, for policies that select by name.
template <class T>
T checkpoint_name(const T& tree, const std::string& name) {
  return tree::map([&](const Array& leaf) { return capibara::detail::name_leaf(leaf, name); }, tree);
}

}  // namespace capibara::jax
