// Writes attributes and types of bytecode, and the tables that hold them.
#include "compiler/stablehlo/bytecode/entry_writer.h"

#include <bit>
#include <limits>

#include <capibara/error.h>

#include "compiler/stablehlo/bytecode/container.h"
#include "compiler/stablehlo/bytecode/enumerations.h"
#include "compiler/stablehlo/bytecode/type_codes.h"
#include "compiler/stablehlo/operations.h"
#include "compiler/stablehlo/syntax/dense.h"

namespace capibara::stablehlo {

namespace {

constexpr std::string_view written_producer = "StableHLO_v1.15.0";

[[noreturn]] void no_bytes_for(const Operation& place, const std::string& what) {
  throw UnsupportedError(concat(place_of(place), ": ", what, " has no place in a StableHLO artifact"));
}

template <std::size_t n>
const TypeCode* find_type_code(const TypeCode (&codes)[n], std::string_view name) {
  for (const TypeCode& row : codes) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

// A number as bits: one byte for up to eight bits, otherwise a signed number.
void write_bits(ByteWriter& out, std::int64_t value, int width) {
  if (width <= 8) return out.byte(static_cast<std::uint8_t>(value & ((1 << width) - 1)));
  const int unused = 64 - width;
  out.signed_number(static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << unused) >> unused);
}

int integer_width(std::string_view name) {
  if (name == "index") return 64;
  const std::size_t prefix = name.starts_with("ui") || name.starts_with("si") ? 2 : 1;
  int width = 0;
  for (const char c : name.substr(prefix)) width = width * 10 + (c - '0');
  return width;
}

bool names_integer(std::string_view name) {
  if (name == "index") return true;
  const std::size_t prefix = name.starts_with("ui") || name.starts_with("si") ? 2 : name.starts_with('i') ? 1 : 0;
  return prefix != 0 && name.size() > prefix && name.size() < prefix + 3 &&
         name.find_first_not_of("0123456789", prefix) == std::string_view::npos;
}

std::uint64_t bits_of_value(double value, DType dtype) {
  if (dtype == DType::float64) return std::bit_cast<std::uint64_t>(value);
  if (dtype == DType::float32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return encode_small_float(*find_small_format(dtype), value);
}

std::string_view part_name(std::string_view complex) { return complex.substr(8, complex.size() - 9); }

}  // namespace

// ---- tables ------------------------------------------------------------------------------------------------------

std::size_t EntryWriter::string(std::string_view text) {
  if (const auto found = string_indices_.find(text); found != string_indices_.end()) return found->second;
  const std::string_view own = string_storage_.emplace_back(text);
  strings_.push_back(own);
  return string_indices_[own] = strings_.size() - 1;
}

std::size_t EntryWriter::dialect(std::string_view name) {
  for (std::size_t i = 0; i < dialects_.size(); ++i) {
    if (dialects_[i] == name) return i;
  }
  dialects_.emplace_back(name);
  return dialects_.size() - 1;
}

std::size_t EntryWriter::add(Table& table, std::string_view name, const std::string& bytes, bool custom) {
  const std::size_t own = dialect(name);
  std::string key(1, static_cast<char>(own));
  key += bytes;
  if (const auto found = table.indices.find(key); found != table.indices.end()) return found->second;
  const std::string_view kept = table.keys.emplace_back(std::move(key));
  table.entries.push_back({own, kept.substr(1), custom});
  return table.indices[kept] = table.entries.size() - 1;
}

std::size_t EntryWriter::properties(const std::string& bytes) { return add(properties_, "builtin", bytes); }

std::size_t EntryWriter::operation_name(std::string_view dialect_name, std::string_view name) {
  const std::string key = concat(dialect_name, ".", name);
  if (const auto found = operation_indices_.find(key); found != operation_indices_.end()) return found->second;
  operation_names_.emplace_back(dialect(dialect_name), string(name));
  return operation_indices_[key] = operation_names_.size() - 1;
}

std::string EntryWriter::size_groups() const {
  ByteWriter sizes;
  sizes.number(attributes_.entries.size());
  sizes.number(types_.entries.size());
  for (const Table* table : {&attributes_, &types_}) {
    const std::vector<Entry>& entries = table->entries;
    for (std::size_t begin = 0; begin < entries.size();) {
      std::size_t end = begin;
      while (end < entries.size() && entries[end].dialect == entries[begin].dialect) ++end;
      sizes.number(entries[begin].dialect);
      sizes.number(end - begin);
      for (; begin < end; ++begin) sizes.flagged(entries[begin].bytes.size(), entries[begin].custom);
    }
  }
  return sizes.bytes();
}

std::string EntryWriter::finish(std::string_view operations) {
  ByteWriter names;
  for (const std::string& name : dialects_) string(name);
  names.number(dialects_.size());
  for (const std::string& name : dialects_) names.flagged(string(name), false);
  names.number(operation_names_.size());
  for (std::size_t begin = 0; begin < operation_names_.size();) {
    std::size_t end = begin;
    while (end < operation_names_.size() && operation_names_[end].first == operation_names_[begin].first) ++end;
    names.number(operation_names_[begin].first);
    names.number(end - begin);
    for (; begin < end; ++begin) names.flagged(operation_names_[begin].second, true);
  }
  ByteWriter data;
  for (const Table* table : {&attributes_, &types_}) {
    for (const Entry& entry : table->entries) data.append(entry.bytes);
  }
  ByteWriter texts;
  texts.number(strings_.size());
  for (std::size_t i = strings_.size(); i-- > 0;) texts.number(strings_[i].size() + 1);
  for (const std::string_view text : strings_) {
    texts.append(text);
    texts.byte(0);
  }
  ByteWriter settings;
  settings.number(properties_.entries.size());
  for (const Entry& entry : properties_.entries) {
    settings.number(entry.bytes.size());
    settings.append(entry.bytes);
  }
  ByteWriter file;
  file.append(bytecode_magic);
  file.number(bytecode_version);
  file.append(written_producer);
  file.byte(0);
  const auto section = [&](SectionId id, std::string_view content) {
    file.section(static_cast<std::uint8_t>(id), content);
  };
  section(SectionId::dialects, names.bytes());
  section(SectionId::entry_sizes, size_groups());
  section(SectionId::entries, data.bytes());
  section(SectionId::operations, operations);
  section(SectionId::strings, texts.bytes());
  section(SectionId::properties, settings.bytes());
  return file.bytes();
}

// ---- types -------------------------------------------------------------------------------------------------------

void EntryWriter::types(ByteWriter& out, const std::vector<Type>& list, EntryKind kind, const Operation& place) {
  out.number(list.size());
  for (const Type& one : list) out.number(type(one, kind, place));
}

std::size_t EntryWriter::type(const Type& own, EntryKind kind, const Operation& place) {
  const bool vhlo = kind == EntryKind::vhlo;
  std::unordered_map<std::string, std::size_t>& known = known_types_[vhlo ? 0 : 1];
  const std::string text = own.text();
  if (const auto found = known.find(text); found != known.end()) return found->second;
  ByteWriter out;
  bool custom = true;
  switch (own.kind()) {
    case Type::Kind::none:
      out.number(vhlo ? 33 : 12);
      break;
    case Type::Kind::token:
      if (!vhlo) no_bytes_for(place, "a token among operations of Shardy");
      out.number(22);
      break;
    case Type::Kind::tuple:
      out.number(vhlo ? 23 : 15);
      types(out, own.elements(), kind, place);
      break;
    case Type::Kind::function:
      out.number(vhlo ? 8 : 2);
      types(out, own.inputs(), kind, place);
      types(out, own.results(), kind, place);
      break;
    case Type::Kind::tensor: {
      if (own.encoding()) no_bytes_for(place, concat("the encoding of ", text));
      const std::size_t element = type(Type::scalar(own.element()), kind, place);
      if (!own.is_ranked()) {
        if (!vhlo) no_bytes_for(place, text);
        out.number(25);
      } else {
        out.number(vhlo ? 20 : 13);
        out.number(own.dims().size());
        for (const std::int64_t size : own.dims())
          out.signed_number(size == dynamic_size ? std::numeric_limits<std::int64_t>::min() : size);
      }
      out.number(element);
      break;
    }
    case Type::Kind::scalar: {
      const std::string& name = own.element();
      const TypeCode* code = vhlo ? find_type_code(vhlo_type_codes, name) : find_type_code(builtin_type_codes, name);
      if (code) {
        out.number(code->code);
      } else if (name.starts_with("complex<")) {
        out.number(vhlo ? 1 : 9);
        out.number(type(Type::scalar(std::string(part_name(name))), kind, place));
      } else if (!vhlo && names_integer(name)) {
        out.number(0);
        const unsigned sign = name.starts_with("ui") ? 2 : name.starts_with("si") ? 1 : 0;
        out.number(static_cast<std::uint64_t>(integer_width(name)) << 2 | sign);
      } else if (!vhlo && own.dtype()) {
        out.append(name);  // small floats have no code there
        out.byte(0);
        custom = false;
      } else {
        no_bytes_for(place, concat("the type ", name));
      }
      break;
    }
    case Type::Kind::opaque:
      no_bytes_for(place, concat("the type ", text));
  }
  return known[text] = add(types_, vhlo ? "vhlo" : "builtin", out.bytes(), custom);
}

// ---- attributes --------------------------------------------------------------------------------------------------

std::size_t EntryWriter::unknown_location() {
  ByteWriter out;
  out.number(15);
  return add(attributes_, "builtin", out.bytes());
}

std::size_t EntryWriter::builtin_string(std::string_view text) {
  ByteWriter out;
  out.number(2);
  out.number(string(text));
  return add(attributes_, "builtin", out.bytes());
}

std::size_t EntryWriter::vhlo_string(std::string_view text) {
  ByteWriter out;
  out.number(14);
  out.number(string(text));
  return add(attributes_, "vhlo", out.bytes());
}

std::size_t EntryWriter::symbol(std::string_view name) {
  ByteWriter out;
  out.number(4);
  out.number(builtin_string(name));
  return add(attributes_, "builtin", out.bytes());
}

std::size_t EntryWriter::dictionary(const std::vector<Dictionary::Entry>& entries, EntryKind values,
                                    const Operation& place) {
  ByteWriter out;
  out.number(1);
  out.number(entries.size());
  for (const auto& [name, value] : entries) {
    out.number(builtin_string(name));
    out.number(attribute(value, values, place));
  }
  return add(attributes_, "builtin", out.bytes());
}

// Booleans are packed, eight to a byte; a splat is one element, for booleans a byte of equal bits.
std::size_t EntryWriter::dense(const DenseElements& own, EntryKind kind, const Operation& place) {
  const bool vhlo = kind == EntryKind::vhlo;
  ByteWriter out;
  out.number(vhlo ? 15 : 18);
  out.number(type(own.type, kind, place));
  const std::optional<DType> dtype = own.type.dtype();
  std::string bytes;
  if (dtype == DType::bool_ && own.splat) {
    bytes.assign(1, (*own.bytes)[0] ? '\xFF' : '\0');
  } else if (dtype == DType::bool_) {
    bytes.assign((own.bytes->size() + 7) / 8, '\0');
    for (std::size_t i = 0; i < own.bytes->size(); ++i) {
      if ((*own.bytes)[i]) bytes[i / 8] = static_cast<char>(bytes[i / 8] | 1 << (i % 8));
    }
  } else {
    bytes.assign(own.bytes->begin(), own.bytes->end());
    if (dtype && bits(*dtype) < 8) {
      const int mask = (1 << bits(*dtype)) - 1;
      for (char& byte : bytes) byte = static_cast<char>(byte & mask);
    }
  }
  out.number(bytes.size());
  out.append(bytes);
  return add(attributes_, vhlo ? "vhlo" : "builtin", out.bytes());
}

void EntryWriter::numbers(ByteWriter& out, const Attribute& list, const Operation& place) {
  const std::optional<std::vector<std::int64_t>> values = integers_of(list);
  if (!values) no_bytes_for(place, "a list without numbers");
  out.number(values->size());
  for (const std::int64_t value : *values) out.signed_number(value);
}

// The StableHLO structures that VHLO also has.
std::size_t EntryWriter::structure(const DialectAttribute& own, const Operation& place) {
  ByteWriter out;
  const auto real = [&](std::string_view name) {
    const Attribute value = own.fields.find(name);
    const auto* number = value.as<Float>();
    out.signed_number(static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(number ? number->value : 0.0)));
  };
  const auto integer = [&](std::string_view name) {
    const Attribute value = own.fields.find(name);
    const auto* number = value.as<Integer>();
    out.signed_number(number ? number->value : 0);
  };
  if (own.kind == "output_operand_alias") {
    out.number(10);
    numbers(out, own.fields.find("output_tuple_indices"), place);
    integer("operand_index");
    numbers(out, own.fields.find("operand_tuple_indices"), place);
  } else if (own.kind == "result_accuracy") {
    const Attribute mode = own.fields.find("mode");
    if (!mode) no_bytes_for(place, "an accuracy without a mode");
    const std::size_t mode_index = vhlo_attribute(mode, place);
    out.number(20);
    real("atol");
    real("rtol");
    integer("ulps");
    out.number(mode_index);
  } else {
    no_bytes_for(place, concat("#", own.dialect, ".", own.kind));
  }
  return add(attributes_, "vhlo", out.bytes());
}

std::size_t EntryWriter::attribute(const Attribute& own, EntryKind kind, const Operation& place) {
  if (const auto* dialect_attribute = own.as<DialectAttribute>();
      dialect_attribute && dialect_attribute->dialect == "sdy")
    return shardy_attribute(*dialect_attribute, place);
  return kind == EntryKind::vhlo ? vhlo_attribute(own, place) : builtin_attribute(own, place);
}

std::size_t EntryWriter::vhlo_attribute(const Attribute& own, const Operation& place) {
  ByteWriter out;
  if (const bool* flag = own.as<bool>()) {
    out.number(2);
    out.number(*flag ? 1 : 0);
  } else if (const auto* integer = own.as<Integer>()) {
    const std::size_t own_type = type(integer->type, EntryKind::vhlo, place);
    out.number(9);
    out.number(own_type);
    write_bits(out, integer->value, integer_width(integer->type.element()));
  } else if (const auto* real = own.as<Float>()) {
    const std::optional<DType> dtype = real->type.dtype();
    if (!dtype || !is_floating(*dtype)) no_bytes_for(place, print_attribute(own));
    out.number(8);
    out.number(type(real->type, EntryKind::vhlo, place));
    write_bits(out, static_cast<std::int64_t>(bits_of_value(real->value, *dtype)), bits(*dtype));
  } else if (const auto* text = own.as<String>()) {
    return vhlo_string(text->value);
  } else if (const auto* named_type = own.as<Type>()) {
    const std::size_t index = type(*named_type, EntryKind::vhlo, place);
    out.number(17);
    out.number(index);
  } else if (const auto* array = own.as<Array>()) {
    std::vector<std::size_t> parts;
    for (const Attribute& element : array->elements) parts.push_back(attribute(element, EntryKind::vhlo, place));
    out.number(1);
    out.number(parts.size());
    for (const std::size_t part : parts) out.number(part);
  } else if (const auto* elements = own.as<DenseElements>()) {
    return dense(*elements, EntryKind::vhlo, place);
  } else if (const auto* dictionary = own.as<Dictionary>()) {
    std::vector<std::pair<std::size_t, std::size_t>> entries;
    for (const auto& [name, value] : *dictionary)
      entries.emplace_back(vhlo_string(name), attribute(value, EntryKind::vhlo, place));
    out.number(6);
    out.number(entries.size());
    for (const auto& [name, value] : entries) {
      out.number(name);
      out.number(value);
    }
  } else if (const auto* word = own.as<DialectAttribute>()) {
    const VhloEnumeration* words = word->value.empty() ? nullptr : find_vhlo_enumeration(word->kind);
    if (!words) return structure(*word, place);
    std::size_t value = 0;
    while (value < words->words.size() && words->words[value] != word->value) ++value;
    if (value == words->words.size()) no_bytes_for(place, print_attribute(own));
    out.number(words->code);
    out.number(value);
  } else {
    return builtin_attribute(own, place);  // a unit, an array of numbers, a symbol: VHLO has no form of them
  }
  return add(attributes_, "vhlo", out.bytes());
}

std::size_t EntryWriter::builtin_attribute(const Attribute& own, const Operation& place) {
  ByteWriter out;
  if (own.as<Unit>()) {
    out.number(7);
  } else if (const bool* flag = own.as<bool>()) {
    out.number(8);
    out.number(type(Type::scalar("i1"), EntryKind::builtin, place));
    out.byte(*flag ? 1 : 0);
  } else if (const auto* integer = own.as<Integer>()) {
    out.number(8);
    out.number(type(integer->type, EntryKind::builtin, place));
    write_bits(out, integer->value, integer_width(integer->type.element()));
  } else if (const auto* real = own.as<Float>()) {
    const std::optional<DType> dtype = real->type.dtype();
    if (!dtype || !is_floating(*dtype)) no_bytes_for(place, print_attribute(own));
    out.number(9);
    out.number(type(real->type, EntryKind::builtin, place));
    write_bits(out, static_cast<std::int64_t>(bits_of_value(real->value, *dtype)), bits(*dtype));
  } else if (const auto* text = own.as<String>()) {
    return builtin_string(text->value);
  } else if (const auto* named_type = own.as<Type>()) {
    const std::size_t index = type(*named_type, EntryKind::builtin, place);
    out.number(6);
    out.number(index);
  } else if (const auto* array = own.as<Array>()) {
    std::vector<std::size_t> parts;
    for (const Attribute& element : array->elements) parts.push_back(attribute(element, EntryKind::builtin, place));
    out.number(0);
    out.number(parts.size());
    for (const std::size_t part : parts) out.number(part);
  } else if (const auto* elements = own.as<DenseElements>()) {
    return dense(*elements, EntryKind::builtin, place);
  } else if (const auto* numbers_array = own.as<DenseArray>()) {
    const Type element = Type::scalar(numbers_array->element);
    const std::optional<DType> dtype = element.dtype();
    if (!dtype || bits(*dtype) < 8) no_bytes_for(place, print_attribute(own));
    ByteWriter bytes;
    const auto width = static_cast<int>(storage_size(*dtype));
    const auto put = [&](std::uint64_t value) {
      for (int i = 0; i < width; ++i) bytes.byte(static_cast<std::uint8_t>(value >> (8 * i)));
    };
    for (const std::int64_t value : numbers_array->integers) put(static_cast<std::uint64_t>(value));
    for (const double value : numbers_array->floats) put(bits_of_value(value, *dtype));
    out.number(17);
    out.number(type(element, EntryKind::builtin, place));
    out.number(numbers_array->integers.size() + numbers_array->floats.size());
    out.number(bytes.bytes().size());
    out.append(bytes.bytes());
  } else if (const auto* dictionary_value = own.as<Dictionary>()) {
    return dictionary(std::vector<Dictionary::Entry>(dictionary_value->begin(), dictionary_value->end()),
                      EntryKind::builtin, place);
  } else if (const auto* reference = own.as<SymbolReference>(); reference && reference->nested.empty()) {
    return symbol(reference->name);
  } else {
    no_bytes_for(place, own ? print_attribute(own) : "an attribute without a value");
  }
  return add(attributes_, "builtin", out.bytes());
}

}  // namespace capibara::stablehlo
