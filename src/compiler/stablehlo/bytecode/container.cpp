// Reads the sections of a bytecode file.
#include "compiler/stablehlo/bytecode/container.h"

#include <array>
#include <optional>

#include "compiler/stablehlo/operations.h"

namespace capibara::stablehlo {

namespace {

struct Section {
  Bytes bytes;
  std::size_t offset = 0;
};
using Sections = std::array<std::optional<Section>, section_count>;

constexpr std::uint8_t aligned_section = 0x80;

Sections find_sections(ByteCursor& file) {
  Sections sections;
  while (!file.at_end()) {
    const std::uint8_t tag = file.byte();
    const std::uint64_t size = file.number();
    const auto id = static_cast<std::size_t>(tag & ~aligned_section);
    if (id >= section_count) file.fail(concat("has a section of the unknown kind ", id));
    if (tag & aligned_section) {
      const std::uint64_t alignment = file.number();
      if (alignment == 0) file.fail("has a section aligned to 0 bytes");
      while (file.offset() % alignment != 0) file.byte();
    }
    if (sections[id]) file.fail(concat("has two sections of kind ", id));
    const std::size_t offset = file.offset();
    sections[id] = Section{file.take(size), offset};
  }
  return sections;
}

ByteCursor section_cursor(const Sections& sections, SectionId id, const char* what) {
  const std::optional<Section>& section = sections[static_cast<std::size_t>(id)];
  if (!section) throw ParseError(concat("bytecode: ", what, " is missing"));
  return ByteCursor(section->bytes, what, section->offset);
}

// Lengths, starting with that of the last string, then the strings.
void read_strings(ByteCursor cursor, BytecodeContainer& into) {
  std::vector<std::uint64_t> sizes(cursor.count());
  for (std::size_t i = sizes.size(); i-- > 0;) sizes[i] = cursor.number();
  for (const std::uint64_t size : sizes) {
    const Bytes bytes = cursor.take(size);
    if (bytes.empty() || bytes.back() != 0) cursor.fail("has a string without an end");
    into.strings.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size() - 1);
  }
  cursor.expect_end();
}

void read_dialects(ByteCursor cursor, BytecodeContainer& into) {
  const std::size_t count = cursor.count();
  for (std::size_t i = 0; i < count; ++i) {
    const auto [name, versioned] = cursor.flagged();
    into.dialects.push_back(into.strings[cursor.checked_index(name, into.strings.size(), "strings")]);
    if (!versioned) continue;
    if (cursor.byte() != static_cast<std::uint8_t>(SectionId::dialect_versions))
      cursor.fail("expected the version of a dialect");
    cursor.take(cursor.number());  // every VHLO name carries its own version
  }
  const std::size_t names = cursor.count();
  while (!cursor.at_end()) {
    const std::size_t dialect = cursor.index(into.dialects.size(), "dialects");
    const std::size_t group = cursor.count();
    for (std::size_t i = 0; i < group; ++i) {
      const std::uint64_t name = cursor.flagged().first;
      into.operation_names.push_back(
          {dialect, into.strings[cursor.checked_index(name, into.strings.size(), "strings")]});
    }
  }
  if (into.operation_names.size() != names)
    cursor.fail(concat("claims ", names, " names of operations and has ", into.operation_names.size()));
}

// Attributes first, then types.
void read_entries(ByteCursor sizes, ByteCursor data, BytecodeContainer& into) {
  const std::uint64_t attributes = sizes.number(), types = sizes.number();
  if (attributes > sizes.remaining() || types > sizes.remaining()) sizes.fail("claims more entries than it has bytes");
  while (!sizes.at_end()) {
    const std::size_t dialect = sizes.index(into.dialects.size(), "dialects");
    const std::size_t group = sizes.count();
    for (std::size_t i = 0; i < group; ++i) {
      const auto [size, custom] = sizes.flagged();
      const std::size_t offset = data.offset();
      const BytecodeEntry entry{dialect, data.take(size), offset, custom};
      (into.attributes.size() < attributes ? into.attributes : into.types).push_back(entry);
    }
  }
  if (into.attributes.size() != attributes || into.types.size() != types)
    sizes.fail(concat("claims ", attributes + types, " entries and has ", into.attributes.size() + into.types.size()));
  data.expect_end();
}

void read_properties(ByteCursor cursor, BytecodeContainer& into) {
  const std::size_t count = cursor.count();
  for (std::size_t i = 0; i < count; ++i) into.properties.push_back(cursor.take(cursor.number()));
  cursor.expect_end();
}

}  // namespace

bool is_bytecode(std::string_view file) { return file.starts_with(bytecode_magic); }

std::string BytecodeContainer::operation_name(std::size_t index) const {
  const OperationName& own = operation_names[index];
  return concat(dialects[own.dialect], ".", own.name);
}

BytecodeContainer read_container(Bytes file) {
  ByteCursor cursor(file, "the file");
  for (const char byte : bytecode_magic) {
    if (cursor.byte() != static_cast<std::uint8_t>(byte)) cursor.fail("is not MLIR bytecode");
  }
  const std::uint64_t version = cursor.number();
  if (version != bytecode_version) {
    throw UnsupportedError(concat("bytecode: this file is of version ", version, " of MLIR's bytecode, expected ",
                                  bytecode_version, "\nHint: StableHLO writes it since 0.15.0"));
  }
  BytecodeContainer container;
  container.producer = cursor.text_until_zero();
  const Sections sections = find_sections(cursor);
  read_strings(section_cursor(sections, SectionId::strings, "the section of strings"), container);
  read_dialects(section_cursor(sections, SectionId::dialects, "the section of dialects"), container);
  read_entries(section_cursor(sections, SectionId::entry_sizes, "the section of sizes"),
               section_cursor(sections, SectionId::entries, "the section of attributes and types"), container);
  const auto has = [&](SectionId id) { return sections[static_cast<std::size_t>(id)].has_value(); };
  if (has(SectionId::properties))
    read_properties(section_cursor(sections, SectionId::properties, "the section of properties"), container);
  if (has(SectionId::resources) && !sections[static_cast<std::size_t>(SectionId::resources)]->bytes.empty()) {
    throw UnsupportedError(
        "bytecode: constants in a section of resources are not supported"
        "\nHint: write them as elements of dense attributes");
  }
  if (!has(SectionId::operations)) throw ParseError("bytecode: the section of operations is missing");
  const Section& operations = *sections[static_cast<std::size_t>(SectionId::operations)];
  container.operations = operations.bytes;
  container.operations_offset = operations.offset;
  return container;
}

}  // namespace capibara::stablehlo
