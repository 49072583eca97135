// Decodes the entries of a bytecode file by dialect, each once.
#include "compiler/stablehlo/bytecode/entries.h"

#include "compiler/stablehlo/bytecode/type_codes.h"

#include "compiler/stablehlo/operations.h"
#include "compiler/stablehlo/syntax/parser_rules.h"

namespace capibara::stablehlo {

template <class Node>
Node EntryReader::resolve(Slot<Node>& slot, const BytecodeEntry& entry) {
  using State = typename Slot<Node>::State;
  if (slot.state == State::read) return slot.node;
  ByteCursor cursor(entry.bytes, "an attribute or type", entry.offset);
  if (slot.state == State::open) cursor.fail("contains itself");
  if (depth_ >= entry_depth_limit) cursor.fail(concat("expected at most ", entry_depth_limit, " levels of nesting"));
  slot.state = State::open;
  ++depth_;
  decode(entry, cursor, slot.node);
  cursor.expect_end();
  --depth_;
  slot.state = State::read;
  return slot.node;
}

Type EntryReader::type(std::size_t index) { return resolve(types_[index], container_.types[index]); }

Attribute EntryReader::attribute(std::size_t index) {
  return resolve(attributes_[index], container_.attributes[index]);
}

void EntryReader::decode(const BytecodeEntry& entry, ByteCursor& cursor, Type& into) {
  const std::string_view dialect = container_.dialects[entry.dialect];
  if (!entry.custom) {
    // Small floats have no code of their own among the builtin types.
    const Type named = Type::scalar(std::string(cursor.text_until_zero()));
    if (!named.dtype()) unsupported(cursor, concat("the type ", named.element(), ", written as text,"));
    into = named;
  } else if (dialect == "vhlo") {
    into = vhlo_type(cursor);
  } else if (dialect == "builtin") {
    into = builtin_type(cursor);
  } else if (dialect == "stablehlo" && cursor.number() == stablehlo_token) {  // between Shardy operations
    into = Type::token();
  } else {
    unsupported(cursor, concat("types of the dialect ", dialect));
  }
  if (into.depth() > node_depth_limit || into.weight() > type_weight_limit) cursor.fail("expected a smaller type");
}

void EntryReader::decode(const BytecodeEntry& entry, ByteCursor& cursor, Attribute& into) {
  const std::string_view dialect = container_.dialects[entry.dialect];
  if (!entry.custom) {
    into = Attribute::of(OpaqueAttribute{std::string(cursor.text_until_zero())});
  } else if (dialect == "vhlo") {
    into = vhlo_attribute(cursor);
  } else if (dialect == "builtin") {
    into = builtin_attribute(cursor);
  } else if (dialect == "sdy") {
    into = shardy_attribute(cursor);
  } else {
    unsupported(cursor, concat("attributes of the dialect ", dialect));
  }
  if (into.depth() > node_depth_limit || into.weight() > attribute_weight_limit)
    cursor.fail("expected a smaller attribute");
}

std::vector<Type> EntryReader::types(ByteCursor& cursor) {
  std::vector<Type> list(cursor.count());
  for (Type& one : list) one = type(cursor);
  return list;
}

std::vector<Attribute> EntryReader::attributes(ByteCursor& cursor) {
  std::vector<Attribute> list(cursor.count());
  for (Attribute& one : list) one = attribute(cursor);
  return list;
}

std::vector<std::int64_t> EntryReader::signed_numbers(ByteCursor& cursor) {
  std::vector<std::int64_t> list(cursor.count());
  for (std::int64_t& one : list) one = cursor.signed_number();
  return list;
}

std::string EntryReader::text_of(ByteCursor& cursor, const Attribute& attribute) {
  const auto* text = attribute.as<String>();
  if (!text) cursor.fail("expected a string among its parts");
  return text->value;
}

void EntryReader::unknown(ByteCursor& cursor, const char* what, std::uint64_t code) const {
  throw UnsupportedError(concat("bytecode: byte ", cursor.offset(), ": ", what, " ", code,
                                " is unknown; the file says ", quoted_text(container_.producer),
                                ", StableHLO up to 1.20.0 is read"));
}

void EntryReader::unsupported(ByteCursor& cursor, std::string_view what) const {
  throw UnsupportedError(concat("bytecode: byte ", cursor.offset(), ": ", what, " are not supported"));
}

}  // namespace capibara::stablehlo
