// Primitives that StableHLO has no operation for, as calls of foreign functions: LAPACK's through jaxlib, expectations.
#include "program/stablehlo/write_calls.h"

#include <cstdio>

#include <capibara/error.h>

namespace capibara::stablehlo {

namespace {

// A failure is NaN in the values; StableHLO's own checks are custom calls with a side effect.
std::optional<CallText> expectation_call(const Primitive& primitive, const WriteArgs& args) {
  if (!(primitive == expect_primitive())) return std::nullopt;
  CallText call;
  call.target = "check.expect_" + args.attrs.text("kind");
  call.attributes = "has_side_effect = true";
  if (args.attrs.text("kind") == "close") {
    call.attributes += concat(", max_ulp_difference = ", args.attrs.integer("max_ulp"), " : i64, min_ulp_difference = ",
                              args.attrs.integer("min_ulp"), " : i64");
  } else if (args.attrs.text("kind") == "almost_eq") {
    char number[40];
    std::snprintf(number, sizeof number, "%.9e", args.attrs.real("tolerance"));  // MLIR wants a point in every number
    call.attributes += concat(", tolerance = ", number, " : f64");
  }
  return call;
}

}  // namespace

std::optional<CallText> find_call(const Primitive& primitive, const WriteArgs& args) {
  return expectation_call(primitive, args);
}

}  // namespace capibara::stablehlo
