// Primitives without a StableHLO operation, as calls of foreign functions: LAPACK's through jaxlib, expectations.
#pragma once

#include <optional>
#include <string>

#include "compiler/stablehlo/operations.h"

namespace capibara::stablehlo {

struct CallText {
  std::string target;
  std::string attributes;          // between the braces
  Types results;                   // empty: those of the equation
  std::vector<std::size_t> order;  // output i of the equation is result order[i]; empty: in the same order
};

// [dense<[1, 0]> : tensor<2xindex>] for a list of Ints, each from the fastest-varying dimension to the slowest.
std::string layouts_text(const Attr& layouts);

std::optional<CallText> find_call(const Primitive& primitive, const WriteArgs& args);

}  // namespace capibara::stablehlo
