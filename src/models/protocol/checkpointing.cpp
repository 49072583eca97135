// Gradient checkpointing of any model with layers: the backward pass recomputes groups of them.
#include "models/protocol/checkpointing.h"

#include <capibara/error.h>
#include <capibara/model.h>

namespace capibara {

namespace {

Arrays run_checkpointed(const ModelLayers& layers, int64_t every, const jax::CheckpointPolicy& policy,
                        const Parameters& parameters, Arrays carry) {
  for (int64_t first = 0; first < layers.count; first += every) {
    const int64_t last = std::min(layers.count, first + every);
    // Parameters are captured: the operands of a group are only those that its layers read.
    auto body = [&](const Arrays& input) {
      Arrays value = input;
      for (int64_t layer = first; layer < last; ++layer) value = layers.run(parameters, layer, value);
      return value;
    };
    carry = jax::checkpoint(body, {.policy = policy})(carry);
  }
  return carry;
}

}  // namespace

const jax::CheckpointPolicy& checkpoint_policy_of(const std::string& name) {
  namespace policies = jax::checkpoint_policies;
  struct Entry {
    const char* name;
    const jax::CheckpointPolicy& policy;
  };
  static const jax::CheckpointPolicy offloaded = policies::offload_dot_with_no_batch_dims("device", "pinned_host");
  static const Entry entries[] = {
      {"everything", policies::everything_saveable},
      {"everything_saveable", policies::everything_saveable},
      {"nothing_saveable", policies::nothing_saveable},
      {"minimal", policies::dots_with_no_batch_dims_saveable},
      {"offload", offloaded},
      {"dots_saveable", policies::dots_saveable},
      {"dots_with_no_batch_dims_saveable", policies::dots_with_no_batch_dims_saveable},
  };
  std::string names;
  for (const Entry& entry : entries) {
    if (name == entry.name) return entry.policy;
    names += concat(names.empty() ? "" : ", ", entry.name);
  }
  throw ValueError(concat("enable_gradient_checkpointing: checkpoint_policy is one of ", names, ", got '", name, "'"));
}

AnyModel enable_gradient_checkpointing(const AnyModel& model, int64_t every, const std::string& policy) {
  if (every < 1) {
    throw ValueError(
        concat("enable_gradient_checkpointing: checkpoint_every_n_layers must be at least 1, got ", every));
  }
  const jax::CheckpointPolicy& chosen = checkpoint_policy_of(policy);
  if (model.parts().checkpointed) return AnyModel(model.parts().checkpointed(every, policy));
  if (!model.layers()) {
    throw ValueError(concat("enable_gradient_checkpointing: the model '", model.name(),
                            "' has no layers (argument 'model'); expected layer_count, start, run_layer and finish, ",
                            "without which the whole model would be one group and no memory saved"));
  }
  ModelParts parts = model.parts();
  const auto layers = std::make_shared<const ModelLayers>(*model.layers());
  parts.loss = [=](const Parameters& parameters, const Arrays& batch) {
    Arrays carry = run_checkpointed(*layers, every, chosen, parameters, layers->start(parameters, batch));
    return layers->finish(parameters, carry, batch);
  };
  if (layers->output) {
    parts.apply = [=](const Parameters& parameters, const Arrays& batch) {
      Arrays carry = run_checkpointed(*layers, every, chosen, parameters, layers->start(parameters, batch));
      return layers->output(parameters, carry);
    };
  }
  parts.layers->checkpoint_every_n_layers = every;
  parts.layers->checkpoint_policy = policy;
  // Checkpointing again replaces the groups: the layers themselves are unchanged.
  return AnyModel(std::move(parts));
}

}  // namespace capibara
