// Writing an array as one shard of zarr v3.
#include "io/checkpoint/zarr.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "io/files/crc32c.h"

namespace capibara {

namespace {

// Types that readers of zarr v3 accept by the names of NumPy and ml_dtypes.
bool has_zarr_name(DType dtype) {
  if (is_sub_byte(dtype)) return dtype == DType::int4;
  return is_bool(dtype) || is_numeric(dtype);
}

Json dims(const Shape& shape) {
  Json::List list;
  for (const int64_t size : shape) list.emplace_back(size);
  return list;
}

Json fill_value(DType dtype) {
  if (is_bool(dtype)) return false;
  if (is_complex(dtype)) return Json::List{0.0, 0.0};
  return is_floating(dtype) ? Json(0.0) : Json(0);
}

Json::Object named(const char* name) { return {{"name", name}}; }

}  // namespace

std::pair<uint64_t, uint64_t> ChunkGrid::part(int64_t index) const {
  const auto row = static_cast<uint64_t>(index / pieces), piece = static_cast<uint64_t>(index % pieces);
  return {row * outer_bytes + piece * chunk_bytes, std::min(chunk_bytes, outer_bytes - piece * chunk_bytes)};
}

ChunkGrid make_chunk_grid(const Shape& shape, int64_t element_bytes, int64_t max_bytes) {
  ChunkGrid grid;
  grid.shard = grid.chunk = shape;
  for (int64_t& size : grid.chunk) size = std::max<int64_t>(size, 1);
  grid.shard = grid.chunk;
  // Chunks are cut along the first axis whose rows fit.
  int64_t row_bytes = element_bytes;
  std::size_t axis = shape.size();
  while (axis > 0 && row_bytes * grid.shard[axis - 1] <= max_bytes) row_bytes *= grid.shard[--axis];
  if (axis == 0) {
    grid.outer_bytes = grid.chunk_bytes = static_cast<uint64_t>(row_bytes);
    return grid;
  }
  --axis;
  const int64_t size = grid.shard[axis], most = std::max<int64_t>(1, max_bytes / row_bytes);
  grid.pieces = (size + most - 1) / most;
  const int64_t rows = (size + grid.pieces - 1) / grid.pieces;
  grid.pieces = (size + rows - 1) / rows;
  grid.chunk[axis] = rows;
  grid.shard[axis] = rows * grid.pieces;
  for (std::size_t i = 0; i < axis; ++i) {
    grid.chunk[i] = 1;
    grid.outer *= grid.shard[i];
  }
  grid.outer_bytes = static_cast<uint64_t>(size * row_bytes);
  grid.chunk_bytes = static_cast<uint64_t>(rows * row_bytes);
  return grid;
}

StoredType stored_type(DType dtype, const Shape& shape) {
  if (has_zarr_name(dtype)) return {dtype, shape};
  if (!is_key(dtype)) return {is_signed(dtype) ? DType::int8 : DType::uint8, shape};
  Shape words = shape;
  words.push_back(key_words(dtype));
  return {DType::uint32, words};
}

std::string zarr_metadata(const StoredType& type, const ChunkGrid& grid) {
  Json::Object little = named("bytes");
  if (storage_size(type.dtype) > 1) little["configuration"] = Json::Object{{"endian", "little"}};
  Json::Object index_little = named("bytes");
  index_little["configuration"] = Json::Object{{"endian", "little"}};
  Json::Object sharding = named("sharding_indexed");
  sharding["configuration"] = Json::Object{{"chunk_shape", dims(grid.chunk)},
                                           {"codecs", Json::List{little, named("crc32c")}},
                                           {"index_codecs", Json::List{index_little, named("crc32c")}},
                                           {"index_location", "end"}};
  Json::Object regular = named("regular");
  regular["configuration"] = Json::Object{{"chunk_shape", dims(grid.shard)}};
  Json::Object keys = named("default");
  keys["configuration"] = Json::Object{{"separator", "."}};
  return Json(Json::Object{{"zarr_format", 3},
                           {"node_type", "array"},
                           {"shape", dims(type.shape)},
                           {"data_type", dtype_name(type.dtype)},
                           {"chunk_grid", regular},
                           {"chunk_key_encoding", keys},
                           {"fill_value", fill_value(type.dtype)},
                           {"codecs", Json::List{sharding}},
                           {"attributes", Json::Object{{"capibara_checkpoint", 1}}}})
      .dump();
}

std::string zarr_data_key(std::size_t rank) {
  std::string key = "c";
  for (std::size_t i = 0; i < rank; ++i) key += ".0";
  return key;
}

ShardBytes::ShardBytes(const ChunkGrid& grid, const std::byte* data) {
  const auto count = static_cast<std::size_t>(grid.count());
  checksums_.resize(count);
  index_.resize(2 * count);
  pieces_.reserve(3 * count + 2);
  uint64_t max_padding = 0, at = 0;
  for (std::size_t i = 0; i < count; ++i)
    max_padding = std::max(max_padding, grid.chunk_bytes - grid.part(static_cast<int64_t>(i)).second);
  padding_.assign(max_padding, '\0');
  for (std::size_t i = 0; i < count; ++i) {
    const auto [offset, bytes] = grid.part(static_cast<int64_t>(i));
    const std::span<const std::byte> part(data + offset, bytes);
    const std::size_t padding = grid.chunk_bytes - bytes;
    checksums_[i] = crc32c(std::as_bytes(std::span(padding_)).first(padding), crc32c(part));
    pieces_.push_back({const_cast<std::byte*>(part.data()), bytes});
    if (padding > 0) pieces_.push_back({padding_.data(), padding});
    pieces_.push_back({&checksums_[i], sizeof(uint32_t)});
    index_[2 * i] = at;
    index_[2 * i + 1] = grid.chunk_bytes + sizeof(uint32_t);
    at += index_[2 * i + 1];
  }
  index_checksum_ = crc32c(std::as_bytes(std::span(index_)));
  pieces_.push_back({index_.data(), index_.size() * sizeof(uint64_t)});
  pieces_.push_back({&index_checksum_, sizeof index_checksum_});
}

bool ShardBytes::equals(const Blob& file) const {
  uint64_t at = 0;
  std::vector<std::byte> block(1 << 18);
  for (const iovec& piece : pieces_) {
    if (at > file.size() || piece.iov_len > file.size() - at) return false;
    for (std::size_t done = 0; done < piece.iov_len;) {
      const std::size_t size = std::min(block.size(), piece.iov_len - done);
      file.read(at + done, std::span(block).first(size));
      if (std::memcmp(block.data(), static_cast<const char*>(piece.iov_base) + done, size) != 0) return false;
      done += size;
    }
    at += piece.iov_len;
  }
  return at == file.size();
}

}  // namespace capibara
