// The files that hold a program: StableHLO as text, as bytecode, and functions exported by jax.
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
  Program program;                        // undefined where sizes are symbolic and none were given
  std::optional<jax::Exported> exported;  // what its file says of the program

  Types input_types() const { return exported ? exported->in_types() : program.input_types(); }
};

// The option --sizes b=8,n=4. Raises UsageError for other texts.
Sizes sizes_of(const Arguments& arguments);
// Raises ValueError where there is no such file, ParseError where it makes no sense.
ProgramFile read_program_file(const std::string& path, const Sizes& sizes = {});
// The same with a program, which needs a value for each symbolic size.
ProgramFile read_closed_file(const std::string& path, const Sizes& sizes);
// All programs of a file: a text may hold several.
std::vector<Program> read_programs(const std::string& path, const Sizes& sizes = {});
// The text of a program, as it stands in the file where that is a text.
std::string stablehlo_text_of(const std::string& path, const Sizes& sizes);
// Writes a program as another kind of file, which its suffix names; returns the exit code.
int write_program_file(const std::string& from, const std::string& to, const Sizes& sizes);

// Whether files of this suffix hold programs.
bool is_program_name(const std::string& suffix);

}  // namespace capibara::command
