// The axes of a mesh, bound by name while the function of shard_map is traced.
#pragma once

#include "program/trace/trace.h"

namespace capibara {

// Binds axes of a mesh on this thread until the end of the scope. `checked`: types say over which of them values vary.
class MeshScope {
 public:
  MeshScope(const Mesh& mesh, const AxisList& axes, bool checked);

 private:
  TraceScope scope_;
};

// The mesh that binds an axis and whose values have varying types; null for other axes.
const Mesh* checked_mesh(const std::string& axis);

// True if all these axes are of meshes: collectives over several of them are one operation.
bool are_mesh_axes(const AxisList& axes);

}  // namespace capibara
