// How axes of a mesh that are Explicit split the results of primitives, with the words of jax where nothing follows.
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
Splits stated_splits(const SplitArgs& args);  // what the types of results say by themselves
Splits asked_splits(const SplitArgs& args);  // what the equation asks for, else nothing is split
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

PartitionSpec spec_of(const ArrayType& type);  // one entry for each dimension
bool splits_nothing(const ArrayType& type);
// Raises NotImplementedError where an operand has sums that are still to be taken or were announced.
void refuse_partial_sums(const SplitArgs& args);
std::string shaped_text(const ArrayType& type);  // ShapedArray(float32[8@x,2])
// The sharding that a batched equation asks for, with the mapped dimension of an operand as dimension `to` of the
// result.
Sharding batched_sharding(const BatchArgs& args, const Array& operand, int64_t dim, int64_t to = 0);

}  // namespace capibara
