// Writes the numbers and tables of a bytecode file: strings, dialects, operation names, attributes, types.
#pragma once

#include <bit>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <capibara/sharding.h>

#include "compiler/stablehlo/sharding_text.h"
#include "compiler/stablehlo/syntax/syntax.h"

namespace capibara::stablehlo {

// Numbers in MLIR's bytecode encoding.
class ByteWriter {
 public:
  const std::string& bytes() const { return bytes_; }

  void byte(std::uint8_t value) { bytes_ += static_cast<char>(value); }
  void append(std::string_view bytes) { bytes_ += bytes; }

  // Seven bits of the value per byte; the trailing zero bits of the first byte count those that follow.
  void number(std::uint64_t value) {
    const int bits = 64 - std::countl_zero(value | 1);
    const int more = (bits - 1) / 7;
    if (more >= 8) {
      byte(0);
      return little(value, 8);
    }
    little((value << 1 | 1) << more, more + 1);
  }
  void signed_number(std::int64_t value) {
    number(static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
  }
  void flagged(std::uint64_t value, bool flag) { number(value << 1 | (flag ? 1 : 0)); }

  void section(std::uint8_t id, std::string_view content) {
    byte(id);
    number(content.size());
    append(content);
  }

 private:
  void little(std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i) byte(static_cast<std::uint8_t>(value >> (8 * i)));
  }

  std::string bytes_;
};

// The two systems of types and attributes: VHLO operations
// use the first, the module and Shardy operations the second.
enum class EntryKind : std::uint8_t { vhlo, builtin };

class EntryWriter {
 public:
  // Indices of entries, each written once. `place` is the current operation, for errors.
  std::size_t type(const Type& type, EntryKind kind, const Operation& place);
  std::size_t attribute(const Attribute& attribute, EntryKind kind, const Operation& place);
  std::size_t unknown_location();
  // Attributes that VHLO keeps unchanged: a builtin dictionary of values of either kind.
  std::size_t dictionary(const std::vector<Dictionary::Entry>& entries, EntryKind values, const Operation& place);
  std::size_t operation_name(std::string_view dialect, std::string_view name);
  std::size_t properties(const std::string& bytes);

  // The whole file, around the section of operations.
  std::string finish(std::string_view operations);

 private:
  struct Entry {
    std::size_t dialect;
    std::string_view bytes;
    bool custom;
  };
  struct Table {
    std::vector<Entry> entries;
    std::unordered_map<std::string_view, std::size_t> indices;  // by dialect and bytes
    std::deque<std::string> keys;
  };

  std::size_t string(std::string_view text);
  std::size_t dialect(std::string_view name);
  std::size_t add(Table& table, std::string_view dialect, const std::string& bytes, bool custom = true);
  std::size_t vhlo_attribute(const Attribute& attribute, const Operation& place);
  std::size_t builtin_attribute(const Attribute& attribute, const Operation& place);
  std::size_t dense(const DenseElements& dense, EntryKind kind, const Operation& place);
  std::size_t structure(const DialectAttribute& own, const Operation& place);
  std::size_t builtin_string(std::string_view text);
  std::size_t vhlo_string(std::string_view text);
  std::size_t symbol(std::string_view name);
  void types(ByteWriter& out, const std::vector<Type>& list, EntryKind kind, const Operation& place);
  void numbers(ByteWriter& out, const Attribute& list, const Operation& place);
  std::string size_groups() const;
  // write_shardy.cpp
  std::size_t shardy_attribute(const DialectAttribute& own, const Operation& place);
  std::size_t shardy_mesh(const Mesh& mesh, std::string_view text);
  std::size_t shardy_rule(const DialectAttribute& own, const Operation& place);
  std::size_t shardy_sharding(const ShardingText& text);

  std::vector<std::string_view> strings_;
  std::unordered_map<std::string_view, std::size_t> string_indices_;
  std::deque<std::string> string_storage_;
  std::vector<std::string> dialects_;
  Table attributes_, types_, properties_;
  std::vector<std::pair<std::size_t, std::size_t>> operation_names_;  // dialect, string
  std::unordered_map<std::string, std::size_t> operation_indices_;
  std::unordered_map<std::string, std::size_t> known_types_[2];  // by text, for each kind
};

}  // namespace capibara::stablehlo
