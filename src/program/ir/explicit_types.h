// Types under Explicit axes of a mesh: the axes that split the dimensions of an equation's results.
#pragma once

#include <capibara/primitive.h>

#include "core/sharding/explicit.h"

namespace capibara {

// The results of an equation get the axes that split them, by the rule of its record or by its factors; `operands` have
// theirs. Raises ShardingTypeError if operands disagree or a dimension that must be whole is split.
void split_results(const Primitive& primitive, std::span<const ArrayType> operands, const Attrs& attrs, Types& results);

// The type rule of an equation that has an operand of Explicit type, or requests one.
TypeResult explicit_types(const Primitive& primitive, Types operands, const Attrs& attrs);

// Raises ValueError if the size of an axis does not divide the dimension that it splits.
void check_divides(const ArrayType& type);

// The same types with one more dimension, unsplit or split by these axes, or with one less.
ArrayType with_dimension(ArrayType type, int64_t dim, int64_t size, const AxisList& axes = {});
ArrayType without_dimension(ArrayType type, int64_t dim);

// The type of a cotangent: reduced axes of the primal type become unreduced, and vice versa.
Sharding cotangent_sharding(const Sharding& primal);

}  // namespace capibara
