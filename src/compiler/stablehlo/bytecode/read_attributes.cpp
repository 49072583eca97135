// Decodes bytecode attributes: those of VHLO, builtin ones, and locations.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "compiler/stablehlo/bytecode/entries.h"
#include "compiler/stablehlo/bytecode/enumerations.h"
#include "compiler/stablehlo/operations.h"
#include "compiler/stablehlo/syntax/dense.h"
#include "compiler/stablehlo/syntax/parser_rules.h"

namespace capibara::stablehlo {

namespace {

int number_width(std::string_view type) {
  if (type == "index") return 64;
  const std::size_t digits = type.find_first_of("0123456789");
  int width = 0;
  for (std::size_t i = digits; i < type.size() && type[i] >= '0' && type[i] <= '9'; ++i)
    width = std::min(1000, width * 10 + (type[i] - '0'));
  return digits == std::string_view::npos ? 0 : width;
}

std::uint64_t read_bits(ByteCursor& cursor, int width) {
  if (width < 1 || width > 64) cursor.fail("has a number of no known width");
  return width <= 8 ? cursor.byte() : static_cast<std::uint64_t>(cursor.signed_number());
}

double value_of_bits(std::uint64_t bits, std::string_view name) {
  if (name == "f64") return std::bit_cast<double>(bits);
  if (name == "f32") return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  const std::optional<DType> dtype = Type::scalar(std::string(name)).dtype();
  const SmallFormat* format = dtype ? find_small_format(*dtype) : nullptr;
  return format ? decode_small_float(*format, static_cast<std::uint32_t>(bits)) : std::nan("");
}

Attribute aliases_field(std::vector<std::int64_t> values) {
  Array array;
  for (const std::int64_t value : values) array.elements.push_back(make_integer(value));
  return Attribute::of(std::move(array));
}

}  // namespace

DenseElements unpack_dense(ByteCursor& cursor, const Type& type, Bytes bytes) {
  if (!type.is_tensor() || !type.has_static_shape())
    cursor.fail(concat("expected elements of a tensor of static shape, got ", type.text()));
  const std::optional<DType> dtype = type.dtype();
  const bool index = type.element() == "index";
  if (!dtype && !index) {
    throw UnsupportedError(
        concat("bytecode: byte ", cursor.offset(), ": elements of type ", type.element(), " are not supported"));
  }
  const auto count = static_cast<std::uint64_t>(type.element_count());
  const auto width = static_cast<std::uint64_t>(index ? 8 : storage_size(*dtype));
  std::vector<std::uint8_t> elements;
  const bool packed = !index && *dtype == DType::bool_ && bytes.size() != count;
  if (packed && bytes.size() == 1 && count > 8) {
    if (bytes[0] != 0 && bytes[0] != 0xFF) cursor.fail("has fewer booleans than its type");
    elements.assign(1, bytes[0] != 0);
  } else if (packed && bytes.size() == count / 8 + (count % 8 != 0)) {
    elements.resize(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = (bytes[i / 8] >> (i % 8)) & 1;
  } else if (bytes.size() == width && count > 0) {
    elements.assign(bytes.begin(), bytes.end());
  } else if (bytes.size() % width == 0 && bytes.size() / width == count) {
    elements.assign(bytes.begin(), bytes.end());
  } else if (count != 0) {
    cursor.fail(concat("expected ", count, " elements of ", width, " bytes for ", type.text(), ", got ", bytes.size(),
                       " bytes"));
  }
  if (dtype && *dtype == DType::bool_) {
    for (std::uint8_t& byte : elements) byte = byte != 0;
  } else if (dtype && bits(*dtype) < 8) {
    const int unused = 8 - bits(*dtype);
    for (std::uint8_t& byte : elements) {
      const auto shifted = static_cast<std::uint8_t>(byte << unused);
      byte = is_signed(*dtype) ? static_cast<std::uint8_t>(static_cast<std::int8_t>(shifted) >> unused)
                               : static_cast<std::uint8_t>(shifted >> unused);
    }
  }
  if (elements.size() == width && count > 1) {
    DenseElements splat{type, true, std::make_shared<const std::vector<std::uint8_t>>(std::move(elements))};
    return splat;
  }
  return make_dense(type, std::move(elements), static_cast<std::size_t>(width));
}

Attribute EntryReader::dense(ByteCursor& cursor, const Type& type, Bytes bytes) {
  return Attribute::of(unpack_dense(cursor, type, bytes));
}

Attribute EntryReader::number(ByteCursor& cursor, const Type& type) {
  if (type.kind() != Type::Kind::scalar) cursor.fail("expected the type of an integer");
  const int width = number_width(type.element());
  const std::uint64_t bits = read_bits(cursor, width);
  if (type.element() == "i1") return Attribute::of((bits & 1) != 0);
  const int unused = 64 - width;
  const bool is_unsigned = type.element().starts_with("ui");
  const auto value = is_unsigned ? static_cast<std::int64_t>(bits << unused >> unused)
                                 : static_cast<std::int64_t>(bits << unused) >> unused;
  return Attribute::of(Integer{value, type});
}

Attribute EntryReader::floating(ByteCursor& cursor, const Type& type) {
  const std::optional<DType> dtype = type.kind() == Type::Kind::scalar ? type.dtype() : std::nullopt;
  if (!dtype || !is_floating(*dtype)) cursor.fail("expected the type of a floating-point number");
  return Attribute::of(Float{value_of_bits(read_bits(cursor, bits(*dtype)), type.element()), type});
}

double EntryReader::wide_float(ByteCursor& cursor) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(cursor.signed_number()));
}

Attribute EntryReader::dictionary(ByteCursor& cursor) {
  std::vector<Dictionary::Entry> entries(cursor.count());
  for (Dictionary::Entry& entry : entries) {
    entry.first = text_of(cursor, attribute(cursor));
    entry.second = attribute(cursor);
    if (!entry.second) cursor.fail("expected a value of each name");
  }
  if (const auto name = Dictionary::repeated_name(entries))
    cursor.fail(concat("expected each attribute once, got '", *name, "' twice"));
  return Attribute::of(Dictionary(std::move(entries)));
}

Attribute EntryReader::dense_array(ByteCursor& cursor) {
  const Type element = type(cursor);
  const std::uint64_t count = cursor.number();
  const Bytes bytes = cursor.take(cursor.number());
  if (element.kind() != Type::Kind::scalar || count > bytes.size()) cursor.fail("expected an array of numbers");
  const DenseElements dense =
      unpack_dense(cursor, Type::tensor({static_cast<std::int64_t>(count)}, element.element()), bytes);
  DenseArray array;
  array.element = element.element();
  const std::optional<DType> dtype = element.dtype();
  if (!dtype || !is_floating(*dtype)) {
    const std::optional<std::vector<std::int64_t>> values = integers_of(Attribute::of(dense));
    if (!values) cursor.fail("expected an array of numbers");
    array.integers = *values;
    return Attribute::of(std::move(array));
  }
  const auto width = static_cast<std::size_t>(storage_size(*dtype));
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t bits = 0;
    const std::size_t at = dense.splat ? 0 : i * width;
    for (std::size_t k = 0; k < width; ++k) bits |= static_cast<std::uint64_t>((*dense.bytes)[at + k]) << (8 * k);
    array.floats.push_back(value_of_bits(bits, array.element));
  }
  return Attribute::of(std::move(array));
}

// #stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>
Attribute EntryReader::output_alias(ByteCursor& cursor) {
  std::vector<Dictionary::Entry> fields;
  fields.emplace_back("output_tuple_indices", aliases_field(signed_numbers(cursor)));
  fields.emplace_back("operand_index", make_integer(cursor.signed_number()));
  fields.emplace_back("operand_tuple_indices", aliases_field(signed_numbers(cursor)));
  DialectAttribute alias;
  alias.dialect = "stablehlo";
  alias.kind = "output_operand_alias";
  alias.fields = Dictionary(std::move(fields));
  return Attribute::of(std::move(alias));
}

// #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [..]>
Attribute EntryReader::mesh_groups(ByteCursor& cursor) {
  std::vector<Dictionary::Entry> fields;
  const Attribute mesh = attribute(cursor);
  fields.emplace_back("mesh", mesh.as<String>() ? Attribute::of(SymbolReference{mesh.as<String>()->value, {}}) : mesh);
  fields.emplace_back("axes", attribute(cursor));
  DialectAttribute groups;
  groups.dialect = "stablehlo";
  groups.kind = "replica_group_mesh_axes";
  groups.fields = Dictionary(std::move(fields));
  return Attribute::of(std::move(groups));
}

Attribute EntryReader::vhlo_attribute(ByteCursor& cursor) {
  const std::uint64_t code = cursor.number();
  if (const VhloEnumeration* words = find_vhlo_enumeration(code)) {
    const std::uint64_t value = cursor.number();
    if (value >= words->words.size() || words->words[value].empty()) unknown(cursor, words->kind.data(), value);
    return make_enumeration(words->kind, words->words[value]);
  }
  switch (code) {
    case 1:
      return Attribute::of(Array{attributes(cursor)});
    case 2:
      return Attribute::of(cursor.number() != 0);
    case 6:
      return dictionary(cursor);
    case 8:
      return floating(cursor, type(cursor));
    case 9:
      return number(cursor, type(cursor));
    case 10:
      return output_alias(cursor);
    case 14:
      return Attribute::of(String{string(cursor)});
    case 15: {
      const Type own = type(cursor);
      return dense(cursor, own, cursor.take(cursor.number()));
    }
    case 17:
      return Attribute::of(type(cursor));
    case 18:
      unsupported(cursor, "bounds of dynamic dimensions");
    case 20: {
      std::vector<Dictionary::Entry> fields;
      fields.emplace_back("atol", Attribute::of(Float{wide_float(cursor), Type::scalar("f64")}));
      fields.emplace_back("rtol", Attribute::of(Float{wide_float(cursor), Type::scalar("f64")}));
      fields.emplace_back("ulps", make_integer(cursor.signed_number()));
      fields.emplace_back("mode", attribute(cursor));
      DialectAttribute accuracy;
      accuracy.dialect = "stablehlo";
      accuracy.kind = "result_accuracy";
      accuracy.fields = Dictionary(std::move(fields));
      return Attribute::of(std::move(accuracy));
    }
    case 21:
      unsupported(cursor, "parts of an axis");
    case 22: {
      DialectAttribute axis;
      axis.dialect = "stablehlo";
      axis.kind = "axis_ref";
      axis.fields = Dictionary({{"name", Attribute::of(String{text_of(cursor, attribute(cursor))})}});
      if (cursor.number() != 0) attribute(cursor);  // a sub-axis, which is refused
      return Attribute::of(std::move(axis));
    }
    case 23:
      return mesh_groups(cursor);
    case 24:
    case 25:
      unsupported(cursor, "meshes within attributes of VHLO");
    default:
      unknown(cursor, "attribute of VHLO", code);
  }
}

Attribute EntryReader::location(ByteCursor& cursor, std::uint64_t code) {
  Location place;
  const auto add_child = [&](const Attribute& child) {
    if (!child.as<Location>()) cursor.fail("expected a location within a location");
    place.children.push_back(child);
  };
  switch (code) {
    case 10:
      place.kind = Location::Kind::call_site;
      add_child(attribute(cursor));
      add_child(attribute(cursor));
      break;
    case 11:
      place.kind = Location::Kind::file;
      place.name = text_of(cursor, attribute(cursor));
      place.line = static_cast<std::int64_t>(cursor.number());
      place.column = static_cast<std::int64_t>(cursor.number());
      break;
    case 12:
    case 13:
      place.kind = Location::Kind::fused;
      for (const Attribute& child : attributes(cursor)) add_child(child);
      if (code == 13) attribute(cursor);  // metadata of the fusion
      break;
    case 14: {
      place.kind = Location::Kind::name;
      place.name = text_of(cursor, attribute(cursor));
      const Attribute child = attribute(cursor);
      add_child(child);
      if (child.as<Location>()->kind == Location::Kind::unknown) place.children.clear();
      break;
    }
    case 22: {
      place.kind = Location::Kind::file;
      place.name = text_of(cursor, attribute(cursor));
      const std::size_t count = cursor.count();
      for (std::size_t i = 0; i < count; ++i) {
        const auto value = static_cast<std::int64_t>(cursor.number());
        if (i == 0) place.line = value;
        if (i == 1) place.column = value;
      }
      break;
    }
    default:
      break;
  }
  return Attribute::of(std::move(place));
}

Attribute EntryReader::builtin_attribute(ByteCursor& cursor) {
  const std::uint64_t code = cursor.number();
  switch (code) {
    case 0:
      return Attribute::of(Array{attributes(cursor)});
    case 1:
      return dictionary(cursor);
    case 2:
      return Attribute::of(String{string(cursor)});
    case 3: {
      std::string text = string(cursor);
      type(cursor);
      return Attribute::of(String{std::move(text)});
    }
    case 4:
      return Attribute::of(SymbolReference{text_of(cursor, attribute(cursor)), {}});
    case 5: {
      SymbolReference symbol{text_of(cursor, attribute(cursor)), {}};
      for (const Attribute& part : attributes(cursor)) {
        const auto* name = part.as<SymbolReference>();
        if (!name) cursor.fail("expected a symbol within a symbol");
        symbol.nested.push_back(name->name);
      }
      return Attribute::of(std::move(symbol));
    }
    case 6:
      return Attribute::of(type(cursor));
    case 7:
      return Attribute::of(Unit{});
    case 8:
      return number(cursor, type(cursor));
    case 9:
      return floating(cursor, type(cursor));
    case 10:
    case 11:
    case 12:
    case 13:
    case 14:
    case 15:
    case 22:
      return location(cursor, code);
    case 17:
      return dense_array(cursor);
    case 18: {
      const Type own = type(cursor);
      return dense(cursor, own, cursor.take(cursor.number()));
    }
    default:
      unknown(cursor, "builtin attribute", code);
  }
}

}  // namespace capibara::stablehlo
