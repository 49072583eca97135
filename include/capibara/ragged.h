// Exchanges of slices whose sizes are known only when the program runs.
#pragma once

#include <capibara/collective.h>

namespace capibara::jax::lax {

// Which rows go where: slice i of the operand begins at input_offsets[i], has send_sizes[i] rows and is written at
// output_offsets[i] of its receiver, who counts recv_sizes[i] rows of sender i. With more slices than members each
// member gets as many, one after the other.
struct RaggedSlices {
  Array input_offsets, send_sizes, output_offsets, recv_sizes;
};

// The output with the slices of other members' operands written into it; their sizes are values.
// `output` with the rows written into it that the other members of named axes send of their operands.
Array ragged_all_to_all(const Array& operand, const Array& output, const RaggedSlices& slices,
                        const AxisNames& axis_names, const AxisGroups& axis_index_groups = {});

}  // namespace capibara::jax::lax
