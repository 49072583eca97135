// Reading and writing .npy: a magic word, a version, a Python dictionary as text, then the elements.
#include "io/files/npy.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include <capibara/error.h>

namespace capibara {

namespace {

constexpr std::string_view magic{"\x93NUMPY", 6};

[[noreturn]] void fail(const std::string& path, const std::string& message) {
  throw ValueError(concat("read_npy: ", path, ": ", message));
}

// The text between the quotes or brackets after 'key', in the header's dictionary.
std::string value_of(const std::string& path, const std::string& header, const std::string& key) {
  std::size_t at = header.find("'" + key + "'");
  if (at != std::string::npos) at = header.find(':', at);
  if (at == std::string::npos) fail(path, concat("expected '", key, "' in the header"));
  at = header.find_first_not_of(' ', at + 1);
  if (at == std::string::npos) fail(path, "the header ends too early");
  const char open = header[at];
  const char close = open == '\'' ? '\'' : open == '(' ? ')' : ',';
  const std::size_t begin = close == ',' ? at : at + 1;
  const std::size_t end = header.find(close, begin);
  if (end == std::string::npos) fail(path, "the header ends too early");
  return header.substr(begin, end - begin);
}

std::optional<DType> dtype_of_descr(const std::string& descr) {
  static constexpr std::pair<std::string_view, DType> names[] = {
      {"b1", DType::bool_},     {"i1", DType::int8},       {"i2", DType::int16},   {"i4", DType::int32},
      {"i8", DType::int64},     {"u1", DType::uint8},      {"u2", DType::uint16},  {"u4", DType::uint32},
      {"u8", DType::uint64},    {"f2", DType::float16},    {"f4", DType::float32}, {"f8", DType::float64},
      {"c8", DType::complex64}, {"c16", DType::complex128}};
  for (const auto& [name, dtype] : names) {
    if (descr.size() > 1 && descr.substr(1) == name) return dtype;
  }
  return std::nullopt;
}

std::string descr_of(DType dtype) {
  const int64_t size = storage_size(dtype);
  const char* order = size == 1 ? "|" : "<";
  const char* kind = is_bool(dtype)                                               ? "b"
                     : is_signed(dtype)                                           ? "i"
                     : is_unsigned(dtype)                                         ? "u"
                     : is_complex(dtype)                                          ? "c"
                     : is_floating(dtype) && dtype != DType::bfloat16 && size > 1 ? "f"
                                                                                  : "V";
  return concat(order, kind, size);
}

// Reorders column-major elements to row-major.
void reorder(const Shape& shape, std::size_t width, const std::byte* from, std::byte* to) {
  const int64_t count = element_count(shape);
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0, rest = i, stride = count;  // the stride of a dimension in the file
    for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d]) {
      stride /= shape[d];
      offset += rest % shape[d] * stride;
    }
    std::memcpy(to + static_cast<std::size_t>(i) * width, from + static_cast<std::size_t>(offset) * width, width);
  }
}

}  // namespace

Array read_npy(const std::string& path, std::optional<DType> expected) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path, "cannot be opened");
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (bytes.size() < 10 || bytes.compare(0, magic.size(), magic) != 0) fail(path, "is not a .npy file");
  const bool wide = bytes[6] >= 2;  // from version 2 the header's length has four bytes
  std::size_t length = 0;
  for (std::size_t i = 0; i < (wide ? 4U : 2U); ++i) {
    if (8 + i < bytes.size()) length |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[8 + i])) << (8 * i);
  }
  const std::size_t start = (wide ? 12 : 10) + length;
  if (start > bytes.size()) fail(path, "the header ends too early");
  const std::string header = bytes.substr(wide ? 12 : 10, length);

  const std::string descr = value_of(path, header, "descr");
  std::optional<DType> dtype = dtype_of_descr(descr);
  if (!dtype && expected && descr.size() > 2 && descr[1] == 'V' &&
      descr.substr(2) == std::to_string(storage_size(*expected))) {
    dtype = expected;
  }
  if (!dtype) fail(path, concat("elements of type '", descr, "' are not supported"));
  if (descr[0] == '>') fail(path, "elements in big-endian order are not supported");

  Shape shape;
  std::string number;
  for (char c : value_of(path, header, "shape") + ",") {
    if (c >= '0' && c <= '9') number += c;
    if (c == ',' && !number.empty()) {
      if (number.size() > 18) fail(path, "a dimension is too large");
      shape.push_back(std::stoll(number));
      number.clear();
    }
  }
  ArrayType type;
  type.shape = shape;
  type.dtype = *dtype;
  int64_t total = storage_size(*dtype);
  bool empty = false;
  for (int64_t size : shape) {
    empty = empty || size == 0;
    if (__builtin_mul_overflow(total, std::max<int64_t>(size, 1), &total)) fail(path, "the array is too large");
  }
  if (empty) total = 0;
  if (bytes.size() - start < static_cast<std::size_t>(total)) {
    fail(path, concat("expected ", total, " bytes of elements, got ", bytes.size() - start));
  }
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(total));
  const auto* elements = reinterpret_cast<const std::byte*>(bytes.data() + start);
  if (value_of(path, header, "fortran_order").find("True") != std::string::npos) {
    reorder(shape, static_cast<std::size_t>(storage_size(*dtype)), elements, buffer.mutable_data());
  } else if (total != 0) {
    std::memcpy(buffer.mutable_data(), elements, static_cast<std::size_t>(total));
  }
  return Array::from_buffer(type, std::move(buffer));
}

void write_npy(const std::string& path, const Array& array) {
  std::string shape;
  for (int64_t size : array.shape()) shape += std::to_string(size) + ", ";
  if (array.ndim() > 1) shape.resize(shape.size() - 2);
  std::string header =
      concat("{'descr': '", descr_of(array.dtype()), "', 'fortran_order': False, 'shape': (", shape, "), }");
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  file << magic << '\x01' << '\x00' << static_cast<char>(header.size() & 0xFF) << static_cast<char>(header.size() >> 8);
  file << header;
  file.write(reinterpret_cast<const char*>(array.raw_data()), array.size() * storage_size(array.dtype()));
  if (!file) throw RuntimeError(concat("write_npy: ", path, " cannot be written"));
}

}  // namespace capibara
