// Mapped axes that are sharded over axes of a mesh: vmap(spmd_axis_name=).
#pragma once

#include <capibara/primitive.h>

namespace capibara {

// The mesh axes over which vmap(spmd_axis_name=) shards the mapped axis; none if types say which axes split it.
const AxisList& spmd_axes(const MappedAxis& axis);
std::string axis_tuple(const AxisList& axes);  // ('x', 'y')

// While it lives, the function of a vmap runs whose members are sharded over these axes of a mesh.
class SpmdScope {
 public:
  explicit SpmdScope(const AxisList& axes);
  ~SpmdScope();
  SpmdScope(const SpmdScope&) = delete;
  SpmdScope& operator=(const SpmdScope&) = delete;
  static bool covers(const std::string& axis);

 private:
  std::size_t before_;
};

}  // namespace capibara
