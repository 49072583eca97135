// Artifacts hold operations of StableHLO alone: those that texts take from CHLO, such as erf, are written out there.
#pragma once

#include "compiler/stablehlo/syntax/syntax.h"

namespace capibara::stablehlo {

// The module with calls of functions of its own where it had operations of CHLO. Raises UnsupportedError for those that
// no primitive stands for.
Module without_chlo(Module module);

}  // namespace capibara::stablehlo
