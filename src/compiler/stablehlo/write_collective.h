// Collectives between devices as operations: their names, attributes and regions.
#pragma once

#include <optional>

#include "compiler/stablehlo/operations.h"

namespace capibara::stablehlo {

struct CollectiveText {
  std::string operation;
  std::vector<AttributeText> attributes;  // sorted; without the channel
  std::optional<Program> combine;         // of two numbers: the operation's region
};

bool is_collective(const Primitive& primitive);  // those that are written as collectives

// For an equation inside a shard_map for each device (shard_map_devices.h), with one operand; nullopt for other
// primitives. Raises NotImplementedError if the equation does not specify the participating devices.
std::optional<CollectiveText> find_collective(const Primitive& primitive, const WriteArgs& args);

}  // namespace capibara::stablehlo
