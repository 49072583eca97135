// Random functions of shard_map: elementwise, reductions, collectives of every kind, control flow, gradients.
#pragma once

#include <capibara/placement.h>
#include <capibara/primitive.h>

#include <string>

namespace capibara::random_shard_maps {

struct RandomMap {
  Program program;  // one shard_map, or the gradient of one
  Arrays inputs;
  Program whole;     // the function without shard_map, if it treats rows independently; else undefined
  std::string text;  // the operations, for messages
};

RandomMap make_random_map(uint64_t seed);

// The names of all operations that functions are made of.
std::vector<std::string> operation_names();

}  // namespace capibara::random_shard_maps
