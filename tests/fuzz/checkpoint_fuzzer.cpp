// A libFuzzer target: no manifest, description of an array, shard or OCDBT file may crash the readers of checkpoints.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include <capibara/error.h>

#include "checkpoint/manifest.h"
#include "checkpoint/ocdbt.h"
#include "checkpoint/zarr.h"
#include "io/crc32c.h"

namespace {

using namespace capibara;

uint32_t checksum(const std::string& text) { return crc32c(std::as_bytes(std::span(text))); }

// With the right checksum: what stands behind it is read.
void read_manifest_text(const std::string& text) {
  const std::string whole = text + ", \"checksum\": \"" + checksum_text(checksum(text)) + "\"}\n";
  const Manifest manifest = Manifest::parse(whole, "given");
  if (Manifest::parse(manifest.text(), "written").text() != manifest.text()) std::abort();
}

// A description up to the first zero byte, then the bytes of every chunk.
void read_array(const std::string& text) {
  const std::size_t zero = std::min(text.find('\0'), text.size());
  const ZarrStore store = [&](const std::string& key) -> std::optional<Blob> {
    const bool version_3 = text.find("\"zarr_format\":2") == std::string::npos;
    if (key == (version_3 ? "zarr.json" : ".zarray")) return Blob::of_bytes(text.substr(0, zero), key);
    if (key == "zarr.json" || key == ".zarray") return std::nullopt;
    return Blob::of_bytes(text.substr(std::min(zero + 1, text.size())), key);
  };
  const ZarrArray array = read_zarr_description(store, "given");
  if (array.type.size() < 1 << 16) read_zarr(store, array, "given");
}

// Nodes get the right length and checksum: the manifest up to the first zero byte behind its header, then a data file.
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
  static const std::filesystem::path folder = [] {
    const std::filesystem::path made =
        std::filesystem::temp_directory_path() / ("capibara_ocdbt_fuzzer_" + std::to_string(getpid()));
    std::filesystem::create_directories(made / "d");
    return made;
  }();
  const std::size_t half = text.empty() ? 0 : std::min<std::size_t>(static_cast<unsigned char>(text[0]), text.size());
  auto write = [&](const char* file, const std::string& bytes) {
    std::ofstream(folder / file, std::ios::binary) << bytes;
  };
  write("manifest.ocdbt", closed_node(0x0cdb3a2a, text.substr(0, half)));
  write("d/a", closed_node(0x0cdb20de, text.substr(half)));
  read_ocdbt(folder);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    if (data[0] % 3 == 0)
      read_manifest_text(text);
    else if (data[0] % 3 == 1)
      read_array(text);
    else
      read_database(text);
  } catch (const capibara::Error&) {
  }
  return 0;
}
