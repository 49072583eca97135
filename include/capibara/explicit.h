// Explicit mesh axes: shardings as part of types, and the functions that change them.
#pragma once

#include <capibara/jit.h>
#include <capibara/placement.h>

#include <string>
#include <vector>

namespace capibara::jax {

// A mesh of named axes with these sizes; its axes are Explicit unless `axis_types` says otherwise.
Mesh make_mesh(const std::vector<int64_t>& axis_sizes, const std::vector<std::string>& axis_names,
               const std::vector<AxisType>& axis_types = {});

// Sets the mesh, on this thread until the end of the scope, that specifications without a mesh refer to.
Scope set_mesh(const Mesh& mesh, const std::string& platform = "");

// The type of a value: shape, dtype and, under Explicit axes, how they split it. It prints as float32[8@data,4].
const ArrayType& type_of(const Array& x);

// The value of x with another sharding in its type: the axes of the context mesh that split each dimension. With a
// NamedSharding, x leaves or enters Explicit axes according to the axis types of its mesh.
Array reshard(const Array& x, const PartitionSpec& spec);
Array reshard(const Array& x, const NamedSharding& sharding);

}  // namespace capibara::jax
