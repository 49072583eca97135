// How Explicit axes of a mesh split the results of primitives, with jax's error messages where no sharding follows.
//
// A record without this rule uses its factors. The rules below do not, since what jax accepts is not what can be
// computed part by part: reduced, sliced, padded and concatenated dimensions may be split, but not both of a
// contraction, nor what indices of a gather count; operands of sort, concatenate, select and solvers must be split
// identically, not only agree; unreduced values have rules of their own; and a dimension of size 1 or 0, which
// has no free factor, keeps its axes.
#pragma once

#include <capibara/primitive.h>

#include "core/sharding/explicit.h"

namespace capibara {

using Splits = std::vector<PartitionSpec>;

// ---- by family ----------------------------------------------------------------------------------------------------

Splits unary_splits(const SplitArgs& args);
Splits nary_splits(const SplitArgs& args);
Splits add_splits(const SplitArgs& args);
Splits mul_splits(const SplitArgs& args);
Splits same_splits(const SplitArgs& args);  // of the first operand, sums included
Splits clamp_splits(const SplitArgs& args);
Splits select_splits(const SplitArgs& args);
Splits bitcast_splits(const SplitArgs& args);

Splits reduction_splits(const SplitArgs& args);
Splits reduce_sum_splits(const SplitArgs& args);
Splits cumulative_splits(const SplitArgs& args);
Splits sort_splits(const SplitArgs& args);
Splits top_k_splits(const SplitArgs& args);
SplitRule linalg_splits(std::vector<std::size_t> matrix_ranks);  // trailing dimensions of each operand that stay whole

Splits broadcast_in_dim_splits(const SplitArgs& args);
Splits stated_splits(const SplitArgs& args);     // from the types of the results
Splits requested_splits(const SplitArgs& args);  // what the equation requests, else nothing is split
Splits reshape_splits(const SplitArgs& args);
Splits squeeze_splits(const SplitArgs& args);
Splits transpose_splits(const SplitArgs& args);
Splits tile_splits(const SplitArgs& args);
SplitRule resized_splits(const char* word);  // slice, pad...: the sizes of the first operand's dimensions change
Splits dynamic_update_slice_splits(const SplitArgs& args);
Splits concatenate_splits(const SplitArgs& args);
Splits stack_splits(const SplitArgs& args);
Splits unstack_splits(const SplitArgs& args);

Splits dot_general_splits(const SplitArgs& args);
Splits ragged_dot_splits(const SplitArgs& args);
Splits convolution_splits(const SplitArgs& args);

Splits gather_splits(const SplitArgs& args);
Splits scatter_splits(const SplitArgs& args);

Splits random_splits(const SplitArgs& args);  // a key's dimensions, then dimensions that nothing splits
Splits bit_generator_splits(const SplitArgs& args);

// ---- what they are written with -----------------------------------------------------------------------------------

PartitionSpec spec_of(const ArrayType& type);                              // one entry for each dimension
PartitionSpec spec_of(const ArrayType& type, std::vector<AxisList> dims);  // with the sums of the type
const AxisList& axes_at(const ArrayType& type, int64_t dim);
std::vector<AxisList> axes_of(const ArrayType& type, const Ints& dims);
bool splits_any(const ArrayType& type, const Ints& dims);
bool splits_nothing(const ArrayType& type);
const AxisList& unreduced_axes(const ArrayType& type);  // over which a sum is still to be taken
// Raises NotImplementedError if an operand is unreduced or reduced over any axis.
void refuse_partial_sums(const SplitArgs& args);
std::string shaped_text(const ArrayType& type);  // ShapedArray(float32[8@x,2])
// The non-empty texts of types, joined.
std::string joined_texts(std::span<const ArrayType> types, const char* between, std::string (*text)(const ArrayType&));
std::string type_sharding_text(const ArrayType& type);
// The first operand with an Explicit type and one with another sharding, which may be null.
struct Differing {
  const ArrayType *first = nullptr, *other = nullptr;
};
Differing differing_shardings(std::span<const ArrayType> types);

template <class... Pieces>
[[noreturn]] void refuse_sharding(const Pieces&... pieces) {
  throw ShardingTypeError(concat(pieces...));
}
// The sharding that a batched equation requests, with the mapped dimension of an operand as dimension `to` of the
// result.
Sharding batched_sharding(const BatchArgs& args, const Array& operand, int64_t dim, int64_t to = 0);

}  // namespace capibara
