// Reads the syntax tree of a StableHLO module into a program.
#pragma once

#include <capibara/program.h>

#include "compiler/stablehlo/syntax/syntax.h"

namespace capibara::stablehlo {

// The program of @main, or of the only public function. Raises ParseError where the module makes no sense and
// UnsupportedError (operations.h) where this library cannot do what it asks.
Program read_module(const Module& module);

}  // namespace capibara::stablehlo
