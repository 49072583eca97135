// Reads and writes the tables of an exported function.
#include "compiler/stablehlo/exported/exported_file.h"

#include <algorithm>
#include <charconv>

#include <capibara/error.h>

#include "compiler/stablehlo/exported/flatbuffer.h"
#include "compiler/stablehlo/operations.h"

namespace capibara::stablehlo {

namespace {

// Slots of the tables.
enum ExportedSlot : std::size_t {
  slot_version = 0,
  slot_name = 1,
  slot_in_tree = 2,
  slot_in_types = 3,
  slot_out_tree = 4,
  slot_out_types = 5,
  slot_in_shardings = 7,
  slot_out_shardings = 8,
  slot_platforms = 9,
  slot_ordered_effects = 10,
  slot_unordered_effects = 11,
  slot_disabled_checks = 12,
  slot_module = 13,
  slot_calling_convention = 14,
  slot_kept = 15,
  slot_global_constants = 16,
  slot_vjp = 17,
  slot_devices = 18,
  slot_shared_types = 19,
  slot_shared_meshes = 20,
  slot_shared_shardings = 21,
  slot_in_type_numbers = 22,
  slot_out_type_numbers = 23,
  slot_in_sharding_numbers = 24,
  slot_out_sharding_numbers = 25,
};

constexpr int tree_depth_limit = 200;
constexpr int derivative_limit = 8;
constexpr std::uint16_t written_version = 3;  // of the tables; jax accepts any value

// Indexed by their codes in the file.
constexpr DType exported_dtypes[] = {
    DType::bool_,         DType::int8,
    DType::int16,         DType::int32,
    DType::int64,         DType::uint8,
    DType::uint16,        DType::uint32,
    DType::uint64,        DType::float16,
    DType::float32,       DType::float64,
    DType::complex64,     DType::complex128,
    DType::bfloat16,      DType::int4,
    DType::uint4,         DType::float8_e4m3b11fnuz,
    DType::float8_e4m3fn, DType::float8_e4m3fnuz,
    DType::float8_e5m2,   DType::float8_e5m2fnuz,
    DType::float0,        DType::float8_e4m3,
    DType::float8_e3m4,   DType::float8_e8m0fnu,
    DType::float4_e2m1fn, DType::key_fry,
    DType::key_rbg,       DType::key_unsafe_rbg,
};

[[noreturn]] void bad_export(const std::string& message) { throw ParseError(concat("exported program: ", message)); }

ExportedTree read_tree(const FlatTable& table, int depth = 0) {
  if (depth > tree_depth_limit) bad_export(concat("expected a tree of at most ", tree_depth_limit, " levels"));
  ExportedTree tree;
  const auto kind = table.number<std::int8_t>(0, 0);
  if (kind < 0 || kind > static_cast<int>(ExportedTree::Kind::custom)) bad_export(concat("has a node of kind ", kind));
  tree.kind = static_cast<ExportedTree::Kind>(kind);
  for (const FlatTable& child : table.tables(1)) tree.children.push_back(read_tree(child, depth + 1));
  tree.names = table.texts(2);
  tree.custom_name = table.text(3);
  const std::vector<char> data = table.numbers<char>(4);
  tree.custom_data.assign(data.begin(), data.end());
  if (tree.kind == ExportedTree::Kind::dict && tree.names.size() != tree.children.size())
    bad_export(concat("has a dict of ", tree.names.size(), " keys and ", tree.children.size(), " values"));
  if (!tree.children.empty() && (tree.kind == ExportedTree::Kind::leaf || tree.kind == ExportedTree::Kind::none))
    bad_export("has children of a leaf");
  return tree;
}

ExportedTree read_tree_of(const FlatTable& table, std::size_t slot, const char* what) {
  const std::optional<FlatTable> tree = table.table(slot);
  if (!tree) bad_export(concat("expected the tree of its ", what));
  return read_tree(*tree);
}

ExportedType read_type(const FlatTable& table) {
  ExportedType type;
  type.shape = table.texts(1);
  const auto dtype = table.number<std::int8_t>(2, 0);
  if (dtype < 0 || static_cast<std::size_t>(dtype) >= std::size(exported_dtypes))
    throw UnsupportedError(concat("exported program: the element type ", static_cast<int>(dtype), " is unknown"));
  type.dtype = exported_dtypes[dtype];
  type.memory = table.number<std::int8_t>(3, 1);
  return type;
}

std::optional<ExportedSharding> read_sharding_table(const FlatTable& table, const std::vector<FlatTable>& meshes) {
  ExportedSharding sharding;
  std::optional<FlatTable> mesh = table.table(0);
  if (!mesh && !meshes.empty()) {
    const auto index = table.number<std::uint32_t>(3, 0);
    if (index >= meshes.size()) bad_export(concat("names mesh ", index, " of ", meshes.size()));
    mesh = meshes[index];
  }
  if (!mesh) bad_export("expected the mesh of a sharding");
  for (const std::uint32_t size : mesh->numbers<std::uint32_t>(0)) sharding.axis_sizes.push_back(size);
  sharding.axis_names = mesh->texts(1);
  for (const std::int8_t type : mesh->numbers<std::int8_t>(2)) sharding.axis_types.push_back(type);
  if (sharding.axis_names.size() != sharding.axis_sizes.size())
    bad_export(
        concat("has a mesh of ", sharding.axis_names.size(), " names and ", sharding.axis_sizes.size(), " sizes"));
  if (const std::optional<FlatTable> device = mesh->table(3)) {
    sharding.device_kind = device->text(0);
    if (device->has(1)) sharding.cores = device->number<std::uint32_t>(1, 0);
    sharding.platform = device->text(2);
  }
  if (const std::optional<FlatTable> spec = table.table(1)) {
    for (const FlatTable& dim : spec->tables(0)) sharding.dims.push_back(dim.texts(0));
    sharding.reduced = spec->texts(1);
    sharding.unreduced = spec->texts(2);
  }
  sharding.memory_kind = table.text(2);
  return sharding;
}

using Shardings = std::vector<std::optional<ExportedSharding>>;

// The sharding of each value, by its index into the shared ones or in full.
Shardings read_shardings(const FlatTable& table, std::size_t slot, std::size_t numbers_slot, std::size_t count) {
  const std::vector<FlatTable> meshes = table.tables(slot_shared_meshes), shared = table.tables(slot_shared_shardings);
  Shardings shardings;
  for (const std::uint32_t number : table.numbers<std::uint32_t>(numbers_slot)) {
    if (number > shared.size()) bad_export(concat("names sharding ", number, " of ", shared.size()));
    shardings.push_back(number == 0 ? std::nullopt : read_sharding_table(shared[number - 1], meshes));
  }
  if (shardings.empty()) {
    for (const FlatTable& one : table.tables(slot)) {
      const std::optional<FlatTable> named = one.table(2);
      shardings.push_back(named ? read_sharding_table(*named, meshes) : std::nullopt);
    }
  }
  if (shardings.empty()) shardings.resize(count);
  if (shardings.size() != count) bad_export(concat("has ", shardings.size(), " shardings of ", count, " values"));
  return shardings;
}

std::vector<ExportedType> read_types(const FlatTable& table, std::size_t slot, std::size_t numbers_slot) {
  std::vector<ExportedType> types;
  const std::vector<FlatTable> shared = table.tables(slot_shared_types);
  for (const std::uint32_t number : table.numbers<std::uint32_t>(numbers_slot)) {
    if (number >= shared.size()) bad_export(concat("names type ", number, " of ", shared.size()));
    types.push_back(read_type(shared[number]));
  }
  if (!types.empty()) return types;
  for (const FlatTable& one : table.tables(slot)) types.push_back(read_type(one));
  return types;
}

std::vector<std::string> read_effects(const FlatTable& table, std::size_t slot) {
  std::vector<std::string> names;
  for (const FlatTable& one : table.tables(slot)) names.push_back(one.text(0));
  return names;
}

ExportedFile read_exported_table(const FlatTable& table, int derivatives) {
  if (derivatives > derivative_limit) bad_export(concat("expected at most ", derivative_limit, " derivatives"));
  ExportedFile file;
  file.name = table.text(slot_name);
  file.in_tree = read_tree_of(table, slot_in_tree, "arguments");
  file.out_tree = read_tree_of(table, slot_out_tree, "results");
  file.in_types = read_types(table, slot_in_types, slot_in_type_numbers);
  file.out_types = read_types(table, slot_out_types, slot_out_type_numbers);
  if (file.in_tree.leaves() != file.in_types.size() || file.out_tree.leaves() != file.out_types.size()) {
    bad_export(concat("has trees of ", file.in_tree.leaves(), " and ", file.out_tree.leaves(), " leaves for ",
                      file.in_types.size(), " arguments and ", file.out_types.size(), " results"));
  }
  file.devices = table.number<std::uint32_t>(slot_devices, 0);
  if (file.devices == 0) bad_export("expected the number of its devices");
  file.in_shardings = read_shardings(table, slot_in_shardings, slot_in_sharding_numbers, file.in_types.size());
  file.out_shardings = read_shardings(table, slot_out_shardings, slot_out_sharding_numbers, file.out_types.size());
  file.platforms = table.texts(slot_platforms);
  if (file.platforms.empty()) bad_export("expected the platforms that it is for");
  file.ordered_effects = read_effects(table, slot_ordered_effects);
  file.unordered_effects = read_effects(table, slot_unordered_effects);
  for (const FlatTable& one : table.tables(slot_disabled_checks)) {
    const auto kind = one.number<std::int8_t>(0, 0);
    file.disabled_checks.push_back(
        {kind == 1 ? ExportedCheck::Kind::custom_call : ExportedCheck::Kind::platform, one.text(1)});
  }
  const std::vector<char> module = table.numbers<char>(slot_module);
  file.module.assign(module.begin(), module.end());
  file.calling_convention = table.number<std::uint16_t>(slot_calling_convention, 0);
  if (file.calling_convention < oldest_calling_convention || file.calling_convention > newest_calling_convention) {
    throw UnsupportedError(concat("exported program: @", file.name, " has calling convention ", file.calling_convention,
                                  ", expected ", oldest_calling_convention, " to ", newest_calling_convention,
                                  "\nHint: export it again with a jax of this year"));
  }
  for (const std::uint16_t index : table.numbers<std::uint16_t>(slot_kept)) {
    if (index >= file.in_types.size() || (!file.kept.empty() && index <= file.kept.back()))
      bad_export("expected the numbers of the arguments that it keeps in order");
    file.kept.push_back(index);
  }
  file.global_constants = table.number<std::uint8_t>(slot_global_constants, 0) != 0;
  if (const std::optional<FlatTable> vjp = table.table(slot_vjp))
    file.vjp = std::make_shared<const ExportedFile>(read_exported_table(*vjp, derivatives + 1));
  return file;
}

// ---- writing -----------------------------------------------------------------------------------------------------

FlatValue write_tree(const ExportedTree& tree) {
  FlatFields fields{{0, FlatValue::byte(static_cast<std::int64_t>(tree.kind))}};
  if (!tree.children.empty()) {
    std::vector<FlatValue> children;
    for (const ExportedTree& child : tree.children) children.push_back(write_tree(child));
    fields.emplace(1, FlatValue::list(std::move(children)));
  }
  if (tree.kind == ExportedTree::Kind::dict) fields.emplace(2, FlatValue::texts(tree.names));
  if (tree.kind == ExportedTree::Kind::custom) {
    fields.emplace(3, FlatValue::text(tree.custom_name));
    fields.emplace(4, FlatValue::bytes(tree.custom_data));
  }
  return FlatValue::table(std::move(fields));
}

FlatValue write_types(const std::vector<ExportedType>& types) {
  std::vector<FlatValue> list;
  for (const ExportedType& type : types) {
    const auto* at = std::find(std::begin(exported_dtypes), std::end(exported_dtypes), type.dtype);
    if (at == std::end(exported_dtypes))
      throw UnsupportedError(concat("export: values of type ", dtype_name(type.dtype), " cannot be kept in a file"));
    list.push_back(FlatValue::table({{0, FlatValue::byte(0)},
                                     {1, FlatValue::texts(type.shape)},
                                     {2, FlatValue::byte(at - std::begin(exported_dtypes))},
                                     {3, FlatValue::byte(type.memory)}}));
  }
  return FlatValue::list(std::move(list));
}

FlatValue write_shardings(const Shardings& shardings) {
  std::vector<FlatValue> list;
  for (const std::optional<ExportedSharding>& sharding : shardings) {
    if (!sharding) {
      list.push_back(FlatValue::table({}));
      continue;
    }
    FlatFields mesh{{0, FlatValue::words(sharding->axis_sizes)},
                    {1, FlatValue::texts(sharding->axis_names)},
                    {2, FlatValue::small(sharding->axis_types)}};
    if (!sharding->platform.empty() || !sharding->device_kind.empty()) {
      FlatFields device{{0, FlatValue::text(sharding->device_kind)}, {2, FlatValue::text(sharding->platform)}};
      if (sharding->cores) device.emplace(1, FlatValue::word(*sharding->cores));
      mesh.emplace(3, FlatValue::table(std::move(device)));
    }
    std::vector<FlatValue> dims;
    for (const std::vector<std::string>& axes : sharding->dims)
      dims.push_back(FlatValue::table({{0, FlatValue::texts(axes)}}));
    FlatFields spec{{0, FlatValue::list(std::move(dims))},
                    {1, FlatValue::texts(sharding->reduced)},
                    {2, FlatValue::texts(sharding->unreduced)}};
    FlatFields named{{0, FlatValue::table(std::move(mesh))}, {1, FlatValue::table(std::move(spec))}};
    if (!sharding->memory_kind.empty()) named.emplace(2, FlatValue::text(sharding->memory_kind));
    list.push_back(FlatValue::table({{2, FlatValue::table(std::move(named))}}));
  }
  return FlatValue::list(std::move(list));
}

FlatValue write_effects(const std::vector<std::string>& names) {
  std::vector<FlatValue> list;
  for (const std::string& name : names) list.push_back(FlatValue::table({{0, FlatValue::text(name)}}));
  return FlatValue::list(std::move(list));
}

FlatFields exported_fields(const ExportedFile& file) {
  std::vector<FlatValue> checks;
  for (const ExportedCheck& check : file.disabled_checks) {
    FlatFields fields{{0, FlatValue::byte(static_cast<std::int64_t>(check.kind))}};
    if (check.kind == ExportedCheck::Kind::custom_call) fields.emplace(1, FlatValue::text(check.target));
    checks.push_back(FlatValue::table(std::move(fields)));
  }
  FlatFields fields{{slot_version, FlatValue::half(written_version)},
                    {slot_name, FlatValue::text(file.name)},
                    {slot_in_tree, write_tree(file.in_tree)},
                    {slot_in_types, write_types(file.in_types)},
                    {slot_out_tree, write_tree(file.out_tree)},
                    {slot_out_types, write_types(file.out_types)},
                    {slot_in_shardings, write_shardings(file.in_shardings)},
                    {slot_out_shardings, write_shardings(file.out_shardings)},
                    {slot_platforms, FlatValue::texts(file.platforms)},
                    {slot_ordered_effects, write_effects(file.ordered_effects)},
                    {slot_unordered_effects, write_effects(file.unordered_effects)},
                    {slot_disabled_checks, FlatValue::list(std::move(checks))},
                    {slot_module, FlatValue::bytes(file.module)},
                    {slot_calling_convention, FlatValue::half(file.calling_convention)},
                    {slot_kept, FlatValue::halves(file.kept)},
                    {slot_global_constants, FlatValue::byte(file.global_constants ? 1 : 0)},
                    {slot_devices, FlatValue::word(file.devices)}};
  if (file.vjp) fields.emplace(slot_vjp, FlatValue::table(exported_fields(*file.vjp)));
  return fields;
}

}  // namespace

std::size_t ExportedTree::leaves() const {
  if (kind == Kind::leaf) return 1;
  std::size_t count = 0;
  for (const ExportedTree& child : children) count += child.leaves();
  return count;
}

namespace {

bool is_number(const std::string& size) {
  return !size.empty() && size.size() <= 18 && size.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

bool ExportedType::symbolic() const { return !std::all_of(shape.begin(), shape.end(), is_number); }

std::vector<std::int64_t> ExportedType::sizes() const {
  std::vector<std::int64_t> sizes;
  for (const std::string& text : shape) {
    std::int64_t& size = sizes.emplace_back(dynamic_size);
    if (is_number(text)) std::from_chars(text.data(), text.data() + text.size(), size);
  }
  return sizes;
}

bool may_be_exported(std::string_view bytes) {
  // The first word is the offset of the root, near the beginning; no text begins with such bytes.
  if (bytes.size() < 8) return false;
  std::uint32_t root = 0;
  std::memcpy(&root, bytes.data(), sizeof root);
  return root >= 4 && root < bytes.size() && root < (1 << 16) && root % 2 == 0 && bytes[3] == 0;
}

ExportedFile read_exported_file(std::string_view bytes) {
  if (!may_be_exported(bytes)) bad_export("these bytes are not an exported program of jax or of this library");
  FlatBudget budget(bytes.size());
  return read_exported_table(FlatTable::root(bytes, budget), 0);
}

std::string write_exported_file(const ExportedFile& file) { return write_flatbuffer(exported_fields(file)); }

}  // namespace capibara::stablehlo
