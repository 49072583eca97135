// shard_model and its table: strategies by name, or user-defined rules.
#include <capibara/tpu/sharding.h>

#include <algorithm>

#include "tpu/words.h"

namespace capibara::tpu {

training::ShardingTable sharding_table(const ParameterTypes& types, const Mesh& mesh, const ShardingChoice& choice,
                                       const std::string& operation) {
  if (!choice.rules.empty()) return shard_by_rules(types, mesh, choice.rules);
  const std::vector<std::string> names = training::sharding_strategies();
  if (std::find(names.begin(), names.end(), choice.strategy) == names.end()) {
    throw ValueError(concat(operation, ": strategy must be one of ", joined(names, ", "), ", got '", choice.strategy,
                            "'; rules= takes a table of your own"));
  }
  return shard_by_rules(types, mesh, training::sharding_strategy(choice.strategy));
}

training::ShardingTable sharding_table(const AnyModel& model, const Mesh& mesh, const ShardingChoice& choice) {
  return sharding_table(model.types(), mesh, choice);
}

AnyModel shard_model(const AnyModel& model, const NamedSharding& devices, const ShardingChoice& choice) {
  ModelParts parts = model.parts();
  if (parts.parameters.empty()) {
    throw TypeError(concat("shard_model: ", model.name(),
                           " has no parameters yet (argument 'model'); give it those that "
                           "its init(key) makes"));
  }
  const training::ShardingTable table = sharding_table(model.types(), devices.mesh, choice, "shard_model");
  for (auto& [name, array] : parts.parameters) {
    NamedSharding placement = devices;
    placement.spec = table.at(name).spec;
    array = jax::device_put(array, placement);
  }
  return AnyModel(std::move(parts));
}

AnyModel shard_model(const AnyModel& model, const Mesh& mesh, const ShardingChoice& choice) {
  return shard_model(model, jax::make_sharding(mesh, {}), choice);
}

}  // namespace capibara::tpu
