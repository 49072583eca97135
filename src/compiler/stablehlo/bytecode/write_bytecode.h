// Writes a module as a StableHLO portable artifact of version 1.15.0, readable by StableHLO from that version on.
#pragma once

#include <string>
#include <string_view>

#include <capibara/program.h>

#include "compiler/stablehlo/syntax/syntax.h"
#include "compiler/stablehlo/write.h"

namespace capibara::stablehlo {

// Omits locations. Raises UnsupportedError for operations, attributes and types without a form in VHLO 1.15.
std::string write_bytecode(const Module& module);

// Of a module's text, with CHLO operations expanded. With `takes_platform`, main takes a platform index before its own
// arguments, as jax requires of modules for several platforms.
std::string write_bytecode_of_text(std::string_view text, bool takes_platform = false);
// Any program: it is lowered first.
std::string write_program_bytecode(const Program& program, const WriteOptions& options = {},
                                   bool takes_platform = false);

}  // namespace capibara::stablehlo
