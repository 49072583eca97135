// Exchanges of slices whose sizes are known only at run time.
#pragma once

#include <capibara/collective.h>

namespace capibara::jax::lax {

// Source and destination of rows: slice i of the operand begins at input_offsets[i], has send_sizes[i] rows and is
// written at output_offsets[i] of its receiver; recv_sizes[i] is the number of rows received from sender i. With more
// slices than members, each member gets equally many consecutive ones.
struct RaggedSlices {
  Array input_offsets, send_sizes, output_offsets, recv_sizes;
};

// The output with the slices of other members' operands written into it; their sizes are values.
// `output` overwritten with the rows that the other members of named axes send from their operands.
Array ragged_all_to_all(const Array& operand, const Array& output, const RaggedSlices& slices,
                        const AxisNames& axis_names, const AxisGroups& axis_index_groups = {});

}  // namespace capibara::jax::lax
