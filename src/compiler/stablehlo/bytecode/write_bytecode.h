// Writes a module as a StableHLO portable artifact of version 1.15.0, which StableHLO reads since then.
#pragma once

#include <string>
#include <string_view>

#include <capibara/program.h>

#include "compiler/stablehlo/syntax/syntax.h"
#include "compiler/stablehlo/write.h"

namespace capibara::stablehlo {

// Locations are left out. Raises UnsupportedError for operations, attributes and types without a form in VHLO 1.15.
std::string write_bytecode(const Module& module);

// Of a module's text, with operations of CHLO written out. With `takes_platform` main takes the number of a platform
// before its own arguments, as jax wants it of modules for several.
std::string write_bytecode_of_text(std::string_view text, bool takes_platform = false);
// Any program: it is lowered first.
std::string write_program_bytecode(const Program& program, const WriteOptions& options = {},
                                   bool takes_platform = false);

}  // namespace capibara::stablehlo
