// The attributes of an operation in MLIR's syntax, so that an operation that is only passed on keeps them.
#pragma once

#include <string>

#include "compiler/stablehlo/operations.h"

namespace capibara::stablehlo {

// `a = 1 : i32, b = "c"`, without those in `left_out`. Raises UnsupportedError, naming the attribute, for a kind of
// attribute that has no text here.
std::string attributes_text(const Operation& operation, std::span<const std::string_view> left_out);

}  // namespace capibara::stablehlo
