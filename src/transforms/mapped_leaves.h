// vmap on leaves, over axes of a mesh.
#pragma once

#include <capibara/transforms.h>

namespace capibara::detail {

// vmap_leaves whose mapped axis lies over these axes of a mesh: constraints and maps inside of the function get them.
Arrays vmap_leaves_over(const AxisList& spmd, const FlatFunction& function, const TreeDef& in,
                        std::span<const Array> leaves, const jax::VmapOptions& options, const TreeDef& out);

}  // namespace capibara::detail
