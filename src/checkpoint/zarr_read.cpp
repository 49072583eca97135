// Reading arrays of zarr v2 and v3, chunk by chunk, with every checksum they carry.
#include <algorithm>
#include <cstring>

#include <capibara/checkpoint.h>

#include "checkpoint/reading_threads.h"
#include "checkpoint/zarr.h"
#include "checkpoint/zstd.h"
#include "io/crc32c.h"

namespace capibara {

namespace {

// Whose chunk is being read, for errors.
struct ChunkName {
  const std::string& array;
  const std::string& file;
  int64_t index, count;

  [[noreturn]] void fail(const std::string& message) const {
    throw CorruptCheckpointError(
        concat("checkpoint: array ", array, ", file ", file, ", chunk ", index, " of ", count, ": ", message));
  }
};

// What a part of an array takes from a chunk, and whether it is one run of bytes in both.
struct Box {
  Shape origin, size;  // in the array
  uint64_t elements = 1;

  Box(const ZarrPart& part, const Shape& chunk, const Shape& first) : origin(first), size(chunk) {
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      origin[i] = std::max(first[i], part.start[i]);
      size[i] = std::max<int64_t>(0, std::min(first[i] + chunk[i], part.start[i] + part.size[i]) - origin[i]);
      elements *= static_cast<uint64_t>(size[i]);
    }
  }
  // Whether the box is the first bytes of the chunk, and has its neighbours in the part as well.
  bool is_run(const ZarrPart& part, const Shape& chunk, const Shape& first) const {
    std::size_t i = 0;
    while (i < chunk.size() && chunk[i] == 1) ++i;
    if (i < chunk.size() && origin[i] != first[i]) return false;
    for (++i; i < chunk.size(); ++i) {
      if (size[i] != chunk[i] || part.size[i] != chunk[i]) return false;
    }
    return true;
  }
};

uint64_t element_offset(const Shape& shape, const Shape& at) {
  int64_t offset = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) offset = offset * shape[i] + at[i];
  return static_cast<uint64_t>(offset);
}

Shape difference(Shape a, const Shape& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}

// Copies the rows of a box from its chunk to their places in the part.
void copy_box(const ZarrPart& part, const Shape& chunk, const Shape& first, const Box& box, uint64_t width,
              const std::byte* from, std::byte* to) {
  if (box.elements == 0) return;
  const std::size_t rank = chunk.size();
  const uint64_t row = rank == 0 ? width : static_cast<uint64_t>(box.size[rank - 1]) * width;
  const Shape in_part = difference(box.origin, part.start), in_chunk = difference(box.origin, first);
  Shape at(rank, 0);
  while (true) {
    Shape target = at, source = at;
    for (std::size_t i = 0; i < rank; ++i) {
      target[i] += in_part[i];
      source[i] += in_chunk[i];
    }
    std::memcpy(to + element_offset(part.size, target) * width, from + element_offset(chunk, source) * width, row);
    std::size_t axis = rank == 0 ? 0 : rank - 1;
    while (axis > 0 && ++at[axis - 1] == box.size[axis - 1]) at[--axis] = 0;
    if (axis == 0) return;
  }
}

Shape unravel(int64_t index, const Shape& counts) {
  Shape at(counts.size());
  for (std::size_t i = counts.size(); i-- > 0; index /= counts[i]) at[i] = index % counts[i];
  return at;
}

class ZarrReader {
 public:
  ZarrReader(const ZarrStore& store, const ZarrArray& array, const std::string& name,
             const std::vector<uint32_t>* checksums, const ZarrPart* part)
      : store_(store),
        array_(array),
        name_(name),
        checksums_(checksums),
        part_(part ? *part : ZarrPart{Shape(array.type.shape.size(), 0), array.type.shape}),
        width_(static_cast<uint64_t>(storage_size(array.type.dtype))) {}

  Array read() {
    const Shape& shape = array_.type.shape;
    const Shape counts = chunk_counts(shape, array_.chunk);
    const int64_t chunks = element_count(counts);
    const uint64_t bytes = static_cast<uint64_t>(element_count(part_.size)) * width_;
    if (bytes > unchecked_bytes) check_sizes(counts, chunks, static_cast<uint64_t>(element_count(shape)) * width_);
    Buffer buffer = Buffer::allocate(bytes);
    to_ = buffer.mutable_data();
    for (int64_t i = 0; i < chunks; ++i) read_file(i, chunks, unravel(i, counts));
    ArrayType type = array_.type;
    type.shape = part_.size;
    return Array::from_buffer(type, std::move(buffer));
  }

 private:
  // A description may claim any shape: memory is taken when the files could fill it.
  static constexpr uint64_t unchecked_bytes = uint64_t{1} << 26, max_compression = uint64_t{1} << 16;

  void check_sizes(const Shape& counts, int64_t chunks, uint64_t bytes) const {
    const bool compressed = std::any_of(array_.codecs.begin(), array_.codecs.end(),
                                        [](const ZarrCodec& codec) { return codec.kind == ZarrCodec::zstd; });
    uint64_t stored = 0;
    for (int64_t i = 0; i < chunks; ++i) {
      const std::string file = key(unravel(i, counts));
      const std::optional<Blob> blob = store_(file);
      if (!blob) ChunkName{name_, file, i, chunks}.fail("the file is missing");
      stored += blob->size();
    }
    if (stored < bytes / (compressed ? max_compression : 1)) {
      ChunkName{name_, key(Shape(counts.size(), 0)), 0, chunks}.fail(
          concat("the files have ", stored, " bytes, too few for ", to_string(array_.type)));
    }
  }

  static Shape chunk_counts(const Shape& shape, const Shape& chunk) {
    Shape counts = shape;
    for (std::size_t i = 0; i < shape.size(); ++i) counts[i] = shape[i] == 0 ? 0 : (shape[i] - 1) / chunk[i] + 1;
    return counts;
  }

  std::string key(const Shape& at) const {
    std::string text = array_.key_prefix;
    for (std::size_t i = 0; i < at.size(); ++i)
      text += (i == 0 && array_.version == 2 ? "" : array_.separator) + std::to_string(at[i]);
    return at.empty() && array_.version == 2 ? "0" : text;
  }

  void read_file(int64_t index, int64_t count, const Shape& at) {
    const std::string file = key(at);
    Shape first = at;
    for (std::size_t i = 0; i < at.size(); ++i) first[i] *= array_.chunk[i];
    if (Box(part_, array_.chunk, first).elements == 0) return;
    const std::optional<Blob> blob = store_(file);
    if (!blob) ChunkName{name_, file, index, count}.fail("the file is missing");
    if (array_.sharded) return read_shard(*blob, first);
    read_chunk(*blob, {name_, blob->name(), index, count}, first, array_.chunk, index);
  }

  void read_shard(const Blob& blob, const Shape& first) {
    Shape counts = array_.chunk;
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] /= array_.inner[i];
    const int64_t count = element_count(counts);
    const ChunkName of_index{name_, blob.name(), 0, count};
    const uint64_t check = array_.index_checked ? 4 : 0;
    if (static_cast<uint64_t>(count) > blob.size() / 16 || blob.size() < static_cast<uint64_t>(count) * 16 + check) {
      of_index.fail(concat("the file has ", blob.size(), " bytes, too few for the index of its chunks"));
    }
    std::vector<uint64_t> entries(2 * static_cast<std::size_t>(count));
    const uint64_t index_bytes = entries.size() * 8,
                   index_at = array_.index_at_start ? 0 : blob.size() - index_bytes - check;
    blob.read(index_at, std::as_writable_bytes(std::span(entries)));
    if (check != 0) {
      uint32_t stored = 0;
      blob.read(index_at + index_bytes, std::as_writable_bytes(std::span(&stored, 1)));
      if (crc32c(std::as_bytes(std::span(entries))) != stored)
        of_index.fail("the checksum of the index of chunks is wrong");
    }
    if (checksums_ && checksums_->size() != static_cast<std::size_t>(count))
      of_index.fail(concat("the manifest knows ", checksums_->size(), " chunks"));
    for_each_read(static_cast<std::size_t>(count), [&](std::size_t i) {
      Shape at = unravel(static_cast<int64_t>(i), counts);
      for (std::size_t d = 0; d < at.size(); ++d) at[d] = first[d] + at[d] * array_.inner[d];
      const ChunkName chunk{name_, blob.name(), static_cast<int64_t>(i), count};
      const uint64_t offset = entries[2 * i], bytes = entries[2 * i + 1];
      if (Box(part_, array_.inner, at).elements == 0) return;
      if (offset > blob.size() || bytes > blob.size() - offset)
        chunk.fail("its place is not inside of the file, or it was never written");
      read_chunk(blob.part(offset, bytes), chunk, at, array_.inner, static_cast<int64_t>(i));
    });
  }

  // The bytes of a whole chunk, padding included.
  uint64_t chunk_size(const Shape& chunk) const { return static_cast<uint64_t>(element_count(chunk)) * width_; }

  void check(const ChunkName& chunk, uint32_t computed, uint32_t stored, std::size_t index) const {
    char text[80];
    if (computed != stored) {
      std::snprintf(text, sizeof text, "the checksum is %08x, expected %08x", computed, stored);
      chunk.fail(text);
    }
    if (checksums_ && (*checksums_)[index] != stored) {
      std::snprintf(text, sizeof text, "it holds other data than was saved (checksum %08x, manifest %08x)", stored,
                    (*checksums_)[index]);
      chunk.fail(text);
    }
  }

  // The first bytes of a chunk and their checksum, which is taken while they are still in the cache.
  static uint32_t read_checked(const Blob& blob, std::span<std::byte> to) {
    const std::size_t block = blob.is_remote() ? to.size() : std::size_t{1} << 18;
    uint32_t checksum = 0;
    for (std::size_t at = 0; at < to.size(); at += block) {
      const std::span<std::byte> piece = to.subspan(at, std::min(block, to.size() - at));
      blob.read(at, piece);
      checksum = crc32c(piece, checksum);
    }
    return checksum;
  }

  void read_chunk(const Blob& blob, const ChunkName& chunk, const Shape& first, const Shape& extent,
                  int64_t index) const {
    const Box box(part_, extent, first);
    const uint64_t whole = chunk_size(extent);
    std::byte* const place = to_ + element_offset(part_.size, difference(box.origin, part_.start)) * width_;
    const bool run = box.is_run(part_, extent, first);
    const bool plain =
        array_.codecs.empty() || (array_.codecs.size() == 1 && array_.codecs[0].kind == ZarrCodec::crc32c);
    if (run && plain) {  // straight to its place
      const uint64_t stored_check = array_.codecs.empty() ? 0 : 4;
      if (blob.size() != whole + stored_check)
        chunk.fail(concat("it has ", blob.size(), " bytes, expected ", whole + stored_check));
      const std::span<std::byte> here(place, box.elements * width_);
      if (stored_check == 0) return blob.read(0, here);
      const uint32_t computed = read_checked(blob, here);
      std::vector<std::byte> rest(whole - here.size() + stored_check);
      blob.read(here.size(), rest);
      uint32_t stored = 0;
      std::memcpy(&stored, rest.data() + rest.size() - 4, 4);
      return check(chunk, crc32c(std::span(rest).first(rest.size() - 4), computed), stored,
                   static_cast<std::size_t>(index));
    }
    const std::vector<std::byte> bytes = decoded(blob, chunk, whole, index);
    if (run)
      std::memcpy(place, bytes.data(), box.elements * width_);
    else
      copy_box(part_, extent, first, box, width_, bytes.data(), to_);
  }

  std::vector<std::byte> decoded(const Blob& blob, const ChunkName& chunk, uint64_t whole, int64_t index) const {
    if (blob.size() > whole + whole / 8 + 4096)
      chunk.fail(concat("it has ", blob.size(), " bytes, more than its ", whole, " bytes of elements need"));
    std::vector<std::byte> bytes(blob.size());
    blob.read(0, bytes);
    for (std::size_t i = array_.codecs.size(); i-- > 0;) {
      if (array_.codecs[i].kind == ZarrCodec::crc32c) {
        if (bytes.size() < 4) chunk.fail("it is shorter than its checksum");
        uint32_t stored = 0;
        std::memcpy(&stored, bytes.data() + bytes.size() - 4, 4);
        bytes.resize(bytes.size() - 4);
        check(chunk, crc32c(bytes), stored, static_cast<std::size_t>(index));
      } else {
        const bool checked_later = i > 0;  // a checksum below the compression
        std::vector<std::byte> larger(whole + (checked_later ? 4 * i : 0));
        const std::string problem = zstd_decompress(bytes, larger);
        if (!problem.empty()) chunk.fail(problem);
        bytes = std::move(larger);
      }
    }
    if (bytes.size() != whole) chunk.fail(concat("it has ", bytes.size(), " bytes, expected ", whole));
    return bytes;
  }

  const ZarrStore& store_;
  const ZarrArray& array_;
  const std::string& name_;
  const std::vector<uint32_t>* checksums_;
  const ZarrPart part_;
  const uint64_t width_;
  std::byte* to_ = nullptr;
};

}  // namespace

Array read_zarr(const ZarrStore& store, const ZarrArray& array, const std::string& name,
                const std::vector<uint32_t>* checksums, const ZarrPart* part) {
  return ZarrReader(store, array, name, checksums, part).read();
}

}  // namespace capibara
