// Decodes attributes: numbers, strings, arrays and dictionaries of them.
#include "backends/ffi/attributes.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <capibara/error.h>

#include "core/array/element.h"

namespace capibara::ffi {

namespace {

// XLA's codes of element types; nullopt for types whose elements take more space here than in XLA.
std::optional<int32_t> number_of(DType dtype) {
  switch (dtype) {
    case DType::bool_:
      return 1;
    case DType::int8:
      return 2;
    case DType::int16:
      return 3;
    case DType::int32:
      return 4;
    case DType::int64:
      return 5;
    case DType::uint8:
      return 6;
    case DType::uint16:
      return 7;
    case DType::uint32:
      return 8;
    case DType::uint64:
      return 9;
    case DType::float16:
      return 10;
    case DType::float32:
      return 11;
    case DType::float64:
      return 12;
    case DType::complex64:
      return 15;
    case DType::bfloat16:
      return 16;
    case DType::complex128:
      return 18;
    case DType::float8_e5m2:
      return 19;
    case DType::float8_e4m3fn:
      return 20;
    case DType::float8_e4m3b11fnuz:
      return 23;
    case DType::float8_e5m2fnuz:
      return 24;
    case DType::float8_e4m3fnuz:
      return 25;
    case DType::float8_e4m3:
      return 28;
    case DType::float8_e3m4:
      return 29;
    case DType::float8_e8m0fnu:
      return 33;
    default:
      return std::nullopt;
  }
}

struct ArrayOf {
  int32_t dtype;
  std::size_t size;
  const void* data;
};

// The bytes of a number stored as an element of this type.
std::vector<std::byte> bytes_of(DType dtype, int64_t integer, double real) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(storage_size(dtype)));
  if (is_floating(dtype))
    store_as<double>(dtype, bytes.data(), 0, real);
  else
    store_as<int64_t>(dtype, bytes.data(), 0, integer);
  return bytes;
}

std::optional<DType> dtype_of(const std::string& name) { return stablehlo::Type::tensor({}, name).dtype(); }

}  // namespace

void* AttributeFrame::scalar(int32_t type, const void* value, std::size_t size) {
  auto* bits = keep(std::array<std::byte, 16>{});
  std::memcpy(bits->data(), value, size);
  return keep(abi::Scalar{type, bits->data()});
}

void* AttributeFrame::array(int32_t type, std::size_t count, std::vector<std::byte> bytes) {
  return keep(ArrayOf{type, count, keep(std::move(bytes))->data()});
}

int32_t required_number(const std::string& target, std::optional<DType> dtype, const std::string& name) {
  const std::optional<int32_t> number = dtype ? number_of(*dtype) : std::nullopt;
  if (!number) {
    throw NotImplementedError(concat("ffi_call: '", target, "' has an operand, a result or an attribute of type ", name,
                                     ", which handlers are not given"));
  }
  return *number;
}

std::pair<int32_t, void*> AttributeFrame::number(const std::string& type, int64_t integer, double real) {
  const std::optional<DType> dtype = dtype_of(type == "index" ? "i64" : type);
  const int32_t own = required_number(target_, dtype, type);
  const std::vector<std::byte> bytes = bytes_of(*dtype, integer, real);
  return {3, scalar(own, bytes.data(), bytes.size())};
}

std::pair<int32_t, void*> AttributeFrame::value_of(const Attribute& attribute) {
  if (const auto* flag = attribute.as<bool>()) return {3, scalar(1, flag, 1)};
  if (const auto* integer = attribute.as<stablehlo::Integer>())
    return number(integer->type.element().empty() ? "i64" : integer->type.element(), integer->value, 0);
  if (const auto* real = attribute.as<stablehlo::Float>())
    return number(real->type.element().empty() ? "f64" : real->type.element(), 0, real->value);
  if (const auto* text = attribute.as<stablehlo::String>()) return {4, span(text->value)};
  if (const auto* dictionary = attribute.as<Dictionary>()) {
    auto* own = keep(abi::Attributes{});
    fill(*own, *dictionary);
    return {2, own};
  }
  if (const auto* list = attribute.as<stablehlo::Array>()) {
    std::vector<Dictionary::Entry> entries;
    for (std::size_t i = 0; i < list->elements.size(); ++i) entries.emplace_back(std::to_string(i), list->elements[i]);
    auto* own = keep(abi::Attributes{});
    fill(*own, Dictionary(std::move(entries)));
    return {2, own};
  }
  if (const auto* dense = attribute.as<stablehlo::DenseArray>()) {
    const std::optional<DType> dtype = dtype_of(dense->element);
    const int32_t type = required_number(target_, dtype, dense->element);
    const std::size_t count = std::max(dense->integers.size(), dense->floats.size());
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < count; ++i) {
      const std::vector<std::byte> one = bytes_of(*dtype, dense->integers.empty() ? 0 : dense->integers[i],
                                                  dense->floats.empty() ? 0 : dense->floats[i]);
      bytes.insert(bytes.end(), one.begin(), one.end());
    }
    return {1, array(type, count, std::move(bytes))};
  }
  if (const auto* dense = attribute.as<stablehlo::DenseElements>()) {
    const int32_t type = required_number(target_, dense->type.dtype(), dense->type.element());
    const auto count = static_cast<std::size_t>(dense->type.element_count());
    std::vector<std::byte> bytes;
    const auto* own = reinterpret_cast<const std::byte*>(dense->bytes->data());
    for (std::size_t i = 0; i < (dense->splat ? count : 1); ++i)
      bytes.insert(bytes.end(), own, own + dense->bytes->size());
    return {1, array(type, count, std::move(bytes))};
  }
  throw NotImplementedError(concat("ffi_call: '", target_, "' has an attribute of a kind that handlers are not given"));
}

void AttributeFrame::fill(abi::Attributes& into, const Dictionary& dictionary) {
  auto* lists = keep(Lists{});
  for (const auto& [name, attribute] : dictionary) {
    const auto [type, value] = value_of(attribute);
    lists->types.push_back(type);
    lists->names.push_back(span(name));
    lists->values.push_back(value);
  }
  into.struct_size = sizeof(abi::Attributes);
  into.size = static_cast<int64_t>(lists->types.size());
  into.types = lists->types.data();
  into.names = lists->names.data();
  into.values = lists->values.data();
}

}  // namespace capibara::ffi
