// Files that claim more than they hold are rejected before memory for the claimed size is allocated.
#include <gtest/gtest.h>

#include <capibara/checkpoint.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "io/checkpoint/manifest.h"
#include "io/checkpoint/ocdbt.h"
#include "io/checkpoint/zarr.h"
#include "io/files/crc32c.h"

namespace capibara {
namespace {

constexpr int64_t mebi = 1 << 20, gibi = 1 << 30;

int64_t status_bytes(const char* field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field)) return std::atoll(line.c_str() + line.find(':') + 1) * 1024;
  }
  return 0;
}

// The peak growth of this process's memory while a function runs.
template <class Function>
int64_t peak_growth(const Function& function) {
  std::ofstream("/proc/self/clear_refs") << "5" << std::flush;  // resets the peak
  const int64_t before = std::max(status_bytes("VmHWM"), status_bytes("VmRSS"));
  function();
  return status_bytes("VmHWM") - before;
}

std::string bytes_of(uint64_t value, int width) {
  std::string bytes;
  for (int i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}
std::string checksum_bytes(const std::string& text) { return bytes_of(crc32c(std::as_bytes(std::span(text))), 4); }

// Zstandard by hand (RFC 8878): a window of 128 KiB, then blocks of one repeated byte, or of raw bytes.
const std::string frame_head("\x28\xb5\x2f\xfd\x00\x38", 6);
std::string block_head(bool last, int kind, std::size_t size) {
  return bytes_of(size << 3 | static_cast<std::size_t>(kind) << 1 | (last ? 1 : 0), 3);
}
std::string repeated_frame(int64_t count, char byte, int64_t block = 1 << 17) {
  std::string frame = frame_head;
  for (; count > 0; count -= block)
    frame += block_head(count <= block, 1, static_cast<std::size_t>(std::min(count, block))) + byte;
  return frame;
}
std::string raw_frame(const std::string& bytes) {
  std::string frame = frame_head;
  for (std::size_t at = 0; at < bytes.size(); at += 100'000) {
    const std::string block = bytes.substr(at, 100'000);
    frame += block_head(at + block.size() == bytes.size(), 0, block.size()) + block;
  }
  return frame;
}

const std::string plain = R"({"name": "bytes"})", checked = R"({"name": "bytes"}, {"name": "crc32c"})",
                  zstd = R"({"name": "bytes"}, {"name": "zstd"})";

struct Description {
  std::string shape, chunk, codecs;
  std::string dtype = "uint8";

  std::string text() const {
    return R"({"zarr_format": 3, "node_type": "array", "shape": )" + shape + R"(, "data_type": ")" + dtype +
           R"(", "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": )" + chunk +
           R"(}}, "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}}, )" +
           R"("fill_value": 0, "codecs": [)" + codecs + "]}";
  }
};

using Files = std::map<std::string, std::string>;

Array read(const Description& description, const Files& files, const std::vector<uint32_t>* checksums = nullptr,
           const ZarrPart* part = nullptr) {
  const ZarrStore store = [&](const std::string& key) -> std::optional<Blob> {
    if (key == "zarr.json") return Blob::of_bytes(description.text(), key);
    const auto it = files.find(key);
    return it == files.end() ? std::nullopt : std::optional(Blob::of_bytes(it->second, key));
  };
  return read_zarr(store, read_zarr_description(store, "a"), "a", checksums, part);
}

std::string error_of(const Description& description, const Files& files,
                     const std::vector<uint32_t>* checksums = nullptr) {
  try {
    read(description, files, checksums);
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "no error";
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

std::string size_text(int64_t size) { return "[" + std::to_string(size) + "]"; }

TEST(ClaimedSizes, OfCompressedChunksTakeNoMemory) {
  const std::string tiny("\x28\xb5\x2f\xfd\x00\x00\x01\x00\x00", 9);  // an empty frame
  std::string garbage(200'000, 'x');
  garbage.replace(0, frame_head.size(), frame_head);
  for (const int64_t claimed : {3 * gibi, int64_t{1} << 45}) {
    const int64_t grown = peak_growth([&] {
      // One element of a chunk of the claimed size, and an array of that size.
      EXPECT_HAS(error_of({"[1]", size_text(claimed), zstd}, {{"c.0", tiny}}), "after decompression, got 0");
      EXPECT_HAS(error_of({size_text(claimed), size_text(claimed), zstd}, {{"c.0", tiny}}), "too few for");
      EXPECT_HAS(error_of({"[1]", size_text(claimed), zstd}, {{"c.0", garbage}}), "zstd says");
      EXPECT_NE(error_of({size_text(claimed), size_text(claimed), zstd}, {{"c.0", garbage}}), "no error");
      // A frame with less data than expected.
      EXPECT_HAS(error_of({"[1]", size_text(claimed), zstd}, {{"c.0", repeated_frame(mebi, 'x')}}), "got 1048576");
    });
    EXPECT_LT(grown, 64 * mebi) << claimed;
  }
}

TEST(ClaimedSizes, OfCompressedArraysAreProvenBeforeMemoryIsTaken) {
  const Description array{size_text(256 * mebi), size_text(256 * mebi), zstd};
  const int64_t grown = peak_growth([&] {
    EXPECT_HAS(error_of(array, {{"c.0", repeated_frame(90 * mebi, 'x', 1 << 15)}}), "got 94371840");
    EXPECT_HAS(error_of(array, {{"c.0", repeated_frame(257 * mebi, 'x')}}), "got more");
    EXPECT_HAS(error_of({"[1]", "[100000]", zstd}, {{"c.0", repeated_frame(128 * mebi, 'x')}}), "got more");
  });
  EXPECT_LT(grown, 64 * mebi);
}

TEST(ClaimedSizes, OfChunksBeyondTheArrayTakeTheMemoryOfTheArray) {
  const int64_t grown = peak_growth([&] {
    const Array few = read({"[5]", size_text(256 * mebi), zstd}, {{"c.0", repeated_frame(256 * mebi, 7)}});
    EXPECT_EQ(few.to_vector<uint8_t>(), std::vector<uint8_t>(5, 7));
    const Array box = read({"[3, 2]", "[4, 67108864]", zstd}, {{"c.0.0", repeated_frame(256 * mebi, 9)}});
    EXPECT_EQ(box.to_vector<uint8_t>(), std::vector<uint8_t>(6, 9));
  });
  EXPECT_LT(grown, 64 * mebi);
}

TEST(ClaimedSizes, OfHighlyCompressedArraysAreBelievedWhenProven) {
  const Array zeros =
      read({size_text(100 * mebi), size_text(100 * mebi), zstd}, {{"c.0", repeated_frame(100 * mebi, 3)}});
  EXPECT_EQ(zeros.to_vector<uint8_t>(), std::vector<uint8_t>(static_cast<std::size_t>(100 * mebi), 3));
}

TEST(ClaimedSizes, OfTheManifestMustBeThoseOfTheDescription) {
  const Description array{"[4]", "[1]", checked};
  Files files;
  std::vector<uint32_t> all;
  for (int i = 0; i < 4; ++i) {
    const std::string element(1, static_cast<char>(i));
    files["c." + std::to_string(i)] = element + checksum_bytes(element);
    all.push_back(crc32c(std::as_bytes(std::span(element))));
  }
  const std::vector<uint32_t> none, few(all.begin(), all.begin() + 1), many(5, 0), wrong(4, 0);
  EXPECT_EQ(error_of(array, files, &all), "no error");
  EXPECT_HAS(error_of(array, files, &none), "the manifest lists 0 chunks, the description 4");
  EXPECT_HAS(error_of(array, files, &few), "the manifest lists 1 chunks, the description 4");
  EXPECT_HAS(error_of(array, files, &many), "the manifest lists 5 chunks, the description 4");
  EXPECT_HAS(error_of(array, files, &wrong), "it holds other data than was saved");
}

// A step whose manifest has a different number of checksums than the description has chunks, otherwise valid.
std::string step_error(std::vector<uint32_t> checksums) {
  std::string folder = testing::TempDir() + "capibara_claimed_XXXXXX";
  if (!::mkdtemp(folder.data())) return "no folder";
  std::string message = "no error";
  {
    const std::vector<float> zeros(4, 0);
    Checkpointer checkpointer(folder);
    checkpointer.save(1, {{"params",
                           {TreeDef::dict({{TreeKey::text, 0, "w"}}, {TreeDef::leaf()}),
                            {Array::from_host(DType::float32, {4}, zeros.data())}}}});
    checkpointer.wait();
    const std::string step = folder + "/1", array = step + "/params/w";
    std::stringstream text;
    text << std::ifstream(step + "/capibara.json").rdbuf();
    Manifest manifest = Manifest::parse(text.str(), "m");
    const std::string description = Description{"[4]", "[1]", checked, "float32"}.text();
    manifest.items.at("params").arrays[0].checksums = std::move(checksums);
    manifest.files.at("params/w/zarr.json") = {description.size(), crc32c(std::as_bytes(std::span(description)))};
    std::filesystem::remove_all(array);
    std::filesystem::create_directory(array);
    std::ofstream(array + "/zarr.json") << description;
    for (int i = 0; i < 4; ++i) {
      const std::string element(4, '\0');
      std::ofstream(array + "/c." + std::to_string(i), std::ios::binary) << element << checksum_bytes(element);
    }
    std::filesystem::remove(step + "/capibara.json");
    std::ofstream(step + "/capibara.json") << manifest.text();
    try {
      read_checkpoint(step);
    } catch (const CheckpointError& error) {
      message = error.what();
    }
  }
  std::filesystem::remove_all(folder);
  return message;
}

TEST(ClaimedSizes, OfAStepsManifestMustBeThoseOfTheDescription) {
  const std::string element(4, '\0');
  const uint32_t right = crc32c(std::as_bytes(std::span(element)));
  EXPECT_EQ(step_error({right, right, right, right}), "no error");
  EXPECT_HAS(step_error({}), "the manifest lists 0 chunks, the description 4");
  EXPECT_HAS(step_error({right}), "the manifest lists 1 chunks, the description 4");
}

TEST(ClaimedSizes, OfShardsAreThoseOfTheFile) {
  // Eight chunks of the shard refer to the same bytes of the file.
  const std::string shard =
      R"({"name": "sharding_indexed", "configuration": {"chunk_shape": [64], "codecs": [{"name": "bytes"}], )"
      R"("index_codecs": [{"name": "bytes"}]}})";
  std::string shared(64, 'x'), apart(512, 'x');
  for (uint64_t i = 0; i < 8; ++i) {
    shared += bytes_of(0, 8) + bytes_of(64, 8);
    apart += bytes_of(64 * i, 8) + bytes_of(64, 8);
  }
  EXPECT_EQ(error_of({"[512]", "[512]", shard}, {{"c.0", apart}}), "no error");
  EXPECT_HAS(error_of({"[512]", "[512]", shard}, {{"c.0", shared}}), "its chunks overlap");
}

TEST(ClaimedSizes, OfAnArrayCostNothingWhereAPartIsRead) {
  const ZarrPart part{{1'000'000'000'001}, {6}};
  Files files;
  for (const char* file : {"c.250000000000", "c.250000000001"}) files[file] = "abcd";
  const Array read_part = read({"[4000000000000]", "[4]", plain}, files, nullptr, &part);
  EXPECT_EQ(read_part.to_vector<uint8_t>(), (std::vector<uint8_t>{'b', 'c', 'd', 'a', 'b', 'c'}));
}

TEST(ClaimedSizes, OfDescriptionsAreRefusedWhereCodecsMultiplyThem) {
  EXPECT_HAS(error_of({"[1]", "[1]", zstd + R"(, {"name": "zstd"})"}, {}), "compressed twice");
}

// Every box of every chunk of a small array, with every codec, against the elements that the description implies.
TEST(ChunksOfArrays, ComeToTheirPlaces) {
  const std::vector<std::pair<std::string, int>> codecs = {
      {plain, 0},
      {checked, 1},
      {zstd, 2},
      {zstd + R"(, {"name": "crc32c"})", 3},
      {checked + R"(, {"name": "zstd"})", 4},
      {checked + R"(, {"name": "crc32c"}, {"name": "zstd"}, {"name": "crc32c"})", 5}};
  const std::vector<std::pair<Shape, Shape>> grids = {
      {{}, {}},         {{5}, {2}},       {{3, 4}, {3, 4}},       {{3, 4}, {5, 9}},       {{5, 7}, {2, 3}},
      {{4, 6}, {1, 6}}, {{4, 6}, {2, 6}}, {{2, 3, 5}, {1, 2, 5}}, {{2, 3, 5}, {2, 2, 4}}, {{3, 1, 4}, {2, 3, 4}}};
  const auto text_of = [](const Shape& shape) {
    std::string text = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? "," : "") + std::to_string(shape[i]);
    return text + "]";
  };
  const auto next = [](Shape& at, const Shape& limit) {  // false after the last
    for (std::size_t i = at.size(); i-- > 0; at[i] = 0) {
      if (++at[i] < limit[i]) return true;
    }
    return false;
  };
  const auto value_at = [](const Shape& at) {
    int value = 1;
    for (const int64_t one : at) value = value * 11 + static_cast<int>(one);
    return static_cast<uint16_t>(value);
  };
  int boxes = 0;
  for (const auto& [shape, chunk] : grids) {
    for (const auto& [codec, kind] : codecs) {
      Files files;
      Shape counts = shape, grid(shape.size(), 0);
      for (std::size_t i = 0; i < shape.size(); ++i) counts[i] = (shape[i] + chunk[i] - 1) / chunk[i];
      do {
        std::string data, key = "c";
        Shape in_chunk(shape.size(), 0);
        do {
          Shape at = grid;
          for (std::size_t i = 0; i < at.size(); ++i) at[i] = grid[i] * chunk[i] + in_chunk[i];
          data += bytes_of(value_at(at), 2);
        } while (next(in_chunk, chunk));
        for (const int64_t one : grid) key += "." + std::to_string(one);
        if (kind == 1 || kind >= 4) data += checksum_bytes(data);
        if (kind == 5) data += checksum_bytes(data);
        if (kind >= 2) data = raw_frame(data);
        if (kind == 3 || kind == 5) data += checksum_bytes(data);
        files[key] = data;
      } while (next(grid, counts));
      const Description description{text_of(shape), text_of(chunk), codec, "uint16"};
      Shape start(shape.size(), 0);
      do {
        Shape room = shape, size(shape.size(), 0);
        for (std::size_t i = 0; i < room.size(); ++i) room[i] = shape[i] - start[i] + 1;
        do {
          const ZarrPart part{start, size};
          std::vector<uint16_t> expected;
          if (element_count(size) > 0) {
            Shape at(shape.size(), 0);
            do {
              Shape whole = at;
              for (std::size_t i = 0; i < whole.size(); ++i) whole[i] += start[i];
              expected.push_back(value_at(whole));
            } while (next(at, size));
          }
          ASSERT_EQ(read(description, files, nullptr, &part).to_vector<uint16_t>(), expected)
              << description.text() << " from " << text_of(start) << " of " << text_of(size);
          ++boxes;
        } while (next(size, room));
      } while (next(start, shape));
    }
  }
  EXPECT_GT(boxes, 10'000);
}

// ---- OCDBT --------------------------------------------------------------------------------------------------------

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string node(uint32_t magic, const std::string& body, bool compressed = false) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(magic >> shift);
  bytes += bytes_of(body.size() + 18, 8) + varint(0) + varint(compressed ? 1 : 0) + body;
  return bytes + checksum_bytes(bytes);
}
// A table with one file, "d/a"; names of children would begin with "d/".
const std::string file_table = varint(1) + varint(3) + varint(2) + "d/a";

std::string database_error(const std::string& root, const std::string& data) {
  std::string folder = testing::TempDir() + "capibara_ocdbt_XXXXXX";
  if (!::mkdtemp(folder.data())) return "no folder";
  std::filesystem::create_directory(folder + "/d");
  const std::string manifest = std::string(16, 'i') + varint(0) + varint(0) + varint(0) + std::string(1, '\0') +
                               varint(0) + file_table + varint(1) + varint(1) + std::string(1, '\0') + varint(0) +
                               varint(data.size()) + varint(root.size());
  std::ofstream(folder + "/manifest.ocdbt", std::ios::binary) << node(0x0cdb3a2a, manifest);
  std::ofstream(folder + "/d/a", std::ios::binary) << data << root;
  std::string message = "no error";
  try {
    read_ocdbt(folder);
  } catch (const CheckpointError& error) {
    message = error.what();
  }
  std::filesystem::remove_all(folder);
  return message;
}

// A leaf whose keys are encoded as prefix lengths and suffixes, and whose values are ranges of the data.
std::string leaf(const std::vector<uint64_t>& prefixes, const std::vector<std::string>& suffixes,
                 const std::vector<std::pair<uint64_t, uint64_t>>& values) {
  std::string body(1, '\0');                        // its height
  body += varint(1) + varint(1) + varint(0) + "a";  // the same file, relative to the base
  body += varint(suffixes.size());
  for (const uint64_t prefix : prefixes) body += varint(prefix);
  for (const std::string& suffix : suffixes) body += varint(suffix.size());
  for (const std::string& suffix : suffixes) body += suffix;
  for (const auto& [offset, length] : values) body += varint(length);
  for (std::size_t i = 0; i < values.size(); ++i) body += varint(1);
  for (std::size_t i = 0; i < values.size(); ++i) body += varint(0);
  for (const auto& [offset, length] : values) body += varint(offset);
  return body;
}

TEST(ClaimedSizes, OfDatabasesAreThoseOfTheirFiles) {
  constexpr uint32_t magic = 0x0cdb20de;
  const std::string data(10'000, 'x');
  const auto one = [&](const std::vector<std::pair<uint64_t, uint64_t>>& values) {
    return database_error(node(magic, leaf({0, 0}, {"a", "b", "c"}, values)), data);
  };
  EXPECT_EQ(one({{0, 5000}, {5000, 4000}, {9000, 1000}}), "no error");
  EXPECT_HAS(one({{0, 10'000}, {0, 10'000}, {0, 10'000}}), "overlap");
  EXPECT_HAS(one({{0, 1}, {1, 1}, {9000, 2000}}), "expected 2000 bytes at 9000");

  [[maybe_unused]] const int64_t grown = peak_growth([&] {
    // Keys that repeat the 60,000 letters of the first one, and a node that is tiny when compressed.
    std::vector<uint64_t> prefixes(20'000, 60'000);
    std::vector<std::string> suffixes(20'001, "a");
    suffixes[0] = std::string(60'000, 'k');
    const std::string keys = leaf(prefixes, suffixes, std::vector<std::pair<uint64_t, uint64_t>>(20'001, {0, 0}));
    EXPECT_HAS(database_error(node(magic, keys), data), "too long");
    EXPECT_HAS(database_error(node(magic, repeated_frame(250 * mebi, 0), true), data), "got more");
    EXPECT_HAS(database_error(node(magic, repeated_frame(500 * mebi, 0), true), data), "got more");
  });
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // these retain freed memory and metadata
  EXPECT_LT(grown, 100 * mebi);
#endif
}

}  // namespace
}  // namespace capibara
