// Reads a StableHLO portable artifact, MLIR bytecode with VHLO operations, into the same syntax tree as a text.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/stablehlo/bytecode/container.h"
#include "compiler/stablehlo/syntax/syntax.h"

namespace capibara::stablehlo {

// Raises ParseError if the bytes are malformed, and UnsupportedError for operations, attributes and types that VHLO
// 1.20 does not have.
Module read_bytecode(std::string_view file);

// The only module of a file, or all of its modules: from text or from bytecode.
Module read_file(std::string_view file);
std::vector<Module> read_modules(std::string_view file);

}  // namespace capibara::stablehlo
