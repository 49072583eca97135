// Building blocks of rules and transforms: tangents that may be zero, arrays with a mapped axis.
#pragma once

#include <capibara/primitive.h>

namespace capibara {

// The type of a tangent or cotangent: the same for inexact types, float0 for all others; weakness is kept.
ArrayType tangent_type(const ArrayType& primal);
// The type of a cotangent: unreduced and reduced axes are exchanged.
ArrayType cotangent_type(const ArrayType& primal);
// The tangent itself, or zeros of the primal's tangent type if it is a symbolic zero.
Array instantiate(const Array& tangent, const ArrayType& primal);
// x + y where either may be a symbolic zero.
Array add_tangents(const Array& x, const Array& y);

Array move_axis(const Array& x, int64_t from, int64_t to);
// The mapped axis at `to`; an unmapped input is broadcast to the axis size.
Array batch_at(const Array& x, int64_t dim, int64_t size, int64_t to = 0);
// The same for a mapped axis that Explicit axes of a mesh may split.
Array batch_at(const Array& x, int64_t dim, const MappedAxis& axis, int64_t to = 0);
// The type of a value with a mapped axis.
ArrayType batched_type(const ArrayType& type, int64_t dim, const MappedAxis& axis);

}  // namespace capibara
