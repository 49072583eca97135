// Reading arrays of zarr v2 and v3, chunk by chunk, with every checksum they carry.
#include <algorithm>
#include <cstring>
#include <span>

#include <capibara/checkpoint.h>

#include "io/checkpoint/reading_threads.h"
#include "io/checkpoint/zarr.h"
#include "io/checkpoint/zstd.h"
#include "io/files/crc32c.h"

namespace capibara {

// The elements of a chunk that a part of an array needs.
struct ZarrBox {
  Shape origin, size;  // in the array
  uint64_t elements = 1;

  ZarrBox(const ZarrPart& part, const Shape& chunk, const Shape& first) : origin(first), size(chunk) {
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      origin[i] = std::max(first[i], part.start[i]);
      size[i] = std::max<int64_t>(0, std::min(first[i] + chunk[i], part.start[i] + part.size[i]) - origin[i]);
      elements *= static_cast<uint64_t>(size[i]);
    }
  }
  // True if the box is the start of the chunk and contiguous in the part as well.
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

inline uint64_t element_offset(const Shape& shape, const Shape& at) {
  int64_t offset = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) offset = offset * shape[i] + at[i];
  return static_cast<uint64_t>(offset);
}

inline Shape difference(Shape a, const Shape& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}

// Takes the bytes of a chunk in order, in pieces of any size, and copies those of a box to the part: a chunk
// larger than its array takes no memory.
class ZarrBoxFiller {
 public:
  ZarrBoxFiller(const ZarrPart& part, const Shape& chunk, const Shape& first, const ZarrBox& box, uint64_t width,
                std::byte* to)
      : part_(part), chunk_(chunk), first_(first), box_(box), width_(width), to_(to), row_(chunk.size(), 0) {
    if (chunk.empty()) {
      row_bytes_ = end_ = width;
    } else {
      const std::size_t last = chunk.size() - 1;
      row_bytes_ = static_cast<uint64_t>(chunk[last]) * width;
      begin_ = static_cast<uint64_t>(box.origin[last] - first[last]) * width;
      end_ = begin_ + static_cast<uint64_t>(box.size[last]) * width;
    }
    enter_row();
  }

  void take(std::span<const std::byte> piece) {
    while (!piece.empty()) {
      const std::span<const std::byte> here = piece.first(std::min<uint64_t>(piece.size(), row_bytes_ - at_));
      if (target_) {
        const uint64_t from = std::max(at_, begin_), to = std::min(at_ + here.size(), end_);
        if (from < to) std::memcpy(target_ + (from - begin_), here.data() + (from - at_), to - from);
      }
      at_ += here.size();
      piece = piece.subspan(here.size());
      if (at_ == row_bytes_) next_row();
    }
  }

 private:
  void next_row() {
    at_ = 0;
    for (std::size_t axis = row_.size(); axis-- > 1;) {
      if (++row_[axis - 1] < chunk_[axis - 1]) break;
      row_[axis - 1] = 0;
    }
    enter_row();
  }
  // Sets the destination of the row's share of the box; null if it has none.
  void enter_row() {
    target_ = nullptr;
    Shape in_part = difference(box_.origin, part_.start);
    for (std::size_t i = 0; i + 1 < row_.size(); ++i) {
      const int64_t in_box = first_[i] + row_[i] - box_.origin[i];
      if (in_box < 0 || in_box >= box_.size[i]) return;
      in_part[i] += in_box;
    }
    target_ = to_ + element_offset(part_.size, in_part) * width_;
  }

  const ZarrPart& part_;
  const Shape &chunk_, &first_;
  const ZarrBox& box_;
  const uint64_t width_;
  std::byte* const to_;
  Shape row_;                                     // in the chunk; its last entry stays 0
  uint64_t row_bytes_ = 0, begin_ = 0, end_ = 0;  // of a row: all, and the box's share
  uint64_t at_ = 0;                               // in the row
  std::byte* target_ = nullptr;
};

namespace {

// The chunk being read, for errors.
struct ChunkName {
  const std::string& array;
  const std::string& file;
  int64_t index, count;

  [[noreturn]] void fail(const std::string& message) const {
    throw CorruptCheckpointError(
        concat("checkpoint: array ", array, ", file ", file, ", chunk ", index, " of ", count, ": ", message));
  }
};

Shape unravel(int64_t index, const Shape& counts) {
  Shape at(counts.size());
  for (std::size_t i = counts.size(); i-- > 0; index /= counts[i]) at[i] = index % counts[i];
  return at;
}

// The bytes of a chunk as they arrive: elements are copied to their destinations, the checksums after them are kept.
struct ChunkBytes {
  uint64_t elements;      // bytes of elements, padding included
  ZarrBoxFiller* filler;  // null if the elements are already in place
  bool checked;           // true if a checksum is needed
  uint64_t at = 0;
  uint32_t checksum = 0;
  std::vector<std::byte> behind = {};

  void take(std::span<const std::byte> piece) {
    const std::span<const std::byte> here = piece.first(std::min<uint64_t>(piece.size(), elements - at));
    if (filler) filler->take(here);
    if (checked) checksum = crc32c(here, checksum);
    at += here.size();
    piece = piece.subspan(here.size());
    behind.insert(behind.end(), piece.begin(), piece.end());
  }
};

class ZarrReader {
 public:
  ZarrReader(const ZarrStore& store, const ZarrArray& array, const std::string& name,
             const std::vector<uint32_t>* checksums, const ZarrPart* part)
      : store_(store),
        array_(array),
        name_(name),
        checksums_(checksums),
        part_(part ? *part : ZarrPart{Shape(array.type.shape.size(), 0), array.type.shape}),
        width_(static_cast<uint64_t>(storage_size(array.type.dtype))),
        extent_(array.sharded ? array.inner : array.chunk),
        chunk_bytes_(static_cast<uint64_t>(element_count(extent_)) * width_),
        files_(array.type.shape),
        chunks_of_file_(array.chunk.size(), 1) {
    for (std::size_t i = 0; i < files_.size(); ++i) {
      files_[i] = files_[i] == 0 ? 0 : (files_[i] - 1) / array.chunk[i] + 1;
      if (array.sharded) chunks_of_file_[i] = array.chunk[i] / array.inner[i];
    }
    for (const ZarrCodec& codec : array.codecs) {
      if (codec.kind == ZarrCodec::zstd)
        compressed_ = true;
      else
        (compressed_ ? outer_checks_ : inner_checks_) += 4;
    }
  }

  Array read() {
    check_manifest();
    const uint64_t bytes = static_cast<uint64_t>(element_count(part_.size)) * width_;
    if (bytes > unchecked_bytes) check_sizes(bytes);
    Buffer buffer = Buffer::allocate(bytes);
    to_ = buffer.mutable_data();
    for_each_chunk([&](const Blob& blob, const ChunkName& chunk, const Shape& first, int64_t index) {
      read_chunk(blob, chunk, first, index);
    });
    ArrayType type = array_.type;
    type.shape = part_.size;
    return Array::from_buffer(type, std::move(buffer));
  }

 private:
  // A description may claim any shape: memory is taken only if the files can fill it.
  static constexpr uint64_t unchecked_bytes = uint64_t{1} << 26, unproven_ratio = 64;
  static constexpr uint64_t local_piece = uint64_t{1} << 18, remote_piece = uint64_t{1} << 26;

  void check_manifest() const {
    if (!checksums_) return;
    int64_t chunks = element_count(files_);
    const bool fits = !__builtin_mul_overflow(chunks, element_count(chunks_of_file_), &chunks);
    if (!fits || static_cast<uint64_t>(chunks) != checksums_->size()) {
      throw CorruptCheckpointError(concat("checkpoint: array ", name_, ": the manifest lists ", checksums_->size(),
                                          " chunks, the description ", fits ? std::to_string(chunks) : "too many"));
    }
  }

  // Uncompressed bytes cannot exceed those of the files. Compressed ones can: if they claim to be many times as
  // many, they are decompressed once without being kept.
  void check_sizes(uint64_t bytes) const {
    uint64_t stored = 0;
    for_each_file([&](const Blob& blob, const Shape&, int64_t) { stored += blob.size(); });
    if (stored < bytes / (compressed_ ? max_zstd_ratio : 1)) {
      throw CorruptCheckpointError(concat("checkpoint: array ", name_, ": the files have ", stored,
                                          " bytes, too few for ", to_string(array_.type)));
    }
    if (!compressed_ || stored >= bytes / unproven_ratio) return;
    for_each_chunk([&](const Blob& blob, const ChunkName& chunk, const Shape&, int64_t index) {
      decompress(chunk, stored_bytes(blob, chunk, index), [](std::span<const std::byte>) {});
    });
  }

  std::string key(const Shape& at) const {
    std::string text = array_.key_prefix;
    for (std::size_t i = 0; i < at.size(); ++i)
      text += (i == 0 && array_.version == 2 ? "" : array_.separator) + std::to_string(at[i]);
    return at.empty() && array_.version == 2 ? "0" : text;
  }

  // Calls `function` for the files that hold elements of the part: with the position of its first element, and its
  // index in the grid.
  template <class Function>
  void for_each_file(const Function& function) const {
    Shape begin = part_.start, count = part_.size;
    for (std::size_t i = 0; i < begin.size(); ++i) {
      if (part_.size[i] == 0) return;
      begin[i] = part_.start[i] / array_.chunk[i];
      count[i] = (part_.start[i] + part_.size[i] - 1) / array_.chunk[i] - begin[i] + 1;
    }
    for (int64_t i = 0, files = element_count(count); i < files; ++i) {
      Shape at = unravel(i, count);
      for (std::size_t d = 0; d < at.size(); ++d) at[d] += begin[d];
      const std::string file = key(at);
      const auto index = static_cast<int64_t>(element_offset(files_, at));
      const std::optional<Blob> blob = store_(file);
      if (!blob) ChunkName{name_, file, index, element_count(files_)}.fail("the file is missing");
      for (std::size_t d = 0; d < at.size(); ++d) at[d] *= array_.chunk[d];
      function(*blob, at, index);
    }
  }

  // The same for chunks; indices are those of the manifest's checksums.
  template <class Function>
  void for_each_chunk(const Function& function) const {
    for_each_file([&](const Blob& blob, const Shape& first, int64_t file) {
      if (!array_.sharded)
        return function(blob, ChunkName{name_, blob.name(), file, element_count(files_)}, first, file);
      const int64_t count = element_count(chunks_of_file_);
      const std::vector<uint64_t> entries = read_index(blob, count);
      for_each_read(static_cast<std::size_t>(count), [&](std::size_t i) {
        Shape at = unravel(static_cast<int64_t>(i), chunks_of_file_);
        for (std::size_t d = 0; d < at.size(); ++d) at[d] = first[d] + at[d] * extent_[d];
        if (ZarrBox(part_, extent_, at).elements == 0) return;
        const ChunkName chunk{name_, blob.name(), static_cast<int64_t>(i), count};
        const uint64_t offset = entries[2 * i], bytes = entries[2 * i + 1];
        if (offset > blob.size() || bytes > blob.size() - offset)
          chunk.fail("its place is not inside of the file, or it was never written");
        // Without a manifest the number of files is unlimited, and the index is unused.
        function(blob.part(offset, bytes), chunk, at, checksums_ ? file * count + static_cast<int64_t>(i) : 0);
      });
    });
  }

  // Offset and bytes of the chunks of a shard.
  std::vector<uint64_t> read_index(const Blob& blob, int64_t count) const {
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
    uint64_t held = 0;  // chunks that share bytes would hold more than the file does
    for (std::size_t i = 0; i < entries.size(); i += 2) {
      const uint64_t bytes = entries[i + 1];
      if (entries[i] > blob.size() || bytes > blob.size() - entries[i]) continue;  // an error when it is read
      if (bytes > blob.size() - held) of_index.fail("its chunks overlap in the file");
      held += bytes;
    }
    return entries;
  }

  void check(const ChunkName& chunk, uint32_t computed, uint32_t stored, int64_t index) const {
    char text[80];
    if (computed != stored) {
      std::snprintf(text, sizeof text, "the checksum is %08x, expected %08x", computed, stored);
      chunk.fail(text);
    }
    const uint32_t saved = checksums_ ? (*checksums_)[static_cast<std::size_t>(index)] : stored;
    if (saved != stored) {
      std::snprintf(text, sizeof text, "it holds other data than was saved (checksum %08x, manifest %08x)", stored,
                    saved);
      chunk.fail(text);
    }
  }
  // Consecutive checksums, each over all bytes before it.
  void check_all(const ChunkName& chunk, uint32_t computed, std::span<const std::byte> stored, int64_t index) const {
    for (; stored.size() >= 4; stored = stored.subspan(4)) {
      uint32_t one = 0;
      std::memcpy(&one, stored.data(), 4);
      check(chunk, computed, one, index);
      computed = crc32c(stored.first(4), computed);
    }
  }

  // Reads the first bytes of a chunk and computes their checksum while they are still in the cache.
  static uint32_t read_checked(const Blob& blob, std::span<std::byte> to) {
    const std::size_t block = blob.is_remote() ? to.size() : local_piece;
    uint32_t checksum = 0;
    for (std::size_t at = 0; at < to.size(); at += block) {
      const std::span<std::byte> piece = to.subspan(at, std::min(block, to.size() - at));
      blob.read(at, piece);
      checksum = crc32c(piece, checksum);
    }
    return checksum;
  }

  void read_chunk(const Blob& blob, const ChunkName& chunk, const Shape& first, int64_t index) const {
    const ZarrBox box(part_, extent_, first);
    const std::span<std::byte> place(to_ + element_offset(part_.size, difference(box.origin, part_.start)) * width_,
                                     box.elements * width_);
    const bool run = box.is_run(part_, extent_, first);
    ZarrBoxFiller filler(part_, extent_, first, box, width_, to_);
    ChunkBytes bytes{chunk_bytes_, &filler, inner_checks_ != 0};
    if (compressed_) {
      const std::string stored = stored_bytes(blob, chunk, index);
      if (run && place.size() == chunk_bytes_ && inner_checks_ == 0) {
        const std::string problem = zstd_decompress(std::as_bytes(std::span(stored)), place);
        if (!problem.empty()) chunk.fail(problem);
        return;
      }
      decompress(chunk, stored, [&](std::span<const std::byte> piece) { bytes.take(piece); });
      return check_all(chunk, bytes.checksum, bytes.behind, index);
    }
    if (blob.size() != chunk_bytes_ + inner_checks_)
      chunk.fail(concat("it has ", blob.size(), " bytes, expected ", chunk_bytes_ + inner_checks_));
    if (run) {  // straight to its destination
      if (inner_checks_ == 0) return blob.read(0, place);
      bytes.checksum = read_checked(blob, place);
      bytes.at = place.size();
      bytes.filler = nullptr;
    }
    std::vector<std::byte> piece(std::min(blob.size() - bytes.at, blob.is_remote() ? remote_piece : local_piece));
    for (uint64_t from = bytes.at; from < blob.size(); from += piece.size()) {
      piece.resize(std::min<uint64_t>(piece.size(), blob.size() - from));
      blob.read(from, piece);
      bytes.take(piece);
    }
    check_all(chunk, bytes.checksum, bytes.behind, index);
  }

  // A compressed chunk, without the checksums after it.
  std::string stored_bytes(const Blob& blob, const ChunkName& chunk, int64_t index) const {
    if (blob.size() > chunk_bytes_ + chunk_bytes_ / 8 + 4096)
      chunk.fail(concat("it has ", blob.size(), " bytes, more than its ", chunk_bytes_, " bytes of elements need"));
    if (blob.size() < outer_checks_) chunk.fail("it is shorter than its checksum");
    std::string bytes = blob.read_all(blob.size());
    const std::size_t end = bytes.size() - outer_checks_;
    const std::span<const std::byte> all = std::as_bytes(std::span(bytes));
    if (outer_checks_ != 0) check_all(chunk, crc32c(all.first(end)), all.subspan(end), index);
    bytes.resize(end);
    return bytes;
  }

  template <class Function>
  void decompress(const ChunkName& chunk, const std::string& stored, const Function& take) const {
    const uint64_t expected = chunk_bytes_ + inner_checks_;
    uint64_t got = 0;
    const std::string problem =
        zstd_decompress_pieces(std::as_bytes(std::span(stored)), expected, [&](std::span<const std::byte> piece) {
          got += piece.size();
          take(piece);
        });
    if (!problem.empty()) chunk.fail(problem);
    if (got != expected) chunk.fail(concat("expected ", expected, " bytes after decompression, got ", got));
  }

  const ZarrStore& store_;
  const ZarrArray& array_;
  const std::string& name_;
  const std::vector<uint32_t>* checksums_;
  const ZarrPart part_;
  const uint64_t width_;
  const Shape extent_;  // of a chunk
  const uint64_t chunk_bytes_;
  Shape files_, chunks_of_file_;  // how many there are by axis
  bool compressed_ = false;
  uint64_t inner_checks_ = 0, outer_checks_ = 0;  // bytes of the checksums below and above the compression
  std::byte* to_ = nullptr;
};

}  // namespace

Array read_zarr(const ZarrStore& store, const ZarrArray& array, const std::string& name,
                const std::vector<uint32_t>* checksums, const ZarrPart* part) {
  return ZarrReader(store, array, name, checksums, part).read();
}

}  // namespace capibara
