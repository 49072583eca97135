// The Shardy operations that occur in jax's modules, with their attributes in bytecode order.
#pragma once

#include <string_view>
#include <vector>

namespace capibara::stablehlo {

// Casts VHLO values for Shardy operations, and back.
inline constexpr std::string_view conversion_cast = "builtin.unrealized_conversion_cast";

struct ShardyAttribute {
  std::string_view name;
  bool optional = false;
};

struct ShardyOperation {
  std::string_view name;
  std::vector<ShardyAttribute> attributes;
};

// Null for unknown names.
inline const ShardyOperation* find_shardy(std::string_view name) {
  static const std::vector<ShardyOperation> table = {
      {"sdy.mesh", {{"mesh"}, {"sym_name"}}},
      {"sdy.sharding_constraint", {{"sharding"}}},
      {"sdy.reshard", {{"sharding"}}},
      {"sdy.manual_computation", {{"in_shardings"}, {"manual_axes"}, {"out_shardings"}}},
      {"sdy.return", {}},
  };
  for (const ShardyOperation& operation : table) {
    if (operation.name == name) return &operation;
  }
  return nullptr;
}

}  // namespace capibara::stablehlo
