// Decodes bytecode types: VHLO's, and the builtin ones that Shardy operations use.
#include <array>

#include "compiler/stablehlo/bytecode/entries.h"
#include "compiler/stablehlo/bytecode/type_codes.h"
#include "compiler/stablehlo/operations.h"
#include "compiler/stablehlo/syntax/parser_rules.h"

namespace capibara::stablehlo {

namespace {

constexpr std::int64_t unknown_size_mark = std::numeric_limits<std::int64_t>::min();

// Sizes, under the same limits as in the text reader.
std::vector<std::int64_t> read_sizes(ByteCursor& cursor) {
  std::vector<std::int64_t> dims(cursor.count());
  if (dims.size() > rank_limit) cursor.fail(concat("has a tensor of ", dims.size(), " dimensions"));
  std::int64_t room = element_limit;
  for (std::int64_t& size : dims) {
    size = cursor.signed_number();
    if (size == unknown_size_mark) {
      size = dynamic_size;
      continue;
    }
    if (size < 0 || size > room) cursor.fail("expected a tensor of at most 2^56 elements");
    if (size > 1) room /= size;
  }
  return dims;
}

}  // namespace

Type EntryReader::tensor_type(ByteCursor& cursor) {
  std::vector<std::int64_t> dims = read_sizes(cursor);
  const Type element = type(cursor);
  if (element.kind() != Type::Kind::scalar) cursor.fail("expected the type of a tensor's elements");
  return Type::tensor(std::move(dims), element.element());
}

Type EntryReader::vhlo_type(ByteCursor& cursor) {
  const std::uint64_t code = cursor.number();
  for (const TypeCode& row : vhlo_type_codes) {
    if (row.code == code) return Type::scalar(std::string(row.name));
  }
  switch (code) {
    case 1: {
      const Type part = type(cursor);
      if (part.kind() != Type::Kind::scalar) cursor.fail("expected the type of a complex number's parts");
      return Type::scalar(concat("complex<", part.element(), ">"));
    }
    case 8: {
      std::vector<Type> inputs = types(cursor);
      return Type::function(std::move(inputs), types(cursor));
    }
    case 20:
      return tensor_type(cursor);
    case 21:
      unsupported(cursor, "tensors with an encoding");
    case 22:
      return Type::token();
    case 23:
      return Type::tuple(types(cursor));
    case 24:
    case 30:
      unsupported(cursor, "quantized types");
    case 25: {
      const Type element = type(cursor);
      if (element.kind() != Type::Kind::scalar) cursor.fail("expected the type of a tensor's elements");
      return Type::unranked_tensor(element.element());
    }
    case 26:
      unsupported(cursor, "witnesses of shapes");
    case 33:
      return Type();
    case 41:
      unsupported(cursor, "buffers");
    case 42:
      unsupported(cursor, "futures");
    default:
      unknown(cursor, "type of VHLO", code);
  }
}

Type EntryReader::builtin_type(ByteCursor& cursor) {
  const std::uint64_t code = cursor.number();
  for (const TypeCode& row : builtin_type_codes) {
    if (row.code == code) return Type::scalar(std::string(row.name));
  }
  switch (code) {
    case 0: {
      static constexpr std::array<std::string_view, 3> signs = {"i", "si", "ui"};
      const std::uint64_t value = cursor.number();
      if ((value & 3) > 2 || value >> 2 > 64 || value >> 2 == 0) cursor.fail("has an integer type of no known width");
      return Type::scalar(concat(signs[value & 3], value >> 2));
    }
    case 2: {
      std::vector<Type> inputs = types(cursor);
      return Type::function(std::move(inputs), types(cursor));
    }
    case 9: {
      const Type part = type(cursor);
      if (part.kind() != Type::Kind::scalar) cursor.fail("expected the type of a complex number's parts");
      return Type::scalar(concat("complex<", part.element(), ">"));
    }
    case 12:
      return Type();
    case 13:
      return tensor_type(cursor);
    case 14:
      unsupported(cursor, "tensors with an encoding");
    case 15:
      return Type::tuple(types(cursor));
    default:
      unknown(cursor, "builtin type", code);
  }
}

}  // namespace capibara::stablehlo
