// The manifest names the root of a B+tree; its leaves hold keys with values, or with locations of values in data files.
#include "io/checkpoint/ocdbt.h"

#include <cstring>

#include <capibara/checkpoint.h>

#include "io/checkpoint/manifest.h"
#include "io/checkpoint/zstd.h"
#include "io/files/crc32c.h"

namespace capibara {

namespace {

constexpr uint32_t manifest_magic = 0x0cdb3a2a, node_magic = 0x0cdb20de;
constexpr uint64_t max_node_bytes = uint64_t{1} << 28, max_entries = uint64_t{1} << 24;
constexpr int max_height = 64;
// Texts of a node share their prefixes, and nodes are compressed: the memory for a database is limited to a
// multiple of the size of its files.
constexpr uint64_t free_bytes = uint64_t{1} << 20, free_node_bytes = uint64_t{1} << 24, max_ratio = 256;
constexpr std::size_t max_text_bytes = 65535;

// Numbers and texts of a node, in sequence.
class NodeBytes {
 public:
  NodeBytes(std::string bytes, std::string file) : bytes_(std::move(bytes)), file_(std::move(file)) {}

  [[noreturn]] void fail(const std::string& message) const {
    throw CorruptCheckpointError(concat("checkpoint: OCDBT file ", file_, ": ", message));
  }
  const std::string& file() const { return file_; }

  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - at_) fail("a node ends too early");
    at_ += count;
    return std::string_view(bytes_).substr(at_ - count, count);
  }
  uint8_t byte() { return static_cast<uint8_t>(take(1)[0]); }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t next = byte();
      value |= static_cast<uint64_t>(next & 0x7F) << shift;
      if (next < 0x80) return value;
    }
    fail("a number is too long");
  }
  std::vector<uint64_t> varints(uint64_t count) {
    if (count > bytes_.size() - at_) fail("a node ends too early");
    std::vector<uint64_t> values(count);
    for (uint64_t& value : values) value = varint();
    return values;
  }
  uint64_t count(uint64_t most = max_entries) {
    const uint64_t value = varint();
    if (value > most) fail("a list is too long");
    return value;
  }
  // Texts that share prefixes with those before them: prefix lengths, suffix lengths, the data in between,
  // suffixes.
  template <class Between>
  std::vector<std::string> texts(uint64_t count, Between between) {
    if (count == 0) {
      between();
      return {};
    }
    const std::vector<uint64_t> prefixes = varints(count - 1), suffixes = varints(count);
    between();
    std::vector<std::string> result;
    for (std::size_t i = 0; i < count; ++i) {
      const uint64_t shared = i == 0 ? 0 : prefixes[i - 1];
      if (i > 0 && shared > result[i - 1].size()) fail("a key shares more than the key before it has");
      const std::string_view suffix = take(suffixes[i]);
      charge(shared + suffix.size());
      std::string text = i == 0 ? "" : result[i - 1].substr(0, shared);
      result.push_back(text.append(suffix));
    }
    return result;
  }
  // Counts the bytes of a text built from this node.
  void charge(uint64_t size) {
    if (size > max_text_bytes) fail("a key is too long");
    charged_ += size;
    if (charged_ > free_bytes + max_ratio * bytes_.size()) fail("the keys of a node are too long");
  }
  uint64_t size() const { return bytes_.size(); }

 private:
  std::string bytes_, file_;
  std::size_t at_ = 0;
  uint64_t charged_ = 0;
};

// Decodes header, checksum and compression, the same for manifests and nodes.
NodeBytes open_node(const Blob& blob, uint32_t magic, uint64_t max_bytes) {
  NodeBytes outer(blob.read_all(max_node_bytes), blob.name());
  if (blob.size() < 18) outer.fail("a node is too short");
  const std::string all(outer.take(blob.size()));
  const auto* bytes = reinterpret_cast<const unsigned char*>(all.data());
  if ((uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3]) != magic)
    outer.fail("a node does not begin as it should");
  uint64_t length = 0;
  uint32_t checksum = 0;
  std::memcpy(&length, all.data() + 4, 8);
  std::memcpy(&checksum, all.data() + all.size() - 4, 4);
  if (length != all.size()) outer.fail(concat("a node has ", all.size(), " bytes, expected ", length));
  const std::span<const char> content(all.data(), all.size() - 4);
  if (crc32c(std::as_bytes(content)) != checksum) outer.fail("the checksum of a node is wrong");
  NodeBytes header(all.substr(12, all.size() - 16), blob.name());
  if (header.varint() != 0) outer.fail("a node is of an unknown version");
  const uint64_t compression = header.varint();
  const std::span<const std::byte> body = std::as_bytes(content).subspan(14);
  if (compression == 0) return NodeBytes(all.substr(14, all.size() - 18), blob.name());
  if (compression != 1) outer.fail("a node is compressed by an unknown method");
  std::string plain;
  if (const std::string problem = zstd_decompress_whole(body, max_bytes, plain); !problem.empty())
    outer.fail(concat("a node: ", problem));
  return NodeBytes(std::move(plain), blob.name());
}

struct DataFile {
  std::string base, path;  // base: the prefix of the files of children; path: the full path
};

class OcdbtReader {
 public:
  explicit OcdbtReader(std::string folder) : folder_(std::move(folder)) {}

  std::map<std::string, Blob> read() {
    const Blob opened = Blob::open(folder_ + "/manifest.ocdbt");
    NodeBytes manifest = open_node(opened, manifest_magic, max_decoded(opened.size()));
    manifest.take(16);  // the database's number
    if (manifest.varint() != 0) manifest.fail("manifests in several files are not supported");
    manifest.varints(2);  // limits for writers
    manifest.byte();
    if (manifest.varint() != 0) manifest.take(4);  // the level of compression
    const std::vector<DataFile> files = file_table(manifest, "");
    const uint64_t versions = manifest.count();
    if (versions == 0) return {};
    manifest.varints(versions);
    std::string heights(manifest.take(versions));
    const std::vector<uint64_t> numbers = manifest.varints(versions), offsets = manifest.varints(versions),
                                lengths = manifest.varints(versions);
    if (lengths.back() == 0) return {};  // no key
    visit(file(manifest, files, numbers.back()), offsets.back(), lengths.back(),
          static_cast<unsigned char>(heights.back()), "");
    return std::move(values_);
  }

 private:
  static const DataFile& file(const NodeBytes& node, const std::vector<DataFile>& files, uint64_t number) {
    if (number >= files.size()) node.fail("a data file is not in the table");
    return files[number];
  }

  static std::vector<DataFile> file_table(NodeBytes& node, const std::string& transitive) {
    const uint64_t count = node.count();
    std::vector<uint64_t> bases;
    std::vector<DataFile> files;
    const std::vector<std::string> paths = node.texts(count, [&] { bases = node.varints(count); });
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (bases[i] > paths[i].size()) node.fail("the base of a path is longer than the path");
      node.charge(transitive.size() + paths[i].size());
      const std::string whole = transitive + paths[i];
      if (!is_safe_path(whole)) node.fail(concat("the path '", whole, "' leaves the folder, or has another form"));
      files.push_back({transitive + paths[i].substr(0, bases[i]), whole});
    }
    return files;
  }

  // The limit for nodes that take this many bytes in their files.
  static uint64_t max_decoded(uint64_t stored) { return free_node_bytes + max_ratio * stored; }

  // The sizes are counted: overlapping nodes and values would together exceed their file.
  Blob part(const DataFile& data, uint64_t offset, uint64_t length) {
    auto it = opened_.find(data.path);
    if (it == opened_.end()) it = opened_.emplace(data.path, Blob::open(folder_ + "/" + data.path)).first;
    Blob found = it->second.part(offset, length);
    uint64_t& held = held_[data.path];
    held += length;
    if (held > it->second.size())
      throw CorruptCheckpointError(concat("checkpoint: OCDBT file ", it->second.name(), ": nodes or values overlap"));
    return found;
  }

  void visit(const DataFile& data, uint64_t offset, uint64_t length, int height, const std::string& prefix) {
    const Blob stored = part(data, offset, length);
    stored_ += length;
    NodeBytes node = open_node(stored, node_magic, max_decoded(stored_) - decoded_);
    decoded_ += node.size();
    if (height > max_height || node.byte() != height) node.fail("a node has another height than its parent says");
    const std::vector<DataFile> files = file_table(node, data.base);
    const uint64_t count = node.count();
    if (height == 0)
      read_leaf(node, files, count, prefix);
    else
      read_interior(node, files, count, height, prefix);
  }

  void read_leaf(NodeBytes& node, const std::vector<DataFile>& files, uint64_t count, const std::string& prefix) {
    const std::vector<std::string> keys = node.texts(count, [] {});
    const std::vector<uint64_t> lengths = node.varints(count), kinds = node.varints(count);
    uint64_t indirect = 0;
    for (const uint64_t kind : kinds) {
      if (kind > 1) node.fail("a value is stored in an unknown way");
      indirect += kind;
    }
    const std::vector<uint64_t> numbers = node.varints(indirect), offsets = node.varints(indirect);
    for (std::size_t i = 0, j = 0; i < count; ++i) {
      node.charge(prefix.size() + keys[i].size());
      Blob value = kinds[i] == 0 ? Blob::of_bytes(std::string(node.take(lengths[i])), node.file())
                                 : part(file(node, files, numbers[j]), offsets[j], lengths[i]);
      j += kinds[i];
      if (!values_.emplace(prefix + keys[i], std::move(value)).second) node.fail("a key occurs twice");
    }
  }

  void read_interior(NodeBytes& node, const std::vector<DataFile>& files, uint64_t count, int height,
                     const std::string& prefix) {
    std::vector<uint64_t> common;
    const std::vector<std::string> keys = node.texts(count, [&] { common = node.varints(count); });
    const std::vector<uint64_t> numbers = node.varints(count), offsets = node.varints(count),
                                lengths = node.varints(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (common[i] > keys[i].size()) node.fail("a prefix is longer than its key");
      node.charge(prefix.size() + common[i]);
      visit(file(node, files, numbers[i]), offsets[i], lengths[i], height - 1, prefix + keys[i].substr(0, common[i]));
    }
  }

  const std::string folder_;
  std::map<std::string, Blob> opened_, values_;
  std::map<std::string, uint64_t> held_;  // bytes of a data file that nodes and values take
  uint64_t stored_ = 0, decoded_ = 0;     // bytes of all nodes
};

}  // namespace

std::map<std::string, Blob> read_ocdbt(const std::string& folder) { return OcdbtReader(folder).read(); }

}  // namespace capibara
