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
  std::string mesh;  // its name
  std::vector<AxisList> dims;
  std::vector<bool> open;                          // true if the compiler may add axes to a dimension
  std::vector<std::optional<int64_t>> priorities;  // of the compiler's choices
  AxisList replicated, unreduced;
};

// A mesh and the numbers of its devices, in row-major order.
struct DeviceMesh {
  Mesh mesh;
  std::vector<int> devices;  // empty for a mesh without axes
  bool in_order() const;     // 0, 1, 2, ..
};

// Each raises ParseError if the text is malformed, and
// UnsupportedError for sub-axes; both name the operation.
DeviceMesh read_mesh_text(const Operation& operation, std::string_view text);        // ["x"=2, "y"=4], device_ids=[..]
ShardingText read_sharding_text(const Operation& operation, std::string_view text);  // without brackets
std::vector<ShardingText> read_shardings_text(const Operation& operation, std::string_view text);  // [<..>, <..>]
AxisList read_axes_text(const Operation& operation, std::string_view text);                        // {"x", "y"}

std::string axes_text(const AxisList& axes);  // {"x", "y"}

}  // namespace capibara::stablehlo
