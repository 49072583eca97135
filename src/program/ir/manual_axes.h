// Manual axes in the types of values inside shard_map: the axes along which values vary, and those of sums still to
// be taken (unreduced) or announced (reduced).
#pragma once

#include <capibara/primitive.h>

namespace capibara {

namespace prim {

// Conversions between varying, unreduced (sum still to be taken) and reduced (cotangents will be summed) types.
const Primitive& all_gather_reduced();        // varying -> reduced
const Primitive& unreduced_reduce_scatter();  // unreduced -> varying
const Primitive& unreduced_psum();            // unreduced -> the same on all
const Primitive& preduced();                  // the same on all -> reduced, the identity
const Primitive& vary_unreduced_cast();       // varying -> unreduced, the identity
const Primitive& reduced_vary_cast();         // reduced -> varying, the identity

}  // namespace prim

// True for the identities into another type along axes: pvary, preduced, vary_unreduced_cast, reduced_vary_cast.
bool is_cast(const Primitive& primitive);

// Each list is in the order of the mesh.
struct ManualAxes {
  AxisList varying;    // values may differ between devices
  AxisList unreduced;  // the sum over devices is still to be taken
  AxisList reduced;    // cotangents will be summed over devices

  bool has_sums() const { return !unreduced.empty() || !reduced.empty(); }
};
ManualAxes manual_axes_of(const ArrayType& type);
// The type of a value of this rank over these axes. If any is unreduced or reduced, all axes of the mesh are manual.
Sharding manual_sharding(Mesh mesh, std::size_t rank, ManualAxes axes);
// Raises ValueError if the operand is unreduced or reduced over any of these axes.
void refuse_sums_over(const char* operation, const ArrayType& type, const AxisList& axes);

}  // namespace capibara
