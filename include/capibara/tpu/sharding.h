// Models split over a mesh by a strategy or by rules of one's own, the tables of training/mesh.h; and loads, measured,
// by which arrays are split anew.
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
  std::vector<training::ShardingRule> rules = {};  // in place of a strategy; whole where none matches
};

// How the parameters of a model are split over a mesh; text() has a line for each. ValueError for other strategies and
// for patterns that are no regular expressions, beginning with `operation`.
training::ShardingTable sharding_table(const ParameterTypes& types, const Mesh& mesh, const ShardingChoice& choice = {},
                                       const std::string& operation = "sharding_table");
training::ShardingTable sharding_table(const AnyModel& model, const Mesh& mesh, const ShardingChoice& choice = {});

// The model with its parameters placed on the devices of a mesh. TypeError where it has no parameters yet.
AnyModel shard_model(const AnyModel& model, const NamedSharding& devices, const ShardingChoice& choice = {});
// The same on the first devices of the default platform.
AnyModel shard_model(const AnyModel& model, const Mesh& mesh, const ShardingChoice& choice = {});

}  // namespace capibara::tpu
