// Arrays in zarr's format: version 3 written and read, version 2 read.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <capibara/array.h>

#include "io/checkpoint/files.h"
#include "io/files/json.h"

namespace capibara {

// ---- writing ------------------------------------------------------------------------------------------------------

// The chunks of an array's memory: each is contiguous, and the last ones of an axis may be padded.
struct ChunkGrid {
  Shape shard, chunk;             // shard: the shape of the array, rounded up to whole chunks
  int64_t outer = 1, pieces = 1;  // chunks = outer x pieces
  uint64_t outer_bytes = 0, chunk_bytes = 0;

  int64_t count() const { return outer * pieces; }
  std::pair<uint64_t, uint64_t> part(int64_t index) const;  // offset and bytes in the array's memory, without padding
};
ChunkGrid make_chunk_grid(const Shape& shape, int64_t element_bytes, int64_t max_bytes);

// The stored form of an array of the dtype: keys are words of uint32, types that zarr has no name for are
// bytes.
struct StoredType {
  DType dtype;
  Shape shape;
};
StoredType stored_type(DType dtype, const Shape& shape);

// The text of zarr.json. Every chunk and the index of chunks carry a CRC-32C.
std::string zarr_metadata(const StoredType& type, const ChunkGrid& grid);
std::string zarr_data_key(std::size_t rank);  // c.0.0, the one file of an array

// The bytes of that file: the chunks from `data`, each with its checksum, then the index. Holds what `pieces` point to.
class ShardBytes {
 public:
  ShardBytes(const ChunkGrid& grid, const std::byte* data);
  const std::vector<iovec>& pieces() const { return pieces_; }
  const std::vector<uint32_t>& checksums() const { return checksums_; }  // of the chunks
  bool equals(const Blob& file) const;                                   // byte for byte

 private:
  std::vector<iovec> pieces_;
  std::vector<uint32_t> checksums_;
  std::vector<uint64_t> index_;
  std::string padding_;
  uint32_t index_checksum_ = 0;
};

// ---- reading ------------------------------------------------------------------------------------------------------

// The value of a key such as "zarr.json" or "c/0/0"; empty if it does not exist.
using ZarrStore = std::function<std::optional<Blob>(const std::string& key)>;

struct ZarrCodec {
  enum Kind { zstd, crc32c } kind;
};

// The description of an array.
struct ZarrArray {
  ArrayType type;
  Shape chunk;  // of the grid
  Shape inner;  // of the chunks inside a shard; empty if chunks are not sharded
  bool sharded = false, index_at_start = false, index_checked = false;
  std::vector<ZarrCodec> codecs;      // applied after the elements have become bytes, in the order of writing
  std::string key_prefix, separator;  // of the keys of chunks
  bool own = false;                   // written by capibara: the manifest must be there
  int version = 3;
};

// Reads zarr.json or .zarray; raises CorruptCheckpointError if it is malformed, CheckpointError if it requires
// something unsupported. `name` is the array's, for errors.
ZarrArray read_zarr_description(const ZarrStore& store, const std::string& name);

// A box of an array.
struct ZarrPart {
  Shape start, size;
};

// Reads all elements, or only the chunks of a part; `checksums` are those of the chunks in the
// manifest. A missing chunk is an error.
Array read_zarr(const ZarrStore& store, const ZarrArray& array, const std::string& name,
                const std::vector<uint32_t>* checksums = nullptr, const ZarrPart* part = nullptr);

}  // namespace capibara
