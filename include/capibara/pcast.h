// Types of values inside shard_map, changed without changing the values: what differs between devices, and which sums
// over devices are still to be taken.
#pragma once

#include <capibara/collective.h>

#include <string>

namespace capibara::jax::lax {

// The same value in a type that says otherwise along mesh axes: varying, unreduced or reduced.
// `to` is "varying", "unreduced" (each device has a part of a sum) or "reduced" (the cotangent will be summed over
// devices).
Array pcast(const Array& x, const AxisNames& axis_names, const std::string& to);
// The values of all members of mesh axes, whose cotangents will be summed over them.
Array all_gather_reduced(const Array& x, const AxisNames& axis_names, const AllGatherOptions& options = {});

}  // namespace capibara::jax::lax
