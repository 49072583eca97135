// Programs of one device, whose types do not say over which mesh axes values vary.
#pragma once

#include <capibara/placement.h>
#include <capibara/program.h>

namespace capibara {

// The same program with such types: of its variables, constants and literals, and of the programs inside.
Program with_plain_types(const Program& program);
// The same program with a constraint on each result whose type has Explicit axes, for texts whose types say nothing of
// them. The devices are those of `devices`, or the first ones of the mesh.
Program with_type_constraints(const Program& program, const NamedSharding* devices);
// Whether a variable of a program, or of one inside it, has an Explicit type.
bool has_explicit_types(const Program& program);
// Attributes of an equation that asks nothing for the types of its results.
Attrs with_plain_attrs(const Attrs& attrs);
// The same value under the type without a sharding; where it is placed stays.
Array with_plain_type(const Array& value);
// Neither a sharding in its type nor a placement, from which results would get one.
Array unplaced(const Array& value);

}  // namespace capibara
