// The file of an exported function in jax's format: its program, types, trees, shardings and platforms.
#pragma once

#include <capibara/dtype.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capibara::stablehlo {

struct ExportedTree {
  enum class Kind : std::uint8_t { leaf, none, tuple, list, dict, custom };
  Kind kind = Kind::leaf;
  std::vector<ExportedTree> children;
  std::vector<std::string> names;  // the keys of a dict, sorted
  std::string custom_name;         // under which its class was registered
  std::string custom_data;

  std::size_t leaves() const;
};

struct ExportedType {
  std::vector<std::string> shape;  // numbers; for symbolic sizes names and sums
  DType dtype = DType::float32;
  int memory = 1;  // 1: device, 2: host, 3: either

  bool symbolic() const;
  std::vector<std::int64_t> sizes() const;  // dynamic_size for symbolic ones
};

struct ExportedSharding {
  std::vector<std::string> axis_names;
  std::vector<std::int64_t> axis_sizes;
  std::vector<std::int64_t> axis_types;  // 1: Auto, 2: Explicit, 3: Manual
  std::string device_kind, platform;     // if the mesh names a kind of device
  std::optional<std::int64_t> cores;
  std::vector<std::vector<std::string>> dims;  // the axes that split each dimension
  std::vector<std::string> reduced, unreduced;
  std::string memory_kind;
};

struct ExportedCheck {
  enum class Kind : std::uint8_t { platform, custom_call };
  Kind kind = Kind::platform;
  std::string target;
};

struct ExportedFile {
  std::string name;
  ExportedTree in_tree, out_tree;
  std::vector<ExportedType> in_types, out_types;
  std::int64_t devices = 1;
  std::vector<std::optional<ExportedSharding>> in_shardings, out_shardings;  // nullopt: left to the compiler
  std::vector<std::string> platforms;
  std::vector<std::string> ordered_effects, unordered_effects;
  std::vector<ExportedCheck> disabled_checks;
  std::string module;  // a StableHLO portable artifact
  int calling_convention = 10;
  std::vector<std::int64_t> kept;  // which flat arguments the module takes
  bool global_constants = false;   // true if it takes sizes or the platform index before them
  std::shared_ptr<const ExportedFile> vjp;
};

inline constexpr int oldest_calling_convention = 9, newest_calling_convention = 10;

// True if the bytes may be such a file; the format has no magic number.
bool may_be_exported(std::string_view bytes);
// Raises ParseError if the bytes are malformed, UnsupportedError for unknown calling conventions.
ExportedFile read_exported_file(std::string_view bytes);
std::string write_exported_file(const ExportedFile& file);

}  // namespace capibara::stablehlo
