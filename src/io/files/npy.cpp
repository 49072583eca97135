// Reading and writing .npy: a magic word, a version, a Python dictionary as text, then the elements; and .npz, a ZIP
// archive of such files.
#include "io/files/npy.h"

#include <capibara/npy.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <vector>

#include <capibara/error.h>

#include "io/files/mapped_file.h"
#include "io/files/zip.h"

namespace capibara {

namespace {

constexpr std::string_view magic{"\x93NUMPY", 6};

// `where` is the operation and the file.
[[noreturn]] void fail(const std::string& where, const std::string& message) {
  throw ValueError(concat(where, ": ", message));
}

// The dictionary of a header: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class Header {
 public:
  std::string descr;  // as written if it is no string: the fields of a record
  bool is_text = false, fortran_order = false;
  Shape shape;

  Header(std::string_view text, const std::string& where) : text_(text), where_(where) {
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        has_descr = true;
        is_text = next() == '\'' || next() == '"';
        descr = is_text ? quoted() : bracketed();
      } else if (key == "fortran_order") {
        has_order = true;
        fortran_order = truth();
      } else if (key == "shape") {
        has_shape = true;
        shape = integers();
      } else {
        fail(where_, concat("the header has an unknown key '", key, "'"));
      }
      if (!accept(',') && next() != '}') damaged("',' or '}'");
    }
    if (!has_descr || !has_order || !has_shape)
      fail(where_, concat("expected '",
                          !has_descr   ? "descr"
                          : !has_order ? "fortran_order"
                                       : "shape",
                          "' in the header"));
    if (next() != '\0') damaged("the end");
  }

 private:
  [[noreturn]] void damaged(const char* expected) const {
    fail(where_, concat("the header is damaged: expected ", expected, " at its byte ", at_));
  }
  // The next letter that is not a space; zero at the end.
  char next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char letter) {
    const bool found = next() == letter;
    at_ += found;
    return found;
  }
  void expect(char letter) {
    const char text[] = {'\'', letter, '\'', '\0'};
    if (!accept(letter)) damaged(text);
  }
  std::string quoted() {
    const char quote = next();
    if (quote != '\'' && quote != '"') damaged("a string");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == text_.npos) fail(where_, "the header ends too early");
    const std::string word(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return word;
  }
  // Everything up to the bracket that closes the one here.
  std::string bracketed() {
    if (next() != '[' && next() != '(') damaged("a type");
    const std::size_t begin = at_;
    for (int depth = 0; at_ < text_.size(); ++at_) {
      depth += text_[at_] == '[' || text_[at_] == '(' ? 1 : text_[at_] == ']' || text_[at_] == ')' ? -1 : 0;
      if (depth == 0) return std::string(text_.substr(begin, ++at_ - begin));
    }
    fail(where_, "the header ends too early");
  }
  bool truth() {
    next();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return word == "True";
    }
    damaged("True or False");
  }
  Shape integers() {
    Shape sizes;
    expect('(');
    while (!accept(')')) {
      next();
      const std::size_t begin = at_;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
      if (at_ == begin) damaged("a size of a dimension");
      if (at_ - begin > 18) fail(where_, "a dimension is too large");
      sizes.push_back(std::stoll(std::string(text_.substr(begin, at_ - begin))));
      accept('L');  // as Python 2 wrote long integers
      if (!accept(',') && next() != ')') damaged("',' or ')'");
    }
    return sizes;
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t at_ = 0;
};

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

// Elements in the other byte order; a complex number is two.
void swap_bytes(DType dtype, std::span<std::byte> elements) {
  const std::size_t width = static_cast<std::size_t>(storage_size(dtype)) / (is_complex(dtype) ? 2 : 1);
  for (std::size_t at = 0; at + width <= elements.size(); at += width)
    std::reverse(elements.begin() + static_cast<std::ptrdiff_t>(at),
                 elements.begin() + static_cast<std::ptrdiff_t>(at + width));
}

DType stored_dtype(const Header& header, std::optional<DType> raw, const std::string& where) {
  const std::string& descr = header.descr;
  if (!header.is_text) {
    fail(where,
         concat("structured elements are not supported: ", descr, ".\nHint: save each field as an array of its own."));
  }
  if (std::optional<DType> dtype = dtype_of_descr(descr)) return *dtype;
  const char kind = descr.size() > 1 ? descr[1] : '\0';
  const bool untyped = kind == 'V' || descr == "<f1";  // float8_e5m2 of ml_dtypes is written as the latter
  if (untyped && raw && descr.substr(2) == std::to_string(storage_size(*raw))) return *raw;
  if (untyped) {
    fail(where, concat("elements of type '", descr, "' are bytes without a type",
                       raw ? concat(", and ", to_string(*raw), " has ", storage_size(*raw), " bytes") : std::string(),
                       ".\nHint: NumPy writes bfloat16 and the 8-bit floats like this; pass the type that they are."));
  }
  const char* what = kind == 'O'                  ? " (Python objects)"
                     : kind == 'U' || kind == 'S' ? " (text)"
                     : kind == 'M' || kind == 'm' ? " (times)"
                                                  : "";
  fail(where, concat("elements of type '", descr, "'", what, " are not supported"));
}

Array parse_npy(std::span<const std::byte> bytes, std::optional<DType> raw, const std::string& where) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (bytes.size() < 10 || !text.starts_with(magic)) fail(where, "is not a .npy file");
  const int version = std::to_integer<int>(bytes[6]);
  if (version < 1 || version > 3) fail(where, concat("version ", version, " of the format is not known"));
  const std::size_t digits = version == 1 ? 2 : 4, first = 8 + digits;
  if (bytes.size() < first) fail(where, "the header ends too early");
  std::size_t length = 0;
  for (std::size_t i = 0; i < digits; ++i) length |= std::to_integer<std::size_t>(bytes[8 + i]) << (8 * i);
  if (length > bytes.size() - first) fail(where, "the header ends too early");
  const Header header(text.substr(first, length), where);

  ArrayType type;
  type.shape = header.shape;
  type.dtype = stored_dtype(header, raw, where);
  int64_t total = storage_size(type.dtype);
  bool empty = false;
  for (int64_t size : type.shape) {
    empty = empty || size == 0;
    if (__builtin_mul_overflow(total, std::max<int64_t>(size, 1), &total)) fail(where, "the array is too large");
  }
  if (empty) total = 0;
  const std::span<const std::byte> stored = bytes.subspan(first + length);
  if (stored.size() < static_cast<std::size_t>(total))
    fail(where, concat("expected ", total, " bytes of elements, got ", stored.size()));
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(total));
  if (header.fortran_order) {
    reorder(type.shape, static_cast<std::size_t>(storage_size(type.dtype)), stored.data(), buffer.mutable_data());
  } else if (total != 0) {
    std::memcpy(buffer.mutable_data(), stored.data(), static_cast<std::size_t>(total));
  }
  if (header.descr[0] == '>') swap_bytes(type.dtype, {buffer.mutable_data(), static_cast<std::size_t>(total)});
  return Array::from_buffer(type, std::move(buffer));
}

// Everything of a file before its elements.
std::string preamble(const Array& array) {
  std::string shape;
  for (int64_t size : array.shape()) shape += std::to_string(size) + ", ";
  if (array.ndim() > 1) shape.resize(shape.size() - 2);
  std::string header =
      concat("{'descr': '", descr_of(array.dtype()), "', 'fortran_order': False, 'shape': (", shape, "), }");
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string text(magic);
  for (const std::size_t byte : {std::size_t{1}, std::size_t{0}, header.size() & 0xFF, header.size() >> 8})
    text += static_cast<char>(byte);
  return text + header;
}

std::string_view elements_of(const Array& array) {
  return {reinterpret_cast<const char*>(array.raw_data()),
          static_cast<std::size_t>(array.size() * storage_size(array.dtype()))};
}

void require_storable(const Array& array, const std::string& where) {
  if (is_key(array.dtype()))
    fail(where, concat("keys cannot be stored, got ", to_string(array.type()), "; store random::key_data of them"));
}

// Writes a file under another name, which it has until it is complete.
void write_whole(const std::string& path, std::initializer_list<std::string_view> parts, const std::string& where) {
  const std::string partial = path + ".partial";
  std::ofstream file(partial, std::ios::binary);
  for (const std::string_view part : parts) file.write(part.data(), static_cast<std::streamsize>(part.size()));
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(partial, path, error);
  if (!file || error) fail(where, concat("cannot be written", error ? concat(": ", error.message()) : std::string()));
}

// With the types that arrays made in this program have.
Array narrowed(const Array& array) { return Array::from_host(array.dtype(), array.shape(), array.raw_data()); }

}  // namespace

Array read_npy(const std::string& path, std::optional<DType> expected) {
  return parse_npy(MappedFile(path).bytes(), expected, concat("read_npy: ", path));
}

Array load_npy(const std::string& path, std::optional<DType> raw) {
  return narrowed(parse_npy(MappedFile(path).bytes(), raw, concat("load_npy: ", path)));
}

void save_npy(const std::string& path, const Array& array) { write_npy(path, array); }

void write_npy(const std::string& path, const Array& array) {
  const std::string where = concat("save_npy: ", path);
  require_storable(array, where);
  write_whole(path, {preamble(array), elements_of(array)}, where);
}

std::map<std::string, Array> load_npz(const std::string& path, std::optional<DType> raw) {
  const std::string where = concat("load_npz: ", path);
  const MappedFile file(path);
  std::map<std::string, Array> arrays;
  for (const ZipEntry& entry : zip_entries(file.bytes(), where)) {
    const std::string here = concat(where, ": '", entry.name, "'");
    if (!entry.name.ends_with(".npy")) fail(here, "is not a .npy file");
    const std::vector<std::byte> bytes = zip_contents(entry, here);
    const std::string name = entry.name.substr(0, entry.name.size() - 4);
    if (!arrays.emplace(name, narrowed(parse_npy(bytes, raw, here))).second) fail(here, "is in the archive twice");
  }
  return arrays;
}

void save_npz(const std::string& path, const std::map<std::string, Array>& arrays) {
  const std::string where = concat("save_npz: ", path);
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& [name, array] : arrays) {
    require_storable(array, concat(where, ": '", name, "'"));
    files.emplace_back(name + ".npy", concat(preamble(array), elements_of(array)));
  }
  write_whole(path, {zip_archive(files, where)}, where);
}

}  // namespace capibara
