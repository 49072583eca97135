// Safetensors: the length of a JSON header, the header, then the elements. Nothing in the header is trusted before it
// is checked against the size of the file.
#include <capibara/safetensors.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <capibara/error.h>

#include "io/files/json.h"
#include "io/files/mapped_file.h"

namespace capibara {

namespace {

constexpr std::size_t length_bytes = 8;
constexpr uint64_t longest_header = 100'000'000;

struct StoredType {
  std::string_view name;
  DType dtype;
};
// https://github.com/huggingface/safetensors, "Format".
constexpr StoredType stored_types[] = {
    {"BOOL", DType::bool_},
    {"U8", DType::uint8},
    {"I8", DType::int8},
    {"U16", DType::uint16},
    {"I16", DType::int16},
    {"U32", DType::uint32},
    {"I32", DType::int32},
    {"U64", DType::uint64},
    {"I64", DType::int64},
    {"F16", DType::float16},
    {"BF16", DType::bfloat16},
    {"F32", DType::float32},
    {"F64", DType::float64},
    {"F8_E4M3", DType::float8_e4m3fn},
    {"F8_E5M2", DType::float8_e5m2},
    {"C64", DType::complex64},
};

[[noreturn]] void refuse(const std::string& path, const std::string& message) {
  throw ValueError(concat("load_safetensors: ", path, ": ", message));
}

uint64_t read_length(std::span<const std::byte> bytes) {
  uint64_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
  return length;
}

// The bytes of a tensor; empty if a size is negative or the product overflows.
std::optional<uint64_t> stored_bytes(const ArrayType& type) {
  uint64_t bytes = static_cast<uint64_t>(storage_size(type.dtype));
  bool empty = false;
  for (int64_t size : type.shape) {
    empty = empty || size == 0;
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(std::max<int64_t>(size, 1)), &bytes))
      return std::nullopt;
  }
  if (bytes > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
  return empty ? 0 : bytes;
}

std::optional<Shape> integers_of(const Json* json) {
  if (!json || !json->list()) return std::nullopt;
  Shape integers;
  for (const Json& entry : *json->list()) {
    if (!entry.integer()) return std::nullopt;
    integers.push_back(*entry.integer());
  }
  return integers;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path), file_(std::make_shared<MappedFile>(path)) {
  const std::span<const std::byte> bytes = file_->bytes();
  if (bytes.size() < length_bytes) refuse(path, concat("has ", bytes.size(), " bytes, a header needs at least 8"));
  const uint64_t length = read_length(bytes);
  if (length > bytes.size() - length_bytes) {
    refuse(path, concat("the header would have ", length, " bytes, the file has ", bytes.size()));
  }
  if (length > longest_header) refuse(path, concat("the header has ", length, " bytes, the limit is ", longest_header));
  const std::size_t start = length_bytes + static_cast<std::size_t>(length);
  const Json header = Json::parse(file_->text().substr(length_bytes, static_cast<std::size_t>(length)),
                                  concat("load_safetensors: ", path, ": header"));
  if (!header.object()) refuse(path, "the header is not a JSON object");
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto& [name, value] : *header.object()) {
    if (name == "__metadata__") {
      if (!value.object()) refuse(path, "__metadata__ is not a JSON object");
      for (const auto& [key, text] : *value.object()) {
        if (!text.text()) refuse(path, concat("__metadata__['", key, "'] is not a string"));
        metadata_[key] = *text.text();
      }
      continue;
    }
    auto wrong = [&, &tensor = name](const std::string& what) {
      refuse(path, concat("tensor '", tensor, "': ", what));
    };
    const Json* dtype = value.find("dtype");
    if (!dtype || !dtype->text()) wrong("the dtype is missing");
    const auto row = std::find_if(std::begin(stored_types), std::end(stored_types),
                                  [&](const StoredType& type) { return type.name == *dtype->text(); });
    if (row == std::end(stored_types)) wrong(concat("the dtype '", *dtype->text(), "' is not known"));
    const std::optional<Shape> shape = integers_of(value.find("shape")),
                               offsets = integers_of(value.find("data_offsets"));
    if (!shape) wrong("the shape is not a list of integers");
    if (!offsets || offsets->size() != 2) wrong("data_offsets is not a list of two integers");
    Entry entry;
    entry.type.shape = *shape;
    entry.type.dtype = row->dtype;
    const int64_t begin = (*offsets)[0], end = (*offsets)[1];
    if (begin < 0 || end < begin || static_cast<uint64_t>(end) > bytes.size() - start) {
      wrong(concat("data_offsets [", begin, ", ", end, "] leave the file, which has ", bytes.size() - start,
                   " bytes of elements"));
    }
    const std::optional<uint64_t> size = stored_bytes(entry.type);
    if (!size || *size != static_cast<uint64_t>(end - begin)) {
      wrong(concat("data_offsets hold ", end - begin, " bytes, which do not fit ", to_string(entry.type)));
    }
    entry.begin = start + static_cast<std::size_t>(begin);
    ranges.emplace_back(begin, end);
    entries_.emplace(name, std::move(entry));
  }
  std::sort(ranges.begin(), ranges.end());
  uint64_t covered = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != covered) refuse(path, concat("tensors overlap or leave a hole at byte ", std::min(begin, covered)));
    covered = end;
  }
  if (covered != bytes.size() - start) {
    refuse(path, concat("tensors end at byte ", covered, " of ", bytes.size() - start, " bytes of elements"));
  }
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

const SafetensorsFile::Entry& SafetensorsFile::entry(const std::string& name) const {
  const auto it = entries_.lower_bound(name);
  if (it != entries_.end() && it->first == name) return it->second;
  const auto near = it == entries_.end() && !entries_.empty() ? std::prev(it) : it;
  refuse(path_, concat("there is no tensor '", name, "'",
                       near == entries_.end() ? "" : concat("; the nearest is '", near->first, "'")));
}

const ArrayType& SafetensorsFile::type(const std::string& name) const { return entry(name).type; }

Array SafetensorsFile::read(const std::string& name) const {
  const Entry& found = entry(name);
  return Array::from_host(found.type.dtype, found.type.shape, file_->bytes().data() + found.begin);
}

std::map<std::string, Array> load_safetensors(const std::string& path) {
  const SafetensorsFile file(path);
  std::map<std::string, Array> arrays;
  for (const std::string& name : file.names()) arrays[name] = file.read(name);
  return arrays;
}

void save_safetensors(const std::string& path, const std::map<std::string, Array>& arrays,
                      const std::map<std::string, std::string>& metadata) {
  Json::Object header;
  if (!metadata.empty()) header["__metadata__"] = Json::Object(metadata.begin(), metadata.end());
  int64_t offset = 0;
  for (const auto& [name, array] : arrays) {
    const auto row = std::find_if(std::begin(stored_types), std::end(stored_types),
                                  [dtype = array.dtype()](const StoredType& type) { return type.dtype == dtype; });
    if (row == std::end(stored_types) || name == "__metadata__") {
      throw ValueError(concat("save_safetensors: '", name, "' of type ", to_string(array.type()),
                              " cannot be stored in this format"));
    }
    Json::List shape(array.shape().begin(), array.shape().end());
    const int64_t end = offset + array.size() * storage_size(array.dtype());
    header[name] =
        Json::Object{{"dtype", row->name}, {"shape", std::move(shape)}, {"data_offsets", Json::List{offset, end}}};
    offset = end;
  }
  std::string text = Json(header).dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // elements begin at a multiple of eight bytes
  const std::string partial = path + ".partial";
  std::ofstream file(partial, std::ios::binary);
  for (std::size_t i = 0; i < length_bytes; ++i) file.put(static_cast<char>(text.size() >> (8 * i) & 0xff));
  file << text;
  for (const auto& [name, array] : arrays) {
    file.write(reinterpret_cast<const char*>(array.raw_data()), array.size() * storage_size(array.dtype()));
  }
  file.close();
  if (!file) throw ValueError(concat("save_safetensors: ", partial, " cannot be written"));
  std::filesystem::rename(partial, path);
}

}  // namespace capibara
