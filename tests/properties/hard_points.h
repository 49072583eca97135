// The hard points at which a primitive is tested.
#pragma once

#include "kernels/family.h"
#include "properties/calls.h"

#include <set>

namespace capibara::properties {

// True for operations of src/kernels: compositions with several sums, whose order differs between backends.
inline bool is_fused(const Primitive& primitive) {
  static const std::set<std::string> names = [] {
    std::set<std::string> all;
    for (const PrimitiveRecord& record : kernel_family()) all.insert(record.name);
    return all;
  }();
  return names.count(primitive.name()) > 0;
}

// The incomplete gamma functions add as many as ten million terms at the ends of the range.
inline Points hard_points(const Primitive& primitive) {
  // A value seen by one row multiplies all rows of its block: times 0, NaN and infinities become NaN.
  if (primitive.name().find("_attention") != std::string::npos) return Points::plain;
  if (is_fused(primitive)) return Points::gentle;                 // where sums overflow depends on their order
  if (primitive.is("ragged_dot_general")) return Points::gentle;  // for the same reason
  for (const char* name : {"igamma", "igammac", "igamma_grad_a", "random_gamma_grad"}) {
    if (primitive.is(name)) return Points::gentle;
  }
  return Points::hard;
}

}  // namespace capibara::properties
