// The container of MLIR's bytecode, version 6: sections, strings, names, and the places of attributes and types.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/stablehlo/bytecode/byte_cursor.h"

namespace capibara::stablehlo {

inline constexpr std::uint64_t bytecode_version = 6;  // of every artifact of StableHLO since 0.15
inline constexpr std::string_view bytecode_magic = "ML\xefR";

enum class SectionId : std::uint8_t {
  strings,
  dialects,
  entries,
  entry_sizes,
  operations,
  resources,
  resource_sizes,
  dialect_versions,
  properties,
};
inline constexpr std::size_t section_count = 9;

// One attribute or type: undecoded bytes.
struct BytecodeEntry {
  std::size_t dialect = 0;
  Bytes bytes;
  std::size_t offset = 0;  // in the file
  bool custom = true;      // else MLIR's text
};

struct OperationName {
  std::size_t dialect = 0;
  std::string_view name;
};

// Views into the bytes that were read, which must outlive it.
struct BytecodeContainer {
  std::string_view producer;  // "StableHLO_v1.15.0"
  std::vector<std::string_view> strings;
  std::vector<std::string_view> dialects;
  std::vector<OperationName> operation_names;
  std::vector<BytecodeEntry> attributes;
  std::vector<BytecodeEntry> types;
  std::vector<Bytes> properties;
  Bytes operations;
  std::size_t operations_offset = 0;

  std::string operation_name(std::size_t index) const;  // "vhlo.add_v1"
};

bool is_bytecode(std::string_view file);
// Raises ParseError where the sections do not fit together, UnsupportedError for other versions.
BytecodeContainer read_container(Bytes file);

}  // namespace capibara::stablehlo
