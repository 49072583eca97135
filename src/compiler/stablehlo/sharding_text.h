// The bodies of Shardy's attributes: meshes, shardings, lists of axes.
#pragma once

#include <capibara/sharding.h>

#include <optional>
#include <string>
#include <vector>

#include "compiler/stablehlo/operations.h"

namespace capibara::stablehlo {

// @mesh, [{"x", ?}, {}p1], replicated={"z"}, unreduced={"y"}
struct ShardingText {
  std::string mesh;            // its name
  std::vector<AxisList> dims;
  std::vector<bool> open;                          // whether the compiler may add axes to a dimension
  std::vector<std::optional<int64_t>> priorities;  // of the compiler's choices
  AxisList replicated, unreduced;
};

// Each raises ParseError where the text makes no sense, and UnsupportedError for parts of axes and for devices in
// another order than that of their numbers; both name the operation.
Mesh read_mesh_text(const Operation& operation, std::string_view text);                            // ["x"=2, "y"=4]
ShardingText read_sharding_text(const Operation& operation, std::string_view text);                // without brackets
std::vector<ShardingText> read_shardings_text(const Operation& operation, std::string_view text);  // [<..>, <..>]
AxisList read_axes_text(const Operation& operation, std::string_view text);                        // {"x", "y"}

std::string axes_text(const AxisList& axes);  // {"x", "y"}

}  // namespace capibara::stablehlo
