// Models split over a mesh by a strategy or by user-defined rules, the tables of training/mesh.h; and measured loads,
// from which arrays are resharded.
#pragma once

#include <capibara/model.h>
#include <capibara/placement.h>
#include <capibara/tpu/error.h>
#include <capibara/training/mesh.h>

#include <string>
#include <vector>

namespace capibara::tpu {

struct ShardingChoice {
  std::string strategy = "fsdp";                   // fsdp, megatron or expert
  std::vector<training::ShardingRule> rules = {};  // instead of a strategy; parameters that match none stay whole
};

// How the parameters of a model are split over a mesh; text() has one line per parameter. ValueError for other
// strategies and for patterns that are not regular expressions, beginning with `operation`.
training::ShardingTable sharding_table(const ParameterTypes& types, const Mesh& mesh, const ShardingChoice& choice = {},
                                       const std::string& operation = "sharding_table");
training::ShardingTable sharding_table(const AnyModel& model, const Mesh& mesh, const ShardingChoice& choice = {});

// The model with its parameters placed on the devices of a mesh. TypeError if it has no parameters yet.
AnyModel shard_model(const AnyModel& model, const NamedSharding& devices, const ShardingChoice& choice = {});
// The same on the first devices of the default platform.
AnyModel shard_model(const AnyModel& model, const Mesh& mesh, const ShardingChoice& choice = {});

}  // namespace capibara::tpu
