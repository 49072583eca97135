// Artifacts hold StableHLO operations only: CHLO operations in a text, such as erf, are expanded.
#pragma once

#include "compiler/stablehlo/syntax/syntax.h"

namespace capibara::stablehlo {

// The module with its CHLO operations replaced by calls of functions of its own. Raises UnsupportedError for operations
// that have no primitive.
Module without_chlo(Module module);

}  // namespace capibara::stablehlo
