// The attributes of an operation as MLIR reads them, so that an operation that is only passed on keeps them.
#pragma once

#include <string>

#include "compiler/stablehlo/operations.h"

namespace capibara::stablehlo {

// `a = 1 : i32, b = "c"`, without those that are `left_out`. Raises UnsupportedError for an attribute of a kind that
// has no text here, naming it.
std::string attributes_text(const Operation& operation, std::span<const std::string_view> left_out);

}  // namespace capibara::stablehlo
