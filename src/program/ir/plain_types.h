// Programs of one device, whose types omit the mesh axes over which values vary.
#pragma once

#include <capibara/placement.h>
#include <capibara/program.h>

namespace capibara {

// The same program with plain types: those of its variables, constants and literals, and of the programs inside.
Program with_plain_types(const Program& program);
// The same program with a constraint on each result whose type has Explicit axes, for texts whose types omit
// them. The devices are those of `devices`, or the first ones for the mesh.
Program with_type_constraints(const Program& program, const NamedSharding* devices);
// True if a variable of a program, or of one inside it, has an Explicit type.
bool has_explicit_types(const Program& program);
// Attributes of an equation that requests nothing of the types of its results.
Attrs with_plain_attrs(const Attrs& attrs);
// The same value under the type without a sharding; its placement stays.
Array with_plain_type(const Array& value);
// The value without a sharding in its type and without a placement, which results would inherit.
Array unplaced(const Array& value);

}  // namespace capibara
