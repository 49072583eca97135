// Reads a StableHLO portable artifact, MLIR's bytecode with operations of VHLO, into the syntax tree of a text.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/stablehlo/bytecode/container.h"
#include "compiler/stablehlo/syntax/syntax.h"

namespace capibara::stablehlo {

// Raises ParseError where the bytes make no sense, and UnsupportedError for operations, attributes and types that VHLO
// 1.20 does not have.
Module read_bytecode(std::string_view file);

// The module of a file, or all of them: of its text, or of its bytecode.
Module read_file(std::string_view file);
std::vector<Module> read_modules(std::string_view file);

}  // namespace capibara::stablehlo
