// Attributes and constants of StableHLO operations: read from the syntax tree, written as text.
#include <charconv>
#include <cmath>
#include <complex>
#include <cstring>

#include <capibara/error.h>

#include "compiler/stablehlo/operations.h"
#include "core/array/element.h"

namespace capibara::stablehlo {

std::string place_of(const Operation& operation) {
  if (operation.position.line == 0) return operation.name;
  return concat(operation.position.line, ":", operation.position.column, ": ", operation.name);
}

void fail(const Operation& operation, const std::string& message) {
  throw ParseError(concat(place_of(operation), ": ", message));
}

namespace {

[[noreturn]] void fail_attribute(const Operation& operation, std::string_view name, std::string_view expected) {
  const Attribute attribute = operation.attributes.find(name);
  fail(operation, concat("expected ", expected, " as attribute '", name, "', got ",
                         attribute ? print_attribute(attribute) : "nothing"));
}

std::optional<int64_t> integer_of(const Attribute& attribute) {
  if (const Integer* integer = attribute.as<Integer>()) return integer->value;
  if (const bool* flag = attribute.as<bool>()) return *flag ? 1 : 0;
  return std::nullopt;
}

}  // namespace

int64_t integer_attribute(const Operation& operation, std::string_view name) {
  if (std::optional<int64_t> value = integer_of(operation.attributes.find(name))) return *value;
  fail_attribute(operation, name, "an integer");
}

int64_t integer_attribute(const Operation& operation, std::string_view name, int64_t otherwise) {
  return operation.attributes.contains(name) ? integer_attribute(operation, name) : otherwise;
}

bool flag_attribute(const Operation& operation, std::string_view name, bool otherwise) {
  const Attribute attribute = operation.attributes.find(name);
  if (!attribute) return otherwise;
  if (attribute.as<Unit>()) return true;
  if (const bool* flag = attribute.as<bool>()) return *flag;
  fail_attribute(operation, name, "true or false");
}

Ints integers_attribute(const Operation& operation, std::string_view name) {
  if (std::optional<Ints> values = integers_of(operation.attributes.find(name))) return *values;
  fail_attribute(operation, name, "a list of integers");
}

Ints integers_attribute(const Operation& operation, std::string_view name, Ints otherwise) {
  return operation.attributes.contains(name) ? integers_attribute(operation, name) : otherwise;
}

std::string word_attribute(const Operation& operation, std::string_view name, const std::string& otherwise) {
  const Attribute attribute = operation.attributes.find(name);
  if (!attribute) return otherwise;
  if (const auto* word = attribute.as<DialectAttribute>()) return word->value;
  if (const auto* text = attribute.as<String>()) return text->value;
  fail_attribute(operation, name, "a member of an enumeration");
}

std::string string_attribute(const Operation& operation, std::string_view name) {
  if (const Attribute attribute = operation.attributes.find(name); const auto* text = attribute.as<String>()) {
    return text->value;
  }
  fail_attribute(operation, name, "a string");
}

Ints field_integers(const Attribute& structure, std::string_view name) {
  const auto* fields = structure.as<DialectAttribute>();
  if (!fields) return {};
  return integers_of(fields->fields.find(name)).value_or(Ints{});
}

int64_t field_integer(const Attribute& structure, std::string_view name, int64_t otherwise) {
  const auto* fields = structure.as<DialectAttribute>();
  if (!fields) return otherwise;
  return integer_of(fields->fields.find(name)).value_or(otherwise);
}

std::vector<std::pair<int64_t, int64_t>> pairs_attribute(const Operation& operation, std::string_view name,
                                                         std::size_t count) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  if (!operation.attributes.contains(name)) {
    pairs.assign(count, {0, 0});
    return pairs;
  }
  const Ints values = integers_attribute(operation, name);
  if (values.size() != 2 * count) fail_attribute(operation, name, concat(count, " pairs of integers"));
  for (std::size_t i = 0; i < count; ++i) pairs.emplace_back(values[2 * i], values[2 * i + 1]);
  return pairs;
}

// ---- types -------------------------------------------------------------------------------------------------------

ArrayType array_type(const Operation& operation, const Type& type) {
  if (!type.is_tensor()) fail(operation, concat("expected a tensor, got ", type.text()));
  if (!type.is_ranked() || !type.has_static_shape()) {
    throw UnsupportedError(concat(place_of(operation), ": dynamic shapes are not supported, got ", type.text()));
  }
  const std::optional<DType> dtype = type.dtype();
  if (!dtype) {
    throw UnsupportedError(concat(place_of(operation), ": element type ", type.element(), " is not supported"));
  }
  ArrayType result;
  result.shape = type.dims();
  result.dtype = *dtype;
  return result;
}

std::string type_text(const ArrayType& type) {
  if (type.dtype == DType::token) return std::string(stablehlo_name(type.dtype));
  std::string out = "tensor<";
  for (int64_t size : type.shape) out += (size == dynamic_size ? "?" : std::to_string(size)) + "x";
  return out + std::string(stablehlo_name(type.dtype)) + ">";
}

std::string types_text(std::span<const ArrayType> types) {
  std::string out;
  for (const ArrayType& type : types) out += (out.empty() ? "" : ", ") + type_text(type);
  return out;
}

std::string signature_text(std::span<const ArrayType> inputs, std::span<const ArrayType> outputs) {
  const std::string results = types_text(outputs);
  return "(" + types_text(inputs) + ") -> " + (outputs.size() == 1 ? results : "(" + results + ")");
}

// ---- attributes as text ------------------------------------------------------------------------------------------

namespace {

template <class List>
std::string joined_numbers(const List& values) {
  std::string out;
  for (auto value : values) out += (out.empty() ? "" : ", ") + std::to_string(value);
  return out;
}

}  // namespace

std::string array_text(const Ints& values) {
  return values.empty() ? "array<i64>" : "array<i64: " + joined_numbers(values) + ">";
}

std::string bool_array_text(const std::vector<bool>& values) {
  std::string out;
  for (bool value : values) out += std::string(out.empty() ? ": " : ", ") + (value ? "true" : "false");
  return "array<i1" + out + ">";
}

std::string list_text(const Ints& values) { return "[" + joined_numbers(values) + "]"; }

std::string integer_text(int64_t value) { return std::to_string(value) + " : i64"; }

std::string pairs_text(const std::vector<std::pair<int64_t, int64_t>>& pairs) {
  const std::string type = " : tensor<" + std::to_string(pairs.size()) + "x2xi64>";
  if (pairs.empty()) return "dense<>" + type;
  std::string out;
  for (const auto& [first, second] : pairs) {
    out += (out.empty() ? "[" : ", [") + std::to_string(first) + ", " + std::to_string(second) + "]";
  }
  return "dense<[" + out + "]>" + type;
}

// ---- constants ---------------------------------------------------------------------------------------------------

namespace {

// Constants with more elements than this are written as bytes.
constexpr int64_t decimal_limit = 32;

std::string hexadecimal(const std::byte* bytes, std::size_t count, bool reversed) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string out = "0x";
  out.reserve(2 + 2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[reversed ? count - 1 - i : i]);
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

// MLIR requires a decimal point in every number; infinities and NaNs are written as bits.
std::string float_text(DType dtype, const std::byte* element) {
  const double value = load_as<double>(dtype, element, 0);
  if (!std::isfinite(value)) return hexadecimal(element, static_cast<std::size_t>(storage_size(dtype)), true);
  char buffer[64];
  const auto result =
      dtype == DType::float64
          ? std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific)
          : std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(value), std::chars_format::scientific);
  std::string out(buffer, result.ptr);
  if (out.find('.') == std::string::npos) out.insert(out.find('e'), ".0");
  return out;
}

std::string element_text(DType dtype, const std::byte* element) {
  if (is_complex(dtype)) {
    const DType part = real_dtype(dtype);
    return "(" + float_text(part, element) + ", " + float_text(part, element + storage_size(part)) + ")";
  }
  if (is_floating(dtype)) return float_text(dtype, element);
  if (is_integer(dtype)) {
    return is_unsigned(dtype) ? std::to_string(load_as<uint64_t>(dtype, element, 0))
                              : std::to_string(load_as<int64_t>(dtype, element, 0));
  }
  return static_cast<unsigned char>(*element) ? "true" : "false";
}

void append_elements(std::string& out, const ArrayType& type, const std::byte*& cursor, std::size_t axis) {
  if (axis == type.shape.size()) {
    out += element_text(type.dtype, cursor);
    cursor += storage_size(type.dtype);
    return;
  }
  out += '[';
  for (int64_t i = 0; i < type.shape[axis]; ++i) {
    if (i != 0) out += ", ";
    append_elements(out, type, cursor, axis + 1);
  }
  out += ']';
}

bool is_splat(const std::byte* data, std::size_t width, int64_t count) {
  const std::size_t rest = width * static_cast<std::size_t>(count - 1);
  return std::memcmp(data, data + width, rest) == 0;  // each element equals the next one
}

}  // namespace

NdArray widened(const NdArray& narrow) {
  ArrayType type = narrow.type();
  type.dtype = is_floating(type.dtype) ? DType::float32 : is_unsigned(type.dtype) ? DType::uint8 : DType::int8;
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(storage_size(type.dtype) * type.size()));
  convert_elements(narrow.dtype(), narrow.raw_data(), type.dtype, buffer.mutable_data(), type.size());
  return NdArray::from_buffer(type, std::move(buffer));
}

std::string dense_text(const NdArray& array) {
  const ArrayType& type = array.type();
  const std::string suffix = " : " + type_text(type);
  if (type.size() == 0) return "dense<>" + suffix;
  const auto width = static_cast<std::size_t>(storage_size(type.dtype));
  const std::byte* data = array.raw_data();
  if (is_splat(data, width, type.size())) return "dense<" + element_text(type.dtype, data) + ">" + suffix;
  // How MLIR packs booleans and narrower numbers into bytes is an internal matter: those are always written out.
  const bool spelled = !is_numeric(type.dtype) || bits(type.dtype) < 8;
  if (type.size() > decimal_limit && !spelled) {
    return "dense<\"" + hexadecimal(data, width * static_cast<std::size_t>(type.size()), false) + "\">" + suffix;
  }
  std::string out = "dense<";
  const std::byte* cursor = data;
  append_elements(out, type, cursor, 0);
  return out + ">" + suffix;
}

NdArray dense_array(const Operation& operation, const DenseElements& dense) {
  const ArrayType type = array_type(operation, dense.type);
  const auto width = static_cast<std::size_t>(storage_size(type.dtype));
  const std::size_t bytes = width * static_cast<std::size_t>(type.size());
  Buffer buffer = Buffer::allocate(bytes);
  std::byte* data = buffer.mutable_data();
  if (dense.splat) {
    if (dense.bytes->size() != width) fail(operation, "the constant's element does not fit its type");
    for (std::size_t at = 0; at < bytes; at += width) std::memcpy(data + at, dense.bytes->data(), width);
  } else if (bytes != 0) {
    if (dense.bytes->size() != bytes) fail(operation, "the constant's elements do not fit its type");
    if (bytes > 0) std::memcpy(data, dense.bytes->data(), bytes);
  }
  return NdArray::from_buffer(type, std::move(buffer));
}

}  // namespace capibara::stablehlo
