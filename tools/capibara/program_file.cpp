// Reads and converts files of programs.
#include "program_file.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <capibara/error.h>

#include "command.h"
#include "compiler/stablehlo/bytecode/read_bytecode.h"
#include "compiler/stablehlo/bytecode/write_bytecode.h"
#include "compiler/stablehlo/exported/exported_file.h"
#include "compiler/stablehlo/read.h"

namespace capibara::command {

namespace {

bool is_exported(const std::string& bytes) {
  return !stablehlo::is_bytecode(bytes) && stablehlo::may_be_exported(bytes);
}

std::string suffix_of(const std::string& path) { return std::filesystem::path(path).extension().string(); }

}  // namespace

bool is_program_name(const std::string& suffix) {
  return suffix == ".mlir" || suffix == ".mlirbc" || suffix == ".exported";
}

ProgramFile read_program_file(const std::string& path) {
  const std::string bytes = read_text(path);
  if (!is_exported(bytes)) return {from_stablehlo(bytes), std::nullopt};
  const jax::Exported exported = jax::read_exported(bytes);
  return {exported.program(), exported};
}

std::vector<Program> read_programs(const std::string& path) {
  const std::string bytes = read_text(path);
  if (is_exported(bytes)) return {jax::read_exported(bytes).program()};
  std::vector<Program> programs;
  for (const stablehlo::Module& module : stablehlo::read_modules(bytes))
    programs.push_back(stablehlo::read_module(module));
  return programs;
}

std::string stablehlo_text_of(const std::string& path) {
  const std::string bytes = read_text(path);
  if (!is_exported(bytes) && !stablehlo::is_bytecode(bytes)) return bytes;
  return to_stablehlo(read_program_file(path).program);
}

int write_program_file(const std::string& from, const std::string& to) {
  const ProgramFile file = read_program_file(from);
  const std::string suffix = suffix_of(to);
  if (!is_program_name(suffix))
    throw UsageError{concat("--write needs a file that ends with .mlir, .mlirbc or .exported, got ", to)};
  std::string bytes;
  if (suffix == ".mlir") {
    bytes = to_stablehlo(file.program);
  } else if (suffix == ".mlirbc") {
    bytes = stablehlo::write_program_bytecode(file.program);
  } else if (file.exported) {
    bytes = file.exported->serialize();
  } else {
    const std::vector<TreeDef> leaves(file.program.invars().size(), TreeDef::leaf());
    const std::vector<TreeDef> results(file.program.outputs().size(), TreeDef::leaf());
    const TreeDef in = TreeDef::tuple({TreeDef::tuple(leaves), TreeDef::dict({}, {})});
    bytes = jax::export_program(file.program, in, results.size() == 1 ? results[0] : TreeDef::tuple(results),
                                {.name = file.program.name()})
                .serialize();
  }
  std::ofstream out(to, std::ios::binary);
  if (!out.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush())
    throw RuntimeError(concat(to, " cannot be written"));
  std::printf("%s: %zu bytes\n", to.c_str(), bytes.size());
  return 0;
}

}  // namespace capibara::command
