// Types of values inside shard_map: the mesh axes along which they may differ between devices.
#pragma once

#include "program/ir/build.h"

namespace capibara {

// The varying axes of both, in the order of the mesh.
Sharding joined_varying(const Sharding& a, const Sharding& b);
// The sharding without these varying axes.
Sharding without_varying(const Sharding& sharding, const AxisList& axes);
// The axes of `wanted` along which a value of this type does not vary.
AxisList missing_axes(const ArrayType& type, const AxisList& wanted);
bool varies_over(const ArrayType& type, const std::string& axis);

// True if devices exchange values in it.
bool is_collective(const Primitive& primitive);
// True if an equation of a program, or of a program inside it, exchanges values along this axis.
bool communicates(const Program& program, const std::string& axis);

// The type rule of an equation with a varying operand: operands that vary along fewer axes than others get a pvary
// in front. `inputs` and `types` are updated to its results.
TypeResult varying_types(ProgramBuilder& builder, const Primitive& primitive, std::vector<Atom>& inputs, Types& types,
                         const Attrs& attrs, Source source);

}  // namespace capibara
