// The container of MLIR's bytecode, version 6: numbers, sections, strings, names, and offsets of attributes and types.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <capibara/error.h>

namespace capibara::stablehlo {

// Untrusted bytes.
using Bytes = std::span<const std::uint8_t>;

// Every read is checked against the bytes available; a count of items is at most the number of remaining bytes, since
// each item takes at least one.
class ByteCursor {
 public:
  // `what` names the part of the file, for errors; `begin` is its offset in the file.
  ByteCursor(Bytes bytes, const char* what, std::size_t begin = 0) : bytes_(bytes), what_(what), begin_(begin) {}

  bool at_end() const { return at_ == bytes_.size(); }
  std::size_t remaining() const { return bytes_.size() - at_; }
  std::size_t offset() const { return begin_ + at_; }  // in the file

  std::uint8_t byte() {
    if (at_end()) fail("ends too early");
    return bytes_[at_++];
  }

  Bytes take(std::uint64_t count) {
    if (count > remaining()) fail("claims more bytes than there are");
    const Bytes part = bytes_.subspan(at_, static_cast<std::size_t>(count));
    at_ += static_cast<std::size_t>(count);
    return part;
  }

  // The trailing zero bits of the first byte count the bytes that follow it.
  std::uint64_t number() {
    const std::uint8_t first = byte();
    if (first & 1) return first >> 1;
    const int more = first == 0 ? 8 : std::countr_zero(first);
    std::uint64_t value = first == 0 ? 0 : first >> (more + 1);
    const Bytes rest = take(static_cast<std::uint64_t>(more));
    const int shift = first == 0 ? 0 : 7 - more;
    for (int i = 0; i < more; ++i)
      value |= static_cast<std::uint64_t>(rest[static_cast<std::size_t>(i)]) << (shift + 8 * i);
    return value;
  }

  std::int64_t signed_number() {
    const std::uint64_t value = number();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }

  // A number with a flag in its lowest bit.
  std::pair<std::uint64_t, bool> flagged() {
    const std::uint64_t value = number();
    return {value >> 1, (value & 1) != 0};
  }

  // The number of items that follow.
  std::size_t count() { return checked_count(number()); }
  std::size_t checked_count(std::uint64_t value) const {
    if (value > remaining()) fail("claims more entries than it has bytes");
    return static_cast<std::size_t>(value);
  }

  // An index into a table of `size` entries.
  std::size_t index(std::size_t size, const char* table) { return checked_index(number(), size, table); }
  std::size_t checked_index(std::uint64_t value, std::size_t size, const char* table) const {
    if (value >= size) fail(concat("names entry ", value, " of ", size, " ", table));
    return static_cast<std::size_t>(value);
  }

  std::string_view text_until_zero() {
    for (std::size_t end = at_; end < bytes_.size(); ++end) {
      if (bytes_[end] != 0) continue;
      const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + at_, end - at_);
      at_ = end + 1;
      return text;
    }
    fail("has a text without an end");
  }

  void expect_end() const {
    if (!at_end()) fail(concat("has ", remaining(), " bytes too many"));
  }

  [[noreturn]] void fail(std::string_view message) const {
    throw ParseError(concat("bytecode: byte ", offset(), ": ", what_, " ", message));
  }

 private:
  Bytes bytes_;
  const char* what_;
  std::size_t begin_ = 0;
  std::size_t at_ = 0;
};

inline constexpr std::uint64_t bytecode_version = 6;  // of every StableHLO artifact since 0.15
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
  bool custom = true;      // otherwise in MLIR's text format
};

struct OperationName {
  std::size_t dialect = 0;
  std::string_view name;
};

// Views into the input bytes, which must outlive it.
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
// Raises ParseError if the sections do not fit together, UnsupportedError for other versions.
BytecodeContainer read_container(Bytes file);

}  // namespace capibara::stablehlo
