// Casts of types inside shard_map that leave the values unchanged: which axes a value varies over, and which sums over
// devices are still pending.
#pragma once

#include <capibara/collective.h>

#include <string>

namespace capibara::jax::lax {

// The same value in a type that says otherwise along mesh axes: varying, unreduced or reduced.
// `to` is "varying", "unreduced" (each device has a partial sum) or "reduced" (the cotangent will be summed over
// devices).
Array pcast(const Array& x, const AxisNames& axis_names, const std::string& to);
// The values of all members of mesh axes, whose cotangents will be summed over them.
Array all_gather_reduced(const Array& x, const AxisNames& axis_names, const AllGatherOptions& options = {});

}  // namespace capibara::jax::lax
