// Reads and converts files of programs.
#include "program_file.h"

#include <algorithm>
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

// The exported function specialised to the sizes of `program`.
jax::Exported exported_for(const jax::Exported& all, const Program& program) {
  if (all.kept_arguments().size() != all.in_types().size() || all.platforms().size() != 1) {
    throw NotImplementedError(concat("--write with --sizes: '", all.name(),
                                     "' leaves out arguments that it does not read, or is for several platforms"));
  }
  return jax::export_program(program, all.in_tree(), all.out_tree(),
                             {.name = all.name(), .platforms = all.platforms()});
}

std::string suffix_of(const std::string& path) { return std::filesystem::path(path).extension().string(); }

}  // namespace

bool is_program_name(const std::string& suffix) {
  return suffix == ".mlir" || suffix == ".mlirbc" || suffix == ".exported";
}

Sizes sizes_of(const Arguments& arguments) {
  Sizes sizes;
  for (const auto& [name, size] : arguments.named_numbers("sizes", 0)) sizes[name] = size;
  return sizes;
}

namespace {

ProgramFile program_of_bytes(const std::string& bytes, const std::string& path, const Sizes& sizes) {
  if (!is_exported(bytes)) {
    if (!sizes.empty()) throw UsageError{concat("--sizes is for exported functions, and ", path, " is none")};
    return {from_stablehlo(bytes), std::nullopt};
  }
  const jax::Exported exported = jax::read_exported(bytes);
  if (exported.has_symbolic_sizes() && sizes.empty()) return {Program(), exported};
  return {exported.program(exported.in_types(sizes)), exported};
}

ProgramFile closed_file_of_bytes(const std::string& bytes, const std::string& path, const Sizes& sizes) {
  ProgramFile file = program_of_bytes(bytes, path, sizes);
  if (file.program.defined()) return file;
  std::string shapes;
  for (const std::vector<std::string>& shape : file.exported->in_shapes()) {
    std::string own;
    for (const std::string& size : shape) own += concat(own.empty() ? "" : ", ", size);
    shapes += concat(shapes.empty() ? "" : ", ", "[", own, "]");
  }
  throw ValueError(concat(path, " has symbolic sizes: its arguments are ", shapes,
                          "\nHint: --sizes b=8,n=4 gives each name a value"));
}

}  // namespace

ProgramFile read_program_file(const std::string& path, const Sizes& sizes) {
  return program_of_bytes(read_text(path), path, sizes);
}

ProgramFile read_closed_file(const std::string& path, const Sizes& sizes) {
  return closed_file_of_bytes(read_text(path), path, sizes);
}

std::vector<Program> read_programs(const std::string& path, const Sizes& sizes) {
  const std::string bytes = read_text(path);
  if (is_exported(bytes)) return {closed_file_of_bytes(bytes, path, sizes).program};
  std::vector<Program> programs;
  for (const stablehlo::Module& module : stablehlo::read_modules(bytes))
    programs.push_back(stablehlo::read_module(module));
  return programs;
}

std::string stablehlo_text_of(const std::string& path, const Sizes& sizes) {
  const std::string bytes = read_text(path);
  if (!is_exported(bytes) && !stablehlo::is_bytecode(bytes)) return bytes;
  return to_stablehlo(closed_file_of_bytes(bytes, path, sizes).program);
}

int write_program_file(const std::string& from, const std::string& to, const Sizes& sizes) {
  const std::string suffix = suffix_of(to);
  if (!is_program_name(suffix))
    throw UsageError{concat("--write needs a file that ends with .mlir, .mlirbc or .exported, got ", to)};
  ProgramFile file = read_program_file(from, sizes);
  if (file.exported && !sizes.empty()) file.exported = exported_for(*file.exported, file.program);
  std::string bytes;
  if (suffix == ".exported" && file.exported) {
    bytes = file.exported->serialize();
  } else if (!file.program.defined() && suffix == ".mlirbc") {
    bytes = file.exported->mlir_module_serialized();
  } else if (!file.program.defined()) {
    bytes = stablehlo::print_tree(stablehlo::read_file(file.exported->mlir_module_serialized()));
  } else if (suffix == ".mlir") {
    bytes = to_stablehlo(file.program);
  } else if (suffix == ".mlirbc") {
    bytes = stablehlo::write_program_bytecode(file.program);
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
