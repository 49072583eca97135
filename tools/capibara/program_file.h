// Program files: StableHLO as text or bytecode, and functions exported by jax.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <capibara/exported.h>
#include <capibara/program.h>

#include "command.h"

namespace capibara::command {

using Sizes = std::map<std::string, int64_t>;  // values of the names in symbolic sizes

struct ProgramFile {
  Program program;                        // undefined if sizes are symbolic and not given
  std::optional<jax::Exported> exported;  // set for files of exported functions

  Types input_types() const { return exported ? exported->in_types() : program.input_types(); }
};

// Parses the option --sizes b=8,n=4. Raises UsageError for malformed text.
Sizes sizes_of(const Arguments& arguments);
// Raises ValueError if there is no such file, ParseError if it cannot be parsed.
ProgramFile read_program_file(const std::string& path, const Sizes& sizes = {});
// The same with `program` always defined, which needs a value for each symbolic size.
ProgramFile read_closed_file(const std::string& path, const Sizes& sizes);
// All programs of a file: a text file may hold several.
std::vector<Program> read_programs(const std::string& path, const Sizes& sizes = {});
// The StableHLO text of a program; of a text file, its content unchanged.
std::string stablehlo_text_of(const std::string& path, const Sizes& sizes);
// Converts a program to the file format named by the suffix of `to`; returns the exit code.
int write_program_file(const std::string& from, const std::string& to, const Sizes& sizes);

// True if files with this suffix hold programs.
bool is_program_name(const std::string& suffix);

}  // namespace capibara::command
