// Files of exported functions as dicts, and StableHLO as bytecode.
#include <capibara/config.h>
#include <capibara/error.h>
#include <capibara/program.h>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "compiler/stablehlo/bytecode/read_bytecode.h"
#include "compiler/stablehlo/bytecode/write_bytecode.h"
#include "compiler/stablehlo/exported/exported_file.h"
#include "compiler/stablehlo/open_sizes.h"
#include "compiler/stablehlo/read.h"

namespace capibara::python {

namespace {

using stablehlo::ExportedCheck;
using stablehlo::ExportedFile;
using stablehlo::ExportedSharding;
using stablehlo::ExportedTree;
using stablehlo::ExportedType;

nb::bytes bytes_of(const std::string& text) { return nb::bytes(text.data(), text.size()); }
std::string text_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

// (kind, children, keys of a dict, name and data of a registered class)
nb::tuple tree_tuple(const ExportedTree& tree) {
  nb::list children;
  for (const ExportedTree& child : tree.children) children.append(tree_tuple(child));
  return nb::make_tuple(static_cast<int>(tree.kind), children, tree.names, tree.custom_name,
                        bytes_of(tree.custom_data));
}

ExportedTree tree_from(nb::handle value) {
  const auto parts = nb::cast<nb::tuple>(value);
  ExportedTree tree;
  tree.kind = static_cast<ExportedTree::Kind>(nb::cast<int>(parts[0]));
  for (nb::handle child : nb::cast<nb::list>(parts[1])) tree.children.push_back(tree_from(child));
  tree.names = nb::cast<std::vector<std::string>>(parts[2]);
  tree.custom_name = nb::cast<std::string>(parts[3]);
  tree.custom_data = text_of(nb::cast<nb::bytes>(parts[4]));
  return tree;
}

nb::list type_tuples(const std::vector<ExportedType>& types) {
  nb::list list;
  for (const ExportedType& type : types) {
    const nb::object shape = type.symbolic() ? nb::cast(type.shape) : nb::cast(type.sizes());
    list.append(nb::make_tuple(shape, std::string(dtype_name(type.dtype)), type.memory));
  }
  return list;
}

std::vector<ExportedType> types_from(nb::handle values) {
  std::vector<ExportedType> types;
  for (nb::handle value : nb::cast<nb::list>(values)) {
    const auto parts = nb::cast<nb::tuple>(value);
    ExportedType type;
    for (nb::handle size : nb::cast<nb::sequence>(parts[0])) type.shape.emplace_back(nb::str(size).c_str());
    const auto name = nb::cast<std::string>(parts[1]);
    bool known = false;
    for (const DTypeRow& row : dtype_table) {
      if (row.name != name) continue;
      type.dtype = row.dtype;
      known = true;
    }
    if (!known) throw TypeError(concat("export: values of type ", name, " cannot be kept in a file"));
    type.memory = nb::cast<int>(parts[2]);
    types.push_back(std::move(type));
  }
  return types;
}

nb::list sharding_dicts(const std::vector<std::optional<ExportedSharding>>& shardings) {
  nb::list list;
  for (const std::optional<ExportedSharding>& one : shardings) {
    if (!one) {
      list.append(nb::none());
      continue;
    }
    nb::dict own;
    own["axis_names"] = one->axis_names;
    own["axis_sizes"] = one->axis_sizes;
    own["axis_types"] = one->axis_types;
    own["device_kind"] = one->device_kind;
    own["platform"] = one->platform;
    own["cores"] = one->cores ? nb::object(nb::int_(*one->cores)) : nb::object(nb::none());
    own["dims"] = one->dims;
    own["reduced"] = one->reduced;
    own["unreduced"] = one->unreduced;
    own["memory_kind"] = one->memory_kind;
    list.append(own);
  }
  return list;
}

std::vector<std::optional<ExportedSharding>> shardings_from(nb::handle values) {
  std::vector<std::optional<ExportedSharding>> shardings;
  for (nb::handle value : nb::cast<nb::list>(values)) {
    std::optional<ExportedSharding>& one = shardings.emplace_back();
    if (value.is_none()) continue;
    const auto own = nb::cast<nb::dict>(value);
    one.emplace();
    one->axis_names = nb::cast<std::vector<std::string>>(own["axis_names"]);
    one->axis_sizes = nb::cast<std::vector<int64_t>>(own["axis_sizes"]);
    one->axis_types = nb::cast<std::vector<int64_t>>(own["axis_types"]);
    one->device_kind = nb::cast<std::string>(own["device_kind"]);
    one->platform = nb::cast<std::string>(own["platform"]);
    if (!own["cores"].is_none()) one->cores = nb::cast<int64_t>(own["cores"]);
    one->dims = nb::cast<std::vector<std::vector<std::string>>>(own["dims"]);
    one->reduced = nb::cast<std::vector<std::string>>(own["reduced"]);
    one->unreduced = nb::cast<std::vector<std::string>>(own["unreduced"]);
    one->memory_kind = nb::cast<std::string>(own["memory_kind"]);
  }
  return shardings;
}

nb::dict exported_dict(const ExportedFile& file) {
  nb::dict own;
  own["name"] = file.name;
  own["in_tree"] = tree_tuple(file.in_tree);
  own["out_tree"] = tree_tuple(file.out_tree);
  own["in"] = type_tuples(file.in_types);
  own["out"] = type_tuples(file.out_types);
  own["devices"] = file.devices;
  own["in_shardings"] = sharding_dicts(file.in_shardings);
  own["out_shardings"] = sharding_dicts(file.out_shardings);
  own["platforms"] = file.platforms;
  own["ordered_effects"] = file.ordered_effects;
  own["unordered_effects"] = file.unordered_effects;
  nb::list checks;
  for (const ExportedCheck& check : file.disabled_checks) {
    checks.append(check.kind == ExportedCheck::Kind::platform ? std::string("platform")
                                                              : concat("custom_call:", check.target));
  }
  own["disabled"] = checks;
  own["module"] = bytes_of(file.module);
  own["convention"] = file.calling_convention;
  own["kept"] = file.kept;
  own["global_constants"] = file.global_constants;
  own["vjp"] = file.vjp ? nb::object(exported_dict(*file.vjp)) : nb::object(nb::none());
  return own;
}

ExportedFile exported_from(const nb::dict& own) {
  ExportedFile file;
  file.name = nb::cast<std::string>(own["name"]);
  file.in_tree = tree_from(own["in_tree"]);
  file.out_tree = tree_from(own["out_tree"]);
  file.in_types = types_from(own["in"]);
  file.out_types = types_from(own["out"]);
  file.devices = nb::cast<int64_t>(own["devices"]);
  file.in_shardings = shardings_from(own["in_shardings"]);
  file.out_shardings = shardings_from(own["out_shardings"]);
  file.platforms = nb::cast<std::vector<std::string>>(own["platforms"]);
  file.ordered_effects = nb::cast<std::vector<std::string>>(own["ordered_effects"]);
  file.unordered_effects = nb::cast<std::vector<std::string>>(own["unordered_effects"]);
  for (const std::string& check : nb::cast<std::vector<std::string>>(own["disabled"])) {
    const std::string prefix = "custom_call:";
    if (check.starts_with(prefix))
      file.disabled_checks.push_back({ExportedCheck::Kind::custom_call, check.substr(prefix.size())});
    else
      file.disabled_checks.push_back({ExportedCheck::Kind::platform, ""});
  }
  file.module = text_of(nb::cast<nb::bytes>(own["module"]));
  file.calling_convention = nb::cast<int>(own["convention"]);
  file.kept = nb::cast<std::vector<int64_t>>(own["kept"]);
  file.global_constants = nb::cast<bool>(own["global_constants"]);
  if (!own["vjp"].is_none())
    file.vjp = std::make_shared<const ExportedFile>(exported_from(nb::cast<nb::dict>(own["vjp"])));
  return file;
}

}  // namespace

void bind_exported(nb::module_& m) {
  m.def(
      "read_exported",
      [](const nb::bytes& bytes) {
        return exported_dict(stablehlo::read_exported_file({bytes.c_str(), bytes.size()}));
      },
      nb::arg("bytes"), "What the bytes of an exported function say, as a dict.");
  m.def(
      "write_exported",
      [](const nb::dict& facts) { return bytes_of(stablehlo::write_exported_file(exported_from(facts))); },
      nb::arg("facts"), "The bytes of an exported function that read_exported makes this dict of.");
  m.def(
      "stablehlo_artifact",
      [](const std::string& text, bool takes_platform) {
        return bytes_of(stablehlo::write_bytecode_of_text(text, takes_platform));
      },
      nb::arg("text"), nb::arg("takes_platform") = false,
      "A StableHLO text as a portable artifact: MLIR's bytecode. With takes_platform its main function takes the "
      "number "
      "of a platform before its own arguments.");
  m.def(
      "stablehlo_text",
      [](const nb::bytes& artifact) {
        Config settings = config();
        settings.enable_x64 = true;
        const ConfigScope scope(settings);
        const stablehlo::Module module = stablehlo::read_file({artifact.c_str(), artifact.size()});
        if (stablehlo::has_open_sizes(module)) return stablehlo::print_tree(module);
        stablehlo::ReadOptions options;
        options.placements = true;
        return to_stablehlo(stablehlo::read_module(module, options), module.name.empty() ? "main" : module.name);
      },
      nb::arg("artifact"), "The text of a StableHLO artifact.");
}

}  // namespace capibara::python
