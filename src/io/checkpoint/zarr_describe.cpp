// Reading zarr.json and .zarray: the type of an array and how its chunks are stored.
#include <algorithm>

#include <capibara/checkpoint.h>

#include "io/checkpoint/zarr.h"

namespace capibara {

namespace {

constexpr uint64_t max_description_bytes = 1 << 20;

// The members of a description, with errors that name the array and the file.
class Description {
 public:
  Description(const Blob& blob, const std::string& array) : file_(blob.name()), array_(array) {
    try {
      json_ = Json::parse(blob.read_all(max_description_bytes), file_);
    } catch (const ValueError& error) {
      fail(error.what());
    }
  }

  [[noreturn]] void fail(const std::string& message) const {
    throw CorruptCheckpointError(concat("checkpoint: array ", array_, ", file ", file_, ": ", message));
  }
  [[noreturn]] void unsupported(const std::string& what) const {
    throw CheckpointError(concat("checkpoint: array ", array_, ", file ", file_, ": ", what, " is not supported"));
  }

  const Json& whole() const { return json_; }
  const Json& member(const Json& object, const char* key) const {
    const Json* found = object.find(key);
    if (!found) fail(concat("expected a member '", key, "'"));
    return *found;
  }
  const std::string& text(const Json& object, const char* key) const {
    const std::string* found = member(object, key).text();
    if (!found) fail(concat("expected '", key, "' to be a text"));
    return *found;
  }
  Shape sizes(const Json& object, const char* key, int64_t least) const {
    const Json::List* list = member(object, key).list();
    if (!list || list->size() > 64) fail(concat("expected '", key, "' to be a list of sizes"));
    Shape shape;
    for (const Json& size : *list) {
      if (!size.integer() || *size.integer() < least)
        fail(concat("expected '", key, "' to be a list of sizes of at least ", least));
      shape.push_back(*size.integer());
    }
    return shape;
  }
  // Checks the bytes of a shape; raises if they overflow.
  void check_size(const Shape& shape, DType dtype) const {
    int64_t bytes = storage_size(dtype);
    bool empty = false;
    for (const int64_t size : shape) {
      empty = empty || size == 0;
      if (__builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes)) fail("the array is too large");
    }
    if (!empty && bytes > int64_t{1} << 46) fail("the array is too large");
  }

 private:
  std::string file_, array_;
  Json json_;
};

// The codecs after "bytes".
std::vector<ZarrCodec> read_codecs(const Description& description, const Json::List& list) {
  std::vector<ZarrCodec> codecs;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string& name = description.text(list[i], "name");
    if (i == 0) {
      if (name != "bytes") description.unsupported(concat("the codec '", name, "'"));
      const Json* configuration = list[i].find("configuration");
      const Json* endian = configuration ? configuration->find("endian") : nullptr;
      if (endian && endian->text() && *endian->text() != "little") description.unsupported("big-endian data");
    } else if (name == "zstd") {
      if (std::any_of(codecs.begin(), codecs.end(), [](const ZarrCodec& one) { return one.kind == ZarrCodec::zstd; }))
        description.unsupported("a chunk that is compressed twice");
      codecs.push_back({ZarrCodec::zstd});
    } else if (name == "crc32c") {
      codecs.push_back({ZarrCodec::crc32c});
    } else {
      description.unsupported(concat("the codec '", name, "'"));
    }
  }
  return codecs;
}

const Json::List& codec_list(const Description& description, const Json& object, const char* key) {
  const Json::List* list = description.member(object, key).list();
  if (!list || list->empty() || list->size() > 8)
    description.fail(concat("expected '", key, "' to be a list of codecs"));
  return *list;
}

void check_same_rank(const Description& description, const Shape& shape, const Shape& chunk) {
  if (chunk.size() != shape.size()) description.fail("the shape of chunks has another number of axes than the array");
}

ZarrArray describe_version_3(const Description& description) {
  const Json& json = description.whole();
  ZarrArray array;
  if (description.text(json, "node_type") != "array") description.fail("expected the node type 'array'");
  array.type.shape = description.sizes(json, "shape", 0);
  const std::string& dtype = description.text(json, "data_type");
  const std::optional<DType> known = dtype_from_name(dtype);
  if (!known || is_key(*known) || *known == DType::float0 || *known == DType::token)
    description.unsupported(concat("the data type '", dtype, "'"));
  array.type.dtype = *known;
  description.check_size(array.type.shape, *known);

  const Json& grid = description.member(json, "chunk_grid");
  if (description.text(grid, "name") != "regular")
    description.unsupported(concat("the chunk grid '", description.text(grid, "name"), "'"));
  array.chunk = description.sizes(description.member(grid, "configuration"), "chunk_shape", 1);
  check_same_rank(description, array.type.shape, array.chunk);
  description.check_size(array.chunk, *known);

  const Json& keys = description.member(json, "chunk_key_encoding");
  const bool is_default = description.text(keys, "name") == "default";
  const Json* configuration = keys.find("configuration");
  const Json* separator = configuration ? configuration->find("separator") : nullptr;
  array.separator = separator && separator->text() ? *separator->text() : is_default ? "/" : ".";
  if (array.separator != "/" && array.separator != ".")
    description.fail("expected the separator of chunk keys to be '/' or '.'");
  array.key_prefix = is_default ? "c" : "";
  array.version = is_default ? 3 : 2;

  const Json::List& codecs = codec_list(description, json, "codecs");
  if (description.text(codecs[0], "name") != "sharding_indexed") {
    array.codecs = read_codecs(description, codecs);
    return array;
  }
  if (codecs.size() != 1) description.unsupported("a codec behind 'sharding_indexed'");
  const Json& sharding = description.member(codecs[0], "configuration");
  array.sharded = true;
  array.inner = description.sizes(sharding, "chunk_shape", 1);
  check_same_rank(description, array.type.shape, array.inner);
  for (std::size_t i = 0; i < array.inner.size(); ++i) {
    if (array.chunk[i] % array.inner[i] != 0) description.fail("the chunks of a shard do not divide it");
  }
  array.codecs = read_codecs(description, codec_list(description, sharding, "codecs"));
  const std::vector<ZarrCodec> of_index = read_codecs(description, codec_list(description, sharding, "index_codecs"));
  array.index_checked = of_index.size() == 1 && of_index[0].kind == ZarrCodec::crc32c;
  if (!of_index.empty() && !array.index_checked) description.unsupported("a compressed index of chunks");
  if (const Json* location = sharding.find("index_location"))
    array.index_at_start = location->text() && *location->text() == "start";
  const Json* attributes = json.find("attributes");
  array.own = attributes && attributes->find("capibara_checkpoint");
  return array;
}

std::optional<DType> dtype_of_version_2(const std::string& text) {
  static constexpr std::pair<std::string_view, DType> names[] = {
      {"b1", DType::bool_},     {"i1", DType::int8},       {"i2", DType::int16},   {"i4", DType::int32},
      {"i8", DType::int64},     {"u1", DType::uint8},      {"u2", DType::uint16},  {"u4", DType::uint32},
      {"u8", DType::uint64},    {"f2", DType::float16},    {"f4", DType::float32}, {"f8", DType::float64},
      {"c8", DType::complex64}, {"c16", DType::complex128}};
  for (const auto& [name, dtype] : names) {
    if (text.size() == name.size() + 1 && text.substr(1) == name && (text[0] == '<' || text[0] == '|')) return dtype;
  }
  return dtype_from_name(text);  // bfloat16 and the float8 types
}

ZarrArray describe_version_2(const Description& description) {
  const Json& json = description.whole();
  ZarrArray array;
  array.version = 2;
  array.type.shape = description.sizes(json, "shape", 0);
  const std::string& dtype = description.text(json, "dtype");
  const std::optional<DType> known = dtype_of_version_2(dtype);
  if (!known || is_key(*known) || *known == DType::float0 || *known == DType::token)
    description.unsupported(concat("the data type '", dtype, "'"));
  array.type.dtype = *known;
  array.chunk = description.sizes(json, "chunks", 1);
  check_same_rank(description, array.type.shape, array.chunk);
  description.check_size(array.type.shape, *known);
  description.check_size(array.chunk, *known);
  if (description.text(json, "order") != "C") description.unsupported("column-major order");
  const Json* filters = json.find("filters");
  if (filters && filters->list() && !filters->list()->empty()) description.unsupported("a filter");
  const Json& compressor = description.member(json, "compressor");
  if (!compressor.is_null()) {
    const std::string& name = description.text(compressor, "id");
    if (name != "zstd") description.unsupported(concat("the compressor '", name, "'"));
    array.codecs = {{ZarrCodec::zstd}};
  }
  const Json* separator = json.find("dimension_separator");
  array.separator = separator && separator->text() ? *separator->text() : ".";
  if (array.separator != "/" && array.separator != ".")
    description.fail("expected the separator of chunk keys to be '/' or '.'");
  return array;
}

}  // namespace

ZarrArray read_zarr_description(const ZarrStore& store, const std::string& name) {
  if (const std::optional<Blob> newer = store("zarr.json")) return describe_version_3(Description(*newer, name));
  if (const std::optional<Blob> older = store(".zarray")) return describe_version_2(Description(*older, name));
  throw CorruptCheckpointError(concat("checkpoint: array ", name, ": neither zarr.json nor .zarray is there"));
}

}  // namespace capibara
