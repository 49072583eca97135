// Exported functions: what their files say becomes a program with types and trees, and back.
#include <capibara/exported.h>

#include <algorithm>
#include <fstream>

#include <capibara/config.h>
#include <capibara/lax.h>

#include "compiler/stablehlo/bytecode/read_bytecode.h"
#include "compiler/stablehlo/bytecode/write_bytecode.h"
#include "compiler/stablehlo/exported/exported_file.h"
#include "compiler/stablehlo/read.h"
#include "io/files/mapped_file.h"
#include "program/ir/build.h"
#include "program/ir/dce.h"
#include "program/ir/handles.h"
#include "program/ir/wide_types.h"

namespace capibara::jax {

namespace {

using stablehlo::ExportedFile;
using stablehlo::ExportedTree;
using stablehlo::ExportedType;

// ---- trees and types ---------------------------------------------------------------------------------------------

TreeDef tree_of(const ExportedTree& tree) {
  std::vector<TreeDef> children;
  for (const ExportedTree& child : tree.children) children.push_back(tree_of(child));
  std::vector<TreeKey> keys;
  switch (tree.kind) {
    case ExportedTree::Kind::leaf:
      return TreeDef::leaf();
    case ExportedTree::Kind::none:
      return TreeDef::none();
    case ExportedTree::Kind::tuple:
      return TreeDef::tuple(std::move(children));
    case ExportedTree::Kind::list:
      return TreeDef::list(std::move(children));
    case ExportedTree::Kind::dict:
      for (const std::string& name : tree.names) keys.push_back({TreeKey::text, 0, name});
      return TreeDef::dict(std::move(keys), std::move(children));
    case ExportedTree::Kind::custom:
      for (std::size_t i = 0; i < children.size(); ++i) keys.push_back({TreeKey::index, static_cast<int64_t>(i), ""});
      return TreeDef::record(tree.custom_name, std::move(keys), std::move(children));
  }
  return TreeDef::leaf();
}

ExportedTree exported_tree(const TreeDef& tree) {
  ExportedTree out;
  switch (tree.kind()) {
    case TreeDef::Kind::leaf:
      return out;
    case TreeDef::Kind::none:
      out.kind = ExportedTree::Kind::none;
      return out;
    case TreeDef::Kind::tuple:
      out.kind = ExportedTree::Kind::tuple;
      break;
    case TreeDef::Kind::list:
      out.kind = ExportedTree::Kind::list;
      break;
    case TreeDef::Kind::dict:
      out.kind = ExportedTree::Kind::dict;
      for (const TreeKey& key : tree.keys()) {
        if (key.kind != TreeKey::text)
          throw ValueError(concat("export: only dicts with strings as keys can be kept in a file, got ", tree));
        out.names.push_back(key.name);
      }
      break;
    case TreeDef::Kind::record:
      // The reader registers its own class under this name.
      out.kind = ExportedTree::Kind::custom;
      out.custom_name = tree.type_name();
      break;
    case TreeDef::Kind::value:
      throw ValueError(concat("export: a static value cannot be kept in a file, got ", tree,
                              "\nHint: close over it instead of passing it"));
  }
  for (const TreeDef& child : tree.children()) out.children.push_back(exported_tree(child));
  return out;
}

Types types_of(const std::vector<ExportedType>& list) {
  Types types;
  for (const ExportedType& one : list) {
    ArrayType type;
    type.shape = one.sizes();
    type.dtype = one.dtype;
    types.push_back(std::move(type));
  }
  return types;
}

std::vector<ExportedType> exported_types(const Types& types) {
  std::vector<ExportedType> list;
  for (const ArrayType& type : types) {
    ExportedType one;
    for (const int64_t size : type.shape) one.shape.push_back(std::to_string(size));
    one.dtype = type.dtype;
    list.push_back(std::move(one));
  }
  return list;
}

// ---- values at the border ----------------------------------------------------------------------------------------

const char* key_implementation_name(DType dtype) {
  return dtype == DType::key_fry ? "fry" : dtype == DType::key_rbg ? "rbg" : "urbg";
}

// A module holds keys as their words, and has booleans where a tangent is float0.
Array to_module(const Array& value) {
  if (is_key(value.dtype())) return capibara::bind(prim::random_unwrap(), Arrays{value}, {})[0];
  if (value.dtype() == DType::float0) return lax::full(value.shape(), Array(false), DType::bool_);
  return value;
}

Array from_module(const Array& value, const ArrayType& type) {
  if (is_key(type.dtype))
    return capibara::bind(prim::random_wrap(), Arrays{value}, {{"impl", key_implementation_name(type.dtype)}})[0];
  if (type.dtype == DType::float0) return lax::full(type.shape, Array(0), DType::float0);
  return value;
}

// What jax calls the platform that this thread computes on.
std::string current_platform() {
  const std::string platform = capibara::config().platform;
  return platform == "reference" ? "cpu" : platform;
}

}  // namespace

// ---- programs as functions ---------------------------------------------------------------------------------------

ProgramFunction::ProgramFunction(Program program)
    : program_(std::move(program)), cache_(capibara::detail::make_jit_cache({.name = program_.name()})) {}

Arrays ProgramFunction::operator()(std::span<const Array> arguments) const {
  namespace detail = capibara::detail;
  const Types types = program_.input_types();
  if (types.size() != arguments.size()) {
    throw TypeError(
        concat("the program '", program_.name(), "' takes ", types.size(), " arguments, got ", arguments.size()));
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i].shape == arguments[i].shape() && types[i].dtype == arguments[i].dtype()) continue;
    throw TypeError(concat("the program '", program_.name(), "': argument ", i, " must be ", to_string(types[i]),
                           ", got ", to_string(arguments[i].type())));
  }
  const ConfigScope scope(config_for(program_));
  const TreeDef in = TreeDef::tuple(std::vector<TreeDef>(arguments.size(), TreeDef::leaf()));
  std::shared_ptr<const detail::JitEntry> entry = detail::find_jit_entry(*cache_, in, arguments);
  if (!entry) {
    const TreeDef out = TreeDef::tuple(std::vector<TreeDef>(program_.outputs().size(), TreeDef::leaf()));
    const auto run = [program = program_](std::span<const Array> inputs) { return evaluate_program(program, inputs); };
    entry = detail::trace_jit_entry(*cache_, in, arguments, run, out);
  }
  return detail::call_jit_entry(*entry, arguments);
}

// ---- exported functions ------------------------------------------------------------------------------------------

struct Exported::State {
  ExportedFile file;
  TreeDef in_tree, out_tree;
  Types in_types, out_types;
  std::vector<std::size_t> kept;
  bool takes_platform = false;
  ProgramFunction function;
};

namespace {

Exported from_file(ExportedFile file) {
  TreeDef in = tree_of(file.in_tree), out = tree_of(file.out_tree);
  Types in_types = types_of(file.in_types), out_types = types_of(file.out_types);
  std::vector<std::size_t> kept(file.kept.begin(), file.kept.end());
  Program program = stablehlo::read_module(stablehlo::read_file(file.module));
  const std::size_t inputs = program.invars().size();
  const bool takes_platform = file.platforms.size() > 1 && inputs == kept.size() + 1;
  if ((inputs != kept.size() && !takes_platform) || program.outputs().size() != out_types.size()) {
    throw ParseError(concat("exported program: @", file.name, " maps ", inputs, " arguments to ",
                            program.outputs().size(), " results, its description says ", kept.size(), " and ",
                            out_types.size()));
  }
  program = program.renamed(file.name);
  auto state = std::make_shared<Exported::State>(
      Exported::State{std::move(file), std::move(in), std::move(out), std::move(in_types), std::move(out_types),
                      std::move(kept), takes_platform, ProgramFunction(program)});
  return Exported(std::move(state));
}

}  // namespace

const std::string& Exported::name() const { return state_->file.name; }
const std::vector<std::string>& Exported::platforms() const { return state_->file.platforms; }
int64_t Exported::nr_devices() const { return state_->file.devices; }
int Exported::calling_convention_version() const { return state_->file.calling_convention; }
const TreeDef& Exported::in_tree() const { return state_->in_tree; }
const TreeDef& Exported::out_tree() const { return state_->out_tree; }
const Types& Exported::in_types() const { return state_->in_types; }
const Types& Exported::out_types() const { return state_->out_types; }
const Program& Exported::program() const { return state_->function.program(); }
const std::vector<std::size_t>& Exported::kept_arguments() const { return state_->kept; }
const std::string& Exported::mlir_module_serialized() const { return state_->file.module; }
bool Exported::has_vjp() const { return state_->file.vjp != nullptr; }

Exported Exported::vjp() const {
  if (!has_vjp()) throw ValueError(concat("exported function '", name(), "': no VJP is available"));
  return from_file(*state_->file.vjp);
}

void Exported::check_structure(const TreeDef& given) const {
  if (given == in_tree()) return;
  throw TypeError(concat("exported function '", name(), "': the arguments have another structure than when it was ",
                         "exported: ", tree_difference(in_tree(), given)));
}

Arrays Exported::call_flat(std::span<const Array> leaves) const {
  const Types& types = in_types();
  if (types.size() != leaves.size()) {
    throw TypeError(concat("exported function '", name(), "' takes ", types.size(), " arrays, got ", leaves.size()));
  }
  const std::vector<KeyPath> paths = in_tree().paths();
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i].shape == leaves[i].shape() && types[i].dtype == leaves[i].dtype()) continue;
    throw TypeError(concat("exported function '", name(), "': argument ", keystr(paths[i]), " must be ",
                           to_string(types[i]), ", got ", to_string(leaves[i].type())));
  }
  const std::vector<std::string>& known = platforms();
  const std::string platform = current_platform();
  const auto at = std::find(known.begin(), known.end(), platform);
  const auto& checks = state_->file.disabled_checks;
  const bool anywhere = std::any_of(checks.begin(), checks.end(), [](const stablehlo::ExportedCheck& check) {
    return check.kind == stablehlo::ExportedCheck::Kind::platform;
  });
  if (at == known.end() && !(anywhere && !state_->takes_platform)) {
    std::string list;
    for (const std::string& one : known) list += concat(list.empty() ? "" : ", ", one);
    throw ValueError(concat("exported function '", name(), "' is for ", list, ", but is called on ", platform,
                            "\nHint: export it with platforms=[..., \"", platform, "\"]"));
  }
  const ConfigScope scope(config_for(program()));
  Arrays inputs;
  if (state_->takes_platform) {
    const auto number = static_cast<int32_t>(at - known.begin());
    inputs.push_back(Array::from_host(DType::int32, {}, &number));
  }
  for (const std::size_t index : state_->kept) inputs.push_back(to_module(leaves[index]));
  Arrays results = state_->function(inputs);
  for (std::size_t i = 0; i < results.size(); ++i) results[i] = from_module(results[i], out_types()[i]);
  return results;
}

std::string Exported::serialize() const { return stablehlo::write_exported_file(state_->file); }

Exported read_exported(std::string_view bytes) { return from_file(stablehlo::read_exported_file(bytes)); }

Exported load_exported(const std::string& path) { return read_exported(MappedFile(path).text()); }

void save_exported(const std::string& path, const Exported& exported) {
  const std::string bytes = exported.serialize();
  std::ofstream file(path, std::ios::binary);
  if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush())
    throw RuntimeError(concat(path, " cannot be written"));
}

Exported export_program(const Program& program, const TreeDef& in_tree, const TreeDef& out_tree,
                        const ExportOptions& options, const Exported* vjp) {
  ExportedFile file;
  file.name = options.name;
  file.in_tree = exported_tree(in_tree);
  file.out_tree = exported_tree(out_tree);
  file.in_types = exported_types(program.input_types());
  file.out_types = exported_types(program.output_types());
  if (file.in_tree.leaves() != file.in_types.size() || file.out_tree.leaves() != file.out_types.size()) {
    throw ValueError(concat("export: a program of ", file.in_types.size(), " arguments and ", file.out_types.size(),
                            " results does not fit trees of ", file.in_tree.leaves(), " and ", file.out_tree.leaves(),
                            " leaves"));
  }
  file.platforms = options.platforms;
  if (file.platforms.empty()) throw ValueError("export: expected at least one platform");
  const bool takes_platform = file.platforms.size() > 1;
  file.global_constants = takes_platform;
  const DceProgram pruned = dce_program(program, std::vector<bool>(program.outputs().size(), true),
                                        std::vector<bool>(program.invars().size(), false));
  for (std::size_t i = 0; i < pruned.used_inputs.size(); ++i) {
    if (pruned.used_inputs[i]) file.kept.push_back(static_cast<std::int64_t>(i));
  }
  file.in_shardings.resize(file.in_types.size());
  file.out_shardings.resize(file.out_types.size());
  file.module = stablehlo::write_program_bytecode(
      pruned.program, {.module_name = stablehlo::jit_module_name(options.name)}, takes_platform);
  if (vjp) file.vjp = std::make_shared<const ExportedFile>(stablehlo::read_exported_file(vjp->serialize()));
  return from_file(std::move(file));
}

}  // namespace capibara::jax
