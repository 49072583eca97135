// Explicit axes of meshes: shardings as a part of types, and the functions that change them.
#pragma once

#include <capibara/jit.h>
#include <capibara/placement.h>

#include <string>
#include <vector>

namespace capibara::jax {

// A mesh of named axes with these sizes; its axes are Explicit unless `axis_types` says otherwise.
Mesh make_mesh(const std::vector<int64_t>& axis_sizes, const std::vector<std::string>& axis_names,
               const std::vector<AxisType>& axis_types = {});

// The mesh whose axes specifications without a mesh name, on this thread until the end of the scope.
Scope set_mesh(const Mesh& mesh, const std::string& platform = "");

// The type of a value: shape, dtype and, under Explicit axes, which of them split it. It prints as float32[8@data,4].
const ArrayType& type_of(const Array& x);

// The value of x with another sharding in its type: the axes of the mesh in context that split each dimension. With the
// second form x leaves or enters Explicit axes as the types of the mesh's axes say.
Array reshard(const Array& x, const PartitionSpec& spec);
Array reshard(const Array& x, const NamedSharding& sharding);

}  // namespace capibara::jax
