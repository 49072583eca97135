// The axes of a mesh, bound by name while the function of shard_map is traced.
#pragma once

#include "program/trace/trace.h"

namespace capibara {

// Binds axes of a mesh on this thread until the end of the scope. `checked`: types say along which of them values vary.
class MeshScope {
 public:
  MeshScope(const Mesh& mesh, const AxisList& axes, bool checked);

 private:
  TraceScope scope_;
};

// The mesh that binds an axis and whose values have varying types; null where the axis is another one.
const Mesh* checked_mesh(const std::string& axis);

// Whether all these axes are of meshes: collectives over several of them are one operation.
bool are_mesh_axes(const AxisList& axes);

}  // namespace capibara
