// The files that hold a program: StableHLO as text, as bytecode, and functions exported by jax.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <capibara/exported.h>
#include <capibara/program.h>

namespace capibara::command {

struct ProgramFile {
  Program program;
  std::optional<jax::Exported> exported;  // what its file says of the program

  Types input_types() const { return exported ? exported->in_types() : program.input_types(); }
};

// Raises ValueError where there is no such file, ParseError where it makes no sense.
ProgramFile read_program_file(const std::string& path);
// All programs of a file: a text may hold several.
std::vector<Program> read_programs(const std::string& path);
// The text of a program, as it stands in the file where that is a text.
std::string stablehlo_text_of(const std::string& path);
// Writes a program as another kind of file, which its suffix names; returns the exit code.
int write_program_file(const std::string& from, const std::string& to);

// Whether files of this suffix hold programs.
bool is_program_name(const std::string& suffix);

}  // namespace capibara::command
