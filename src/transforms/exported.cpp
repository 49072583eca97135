// Exported functions: converts between their files and programs with types and trees.
#include <capibara/exported.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <mutex>

#include <capibara/config.h>
#include <capibara/lax.h>

#include "compiler/stablehlo/bytecode/read_bytecode.h"
#include "compiler/stablehlo/bytecode/write_bytecode.h"
#include "compiler/stablehlo/exported/exported_file.h"
#include "compiler/stablehlo/exported/size_expression.h"
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

ArrayType plain_type(DType dtype, Shape shape) {
  ArrayType type;
  type.shape = std::move(shape);
  type.dtype = dtype;
  return type;
}

Types types_of(const std::vector<ExportedType>& list) {
  Types types;
  for (const ExportedType& one : list) types.push_back(plain_type(one.dtype, one.sizes()));
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

// ---- values at the boundary --------------------------------------------------------------------------------------

const char* key_implementation_name(DType dtype) {
  return dtype == DType::key_fry ? "fry" : dtype == DType::key_rbg ? "rbg" : "urbg";
}

// A module stores keys as their words, and float0 tangents as booleans.
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

// jax's name for the platform on which this thread computes.
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
  std::vector<std::vector<std::string>> in_shapes, out_shapes;
  std::vector<std::size_t> kept;
  stablehlo::Module module;
  bool is_symbolic = false, takes_platform = false;
  mutable std::mutex mutex;
  mutable std::map<std::string, ProgramFunction> functions;  // keyed by the types for which the program was read

  // The function of the module's arguments. Discards those for earlier sizes when there are many.
  ProgramFunction function(const Types& types = {}) const;
};

namespace {

constexpr std::size_t kept_functions = 256;

std::vector<std::vector<std::string>> shapes_of(const std::vector<ExportedType>& types) {
  std::vector<std::vector<std::string>> shapes;
  for (const ExportedType& type : types) shapes.push_back(type.shape);
  return shapes;
}

bool any_symbolic(const std::vector<ExportedType>& types) {
  return std::any_of(types.begin(), types.end(), [](const ExportedType& type) { return type.symbolic(); });
}

Exported from_file(ExportedFile file) {
  auto state = std::make_shared<Exported::State>();
  state->in_tree = tree_of(file.in_tree);
  state->out_tree = tree_of(file.out_tree);
  state->in_types = types_of(file.in_types);
  state->out_types = types_of(file.out_types);
  state->in_shapes = shapes_of(file.in_types);
  state->out_shapes = shapes_of(file.out_types);
  state->kept.assign(file.kept.begin(), file.kept.end());
  state->module = stablehlo::read_file(file.module);
  state->is_symbolic = any_symbolic(file.in_types);
  const stablehlo::Entry entry = stablehlo::read_entry(state->module);
  const auto arrays = [](const std::vector<stablehlo::EntryValue>& values) {
    return static_cast<std::size_t>(std::count_if(
        values.begin(), values.end(), [](const stablehlo::EntryValue& value) { return !value.type.is_token(); }));
  };
  const std::size_t inputs = arrays(entry.arguments), outputs = arrays(entry.results), kept = state->kept.size();
  state->takes_platform = file.platforms.size() > 1 && inputs == kept + 1;
  if ((inputs != kept && !state->takes_platform) || outputs != state->out_types.size()) {
    throw ParseError(concat("exported program: @", file.name, " maps ", inputs, " arguments to ", outputs,
                            " results, its description says ", kept, " and ", state->out_types.size()));
  }
  state->file = std::move(file);
  if (!state->is_symbolic) state->function();
  return Exported(std::move(state));
}

ArrayType module_type(const ArrayType& type) {
  ArrayType own = type;
  if (is_key(type.dtype)) {
    own.shape.push_back(key_words(type.dtype));
    own.dtype = DType::uint32;
  }
  if (type.dtype == DType::float0) own.dtype = DType::bool_;
  return own;
}

}  // namespace

ProgramFunction Exported::State::function(const Types& types) const {
  std::string key;
  for (const ArrayType& type : types) key += to_string(type);
  const std::lock_guard lock(mutex);
  const auto found = functions.find(key);
  if (found != functions.end()) return found->second;
  const Program program = stablehlo::read_module(module, {.arguments = types}).renamed(file.name);
  if (functions.size() >= kept_functions) functions.clear();
  return functions.emplace(key, ProgramFunction(program)).first->second;
}

const std::string& Exported::name() const { return state_->file.name; }
const std::vector<std::string>& Exported::platforms() const { return state_->file.platforms; }
int64_t Exported::nr_devices() const { return state_->file.devices; }
int Exported::calling_convention_version() const { return state_->file.calling_convention; }
const TreeDef& Exported::in_tree() const { return state_->in_tree; }
const TreeDef& Exported::out_tree() const { return state_->out_tree; }
const Types& Exported::in_types() const { return state_->in_types; }
const Types& Exported::out_types() const { return state_->out_types; }
bool Exported::has_symbolic_sizes() const { return state_->is_symbolic; }
Types Exported::in_types(const std::map<std::string, int64_t>& sizes) const {
  Types types = in_types();
  for (std::size_t i = 0; i < types.size(); ++i) {
    for (std::size_t axis = 0; axis < types[i].shape.size(); ++axis) {
      int64_t& size = types[i].shape[axis];
      if (size < 0) size = stablehlo::size_of(in_shapes()[i][axis], sizes);
    }
  }
  return types;
}

const std::vector<std::vector<std::string>>& Exported::in_shapes() const { return state_->in_shapes; }
const std::vector<std::vector<std::string>>& Exported::out_shapes() const { return state_->out_shapes; }
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

namespace {

std::string shape_text(const std::vector<std::string>& shape) {
  std::string text;
  for (const std::string& size : shape) text += concat(text.empty() ? "" : ",", size);
  return concat("[", text, "]");
}

}  // namespace

Program Exported::program(const Types& arguments) const {
  if (!has_symbolic_sizes()) return state_->function().program();
  if (arguments.empty()) {
    throw ValueError(concat("exported function '", name(), "' has symbolic sizes",
                            "\nHint: give the types of the arguments that the program is for"));
  }
  check_types(arguments);
  Types types;
  if (state_->takes_platform) types.push_back(plain_type(DType::int32, {}));
  for (const std::size_t index : state_->kept) types.push_back(module_type(arguments[index]));
  return state_->function(types).program();
}

void Exported::check_types(const Types& given) const {
  const Types& types = in_types();
  if (types.size() != given.size()) {
    throw TypeError(concat("exported function '", name(), "' takes ", types.size(), " arrays, got ", given.size()));
  }
  const std::vector<KeyPath> paths = in_tree().paths();
  for (std::size_t i = 0; i < types.size(); ++i) {
    const bool fits =
        std::equal(types[i].shape.begin(), types[i].shape.end(), given[i].shape.begin(), given[i].shape.end(),
                   [](int64_t size, int64_t own) { return size == own || size < 0; });
    if (fits && types[i].dtype == given[i].dtype) continue;
    throw TypeError(concat(
        "exported function '", name(), "': argument ", keystr(paths[i]), " must be ",
        has_symbolic_sizes() ? concat(dtype_name(types[i].dtype), shape_text(in_shapes()[i])) : to_string(types[i]),
        ", got ", to_string(given[i])));
  }
}

Arrays Exported::call_flat(std::span<const Array> leaves) const {
  Types given;
  for (const Array& leaf : leaves) given.push_back(leaf.type());
  check_types(given);
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
  Arrays inputs;
  if (state_->takes_platform) {
    const auto number = static_cast<int32_t>(at - known.begin());
    inputs.push_back(Array::from_host(DType::int32, {}, &number));
  }
  for (const std::size_t index : state_->kept) inputs.push_back(to_module(leaves[index]));
  Types types;
  for (std::size_t i = 0; has_symbolic_sizes() && i < inputs.size(); ++i)
    types.push_back(plain_type(inputs[i].dtype(), inputs[i].shape()));
  const ProgramFunction function = state_->function(types);
  const ConfigScope scope(config_for(function.program()));
  Arrays results = function(inputs);
  for (std::size_t i = 0; i < results.size(); ++i) {
    ArrayType type = out_types()[i];
    if (has_symbolic_sizes() && !is_key(type.dtype)) type.shape = results[i].shape();
    results[i] = from_module(results[i], type);
  }
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
