// The attributes and types of a bytecode file, decoded on first use.
#pragma once

#include <string>
#include <vector>

#include "compiler/stablehlo/bytecode/container.h"
#include "compiler/stablehlo/syntax/syntax.h"

namespace capibara::stablehlo {

// The maximum nesting of attributes and types: a location contains the calls that led to it.
inline constexpr int entry_depth_limit = 400;

class EntryReader {
 public:
  explicit EntryReader(const BytecodeContainer& container)
      : container_(container), attributes_(container.attributes.size()), types_(container.types.size()) {}

  Type type(std::size_t index);
  Attribute attribute(std::size_t index);

  // The entry whose index is next at the cursor.
  Type type(ByteCursor& cursor) { return type(cursor.index(types_.size(), "types")); }
  Attribute attribute(ByteCursor& cursor) { return attribute(cursor.index(attributes_.size(), "attributes")); }
  Attribute attribute(ByteCursor& cursor, std::uint64_t index) {
    return attribute(cursor.checked_index(index, attributes_.size(), "attributes"));
  }
  std::string string(ByteCursor& cursor) {
    return std::string(container_.strings[cursor.index(container_.strings.size(), "strings")]);
  }
  std::vector<Type> types(ByteCursor& cursor);
  std::vector<Attribute> attributes(ByteCursor& cursor);
  std::vector<std::int64_t> signed_numbers(ByteCursor& cursor);
  std::vector<std::string> texts(ByteCursor& cursor);  // of Shardy attributes

  // The text of an attribute that must be a string.
  std::string text_of(ByteCursor& cursor, const Attribute& attribute);

  // Reports an unknown code, together with the producer that wrote it.
  [[noreturn]] void unknown(ByteCursor& cursor, const char* what, std::uint64_t code) const;
  [[noreturn]] void unsupported(ByteCursor& cursor, std::string_view what) const;

 private:
  template <class Node>
  struct Slot {
    enum class State : std::uint8_t { unread, open, read } state = State::unread;
    Node node;
  };

  template <class Node>
  Node resolve(Slot<Node>& slot, const BytecodeEntry& entry);
  void decode(const BytecodeEntry& entry, ByteCursor& cursor, Type& into);
  void decode(const BytecodeEntry& entry, ByteCursor& cursor, Attribute& into);

  // read_types.cpp
  Type vhlo_type(ByteCursor& cursor);
  Type builtin_type(ByteCursor& cursor);
  Type tensor_type(ByteCursor& cursor);
  // read_attributes.cpp
  Attribute vhlo_attribute(ByteCursor& cursor);
  Attribute builtin_attribute(ByteCursor& cursor);
  Attribute location(ByteCursor& cursor, std::uint64_t code);
  Attribute number(ByteCursor& cursor, const Type& type);
  Attribute floating(ByteCursor& cursor, const Type& type);
  double wide_float(ByteCursor& cursor);
  Attribute dictionary(ByteCursor& cursor);
  Attribute dense(ByteCursor& cursor, const Type& type, Bytes bytes);
  Attribute dense_array(ByteCursor& cursor);
  Attribute output_alias(ByteCursor& cursor);
  Attribute mesh_groups(ByteCursor& cursor);
  // read_shardy.cpp
  Attribute shardy_attribute(ByteCursor& cursor);

  const BytecodeContainer& container_;
  std::vector<Slot<Attribute>> attributes_;
  std::vector<Slot<Type>> types_;
  int depth_ = 0;
};

// The bits of a tensor's elements as bytes of a file: in MLIR's order, booleans packed.
DenseElements unpack_dense(ByteCursor& cursor, const Type& type, Bytes bytes);

}  // namespace capibara::stablehlo
