// What types of values inside shard_map say of manual axes: along which values differ, and over which sums are still to
// be taken or announced.
#pragma once

#include <capibara/primitive.h>

namespace capibara {

namespace prim {

// Between types that vary, whose sum is still to be taken, and whose cotangents will be summed.
const Primitive& all_gather_reduced();        // varying -> reduced
const Primitive& unreduced_reduce_scatter();  // unreduced -> varying
const Primitive& unreduced_psum();            // unreduced -> the same on all
const Primitive& preduced();                  // the same on all -> reduced, the identity
const Primitive& vary_unreduced_cast();       // varying -> unreduced, the identity
const Primitive& reduced_vary_cast();         // reduced -> varying, the identity

}  // namespace prim

// Whether it is the identity into another type along axes: pvary, preduced, vary_unreduced_cast, reduced_vary_cast.
bool is_cast(const Primitive& primitive);

// Each list is in the order of the mesh.
struct ManualAxes {
  AxisList varying;    // values may differ between devices
  AxisList unreduced;  // the sum over devices is still to be taken
  AxisList reduced;    // cotangents will be summed over devices

  bool has_sums() const { return !unreduced.empty() || !reduced.empty(); }
};
ManualAxes manual_axes_of(const ArrayType& type);
// The type of a value of this rank that says so. Where it names sums, all axes of the mesh are manual.
Sharding manual_sharding(Mesh mesh, std::size_t rank, ManualAxes axes);
// Raises ValueError where these axes of an operand have a sum to be taken or announced.
void refuse_sums_over(const char* operation, const ArrayType& type, const AxisList& axes);

}  // namespace capibara
