// A libFuzzer target: no checkpoint file may crash its readers, or make them allocate memory that it only claims.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <capibara/checkpoint.h>
#include <capibara/error.h>

#include "io/checkpoint/manifest.h"
#include "io/checkpoint/ocdbt.h"
#include "io/checkpoint/zarr.h"
#include "io/files/crc32c.h"

namespace {

using namespace capibara;

uint32_t checksum(const std::string& text) { return crc32c(std::as_bytes(std::span(text))); }

// Adds the right checksum, so that parsing continues past it.
void read_manifest_text(const std::string& text) {
  const std::string whole = text + ", \"checksum\": \"" + checksum_text(checksum(text)) + "\"}\n";
  const Manifest manifest = Manifest::parse(whole, "given");
  if (Manifest::parse(manifest.text(), "written").text() != manifest.text()) std::abort();
}

// Removes and returns the text up to the next zero byte, which is removed too.
std::string take_text(std::string& text) {
  const std::size_t zero = std::min(text.find('\0'), text.size());
  const std::string taken = text.substr(0, zero);
  text.erase(0, std::min(zero + 1, text.size()));
  return taken;
}

// The input after a description: read options, and the bytes of every chunk, to which an option adds their checksum.
struct ChunkInput {
  unsigned options = 0;
  std::string chunk;

  explicit ChunkInput(const std::string& text) {
    options = text.empty() ? 0 : static_cast<unsigned char>(text[0]);
    chunk = text.substr(std::min<std::size_t>(1, text.size()), max_chunk);
    const uint32_t check = checksum(chunk);
    sums.assign(options & 7, check);
    if (options & 16) chunk.append(reinterpret_cast<const char*>(&check), 4);
  }
  std::vector<uint32_t> sums;  // for the manifest
  bool has_sums() const { return (options & 8) != 0; }
  bool is_part() const { return (options & 32) != 0; }

  // Decompressed data may be 32768 times as large, and is then read: all files together stay below the fuzzer's memory
  // limit.
  static constexpr std::size_t max_chunk = 1000;
  static constexpr int max_files = 4;
};

// Input: a description, then chunks. Reads the array, or a part of it, with or without the manifest's checksums.
void read_array(std::string text) {
  const std::string description = take_text(text);
  const ChunkInput input(text);
  int files = 0;
  const ZarrStore store = [&](const std::string& key) -> std::optional<Blob> {
    const bool version_3 = description.find("\"zarr_format\":2") == std::string::npos;
    if (key == (version_3 ? "zarr.json" : ".zarray")) return Blob::of_bytes(description, key);
    if (key == "zarr.json" || key == ".zarray" || ++files > 2 * ChunkInput::max_files) return std::nullopt;
    return Blob::of_bytes(input.chunk, key);
  };
  const ZarrArray array = read_zarr_description(store, "given");
  ZarrPart part{array.type.shape, array.type.shape};
  for (std::size_t i = 0; i < part.start.size(); ++i) {
    part.start[i] /= 3;
    part.size[i] = (part.size[i] - part.start[i] + 1) / 2;
  }
  read_zarr(store, array, "given", input.has_sums() ? &input.sums : nullptr, input.is_part() ? &part : nullptr);
}

std::filesystem::path fresh_folder(const char* name) {
  const std::filesystem::path made = std::filesystem::temp_directory_path() /
                                     ("capibara_" + std::string(name) + "_fuzzer_" + std::to_string(getpid()));
  std::filesystem::remove_all(made);
  std::filesystem::create_directories(made);
  return made;
}

void write(const std::filesystem::path& file, const std::string& bytes) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << bytes;
}

// A step by Orbax: its tree, the description of every array, the bytes of every chunk.
void read_orbax_step(std::string text) {
  const std::filesystem::path folder = fresh_folder("orbax");
  write(folder / "_METADATA", take_text(text));
  const std::string description = take_text(text);
  const ChunkInput input(text);
  for (const char* array : {"a", "b", "value"}) {
    write(folder / array / "zarr.json", description);
    for (const char* file : {"c", "c.0", "c.1", "c.0.0"}) write(folder / array / file, input.chunk);
  }
  read_checkpoint(folder);
}

// A step of our own whose manifest is signed, with any number of checksums for its one array.
void read_own_step(std::string text) {
  const std::filesystem::path folder = fresh_folder("step");
  const std::string description = take_text(text);
  const ChunkInput input(text);
  const ZarrStore store = [&](const std::string& key) -> std::optional<Blob> {
    return key == "zarr.json" ? std::optional(Blob::of_bytes(description, key)) : std::nullopt;
  };
  Manifest manifest;
  manifest.step = 1;
  ManifestItem& item = manifest.items["p"];
  item.structure = TreeDef::leaf();
  item.arrays.push_back({read_zarr_description(store, "given").type, input.sums});
  for (const auto& [file, content] : {std::pair<std::string, std::string>{"_CHECKPOINT_METADATA", "{}"},
                                      {"p/_METADATA", "{}"},
                                      {"p/_sharding", "{}"},
                                      {"p/value/zarr.json", description}}) {
    write(folder / file, content);
    manifest.files[file] = {content.size(), checksum(content)};
  }
  for (const char* file : {"c", "c.0", "c.1", "c.2", "c.3", "c.0.0"}) write(folder / "p" / "value" / file, input.chunk);
  write(folder / manifest_file, manifest.text());
  read_checkpoint(folder);
}

// Nodes get the right length and checksum: the manifest up to the first zero byte after its header, then a data file.
std::string closed_node(uint32_t magic, const std::string& body) {
  std::string node;
  for (int shift = 24; shift >= 0; shift -= 8) node += static_cast<char>(magic >> shift);
  const uint64_t length = body.size() + 18;
  node.append(reinterpret_cast<const char*>(&length), 8);
  node += std::string(2, '\0') + body;
  const uint32_t check = checksum(node);
  return node.append(reinterpret_cast<const char*>(&check), 4);
}

void read_database(const std::string& text) {
  const std::filesystem::path folder = fresh_folder("ocdbt");
  const std::size_t half = text.empty() ? 0 : std::min<std::size_t>(static_cast<unsigned char>(text[0]), text.size());
  write(folder / "manifest.ocdbt", closed_node(0x0cdb3a2a, text.substr(0, half)));
  write(folder / "d/a", closed_node(0x0cdb20de, text.substr(half)));
  read_ocdbt(folder);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  static constexpr void (*readers[])(std::string) = {[](std::string given) { read_manifest_text(given); }, read_array,
                                                     [](std::string given) { read_database(given); }, read_orbax_step,
                                                     read_own_step};
  try {
    readers[data[0] % std::size(readers)](text);
  } catch (const capibara::Error&) {
  }
  return 0;
}
