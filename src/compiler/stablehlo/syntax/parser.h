// Reads StableHLO text, in pretty or in generic form, into a syntax tree.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/stablehlo/syntax/syntax.h"

namespace capibara::stablehlo {

// The text of one module: `module { ... }`, "builtin.module"() ({ ... }), or functions without a module around them.
// Throws ParseError "line:column: expected ..., got ...".
Module parse_module(std::string_view text);

// All modules of a text, in order. Lines that begin with `// -----` split it into independent parts, as in
// stablehlo-opt -split-input-file. A part without operations yields no module.
std::vector<Module> parse_modules(std::string_view text);

}  // namespace capibara::stablehlo
