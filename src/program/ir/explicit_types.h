// Types under Explicit axes of a mesh: which axes split which dimension of an equation's results.
#pragma once

#include <capibara/primitive.h>

#include "core/sharding/explicit.h"

namespace capibara {

// The results of an equation get the axes that split them, by the rule of its record or by its factors. `operands` have
// theirs. Raises ShardingTypeError where operands disagree or a dimension that must be whole is split.
void split_results(const Primitive& primitive, std::span<const ArrayType> operands, const Attrs& attrs, Types& results);

// The type rule of an equation of which an operand has an Explicit type, or which asks for one.
TypeResult explicit_types(const Primitive& primitive, Types operands, const Attrs& attrs);

// Raises ValueError where axes do not divide a dimension that they split.
void check_divides(const ArrayType& type);

// The same types with one dimension more, which no axis or these axes split, or one less.
ArrayType with_dimension(ArrayType type, int64_t dim, int64_t size, const AxisList& axes = {});
ArrayType without_dimension(ArrayType type, int64_t dim);

// The type of a cotangent: what is reduced in the primal type is unreduced, and the other way round.
Sharding cotangent_sharding(const Sharding& primal);

}  // namespace capibara
