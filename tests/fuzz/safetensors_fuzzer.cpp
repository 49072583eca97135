// A libFuzzer target: no bytes may crash the safetensors reader, and what it reads can be written back.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <capibara/error.h>
#include <capibara/safetensors.h>

namespace {

struct Folder {
  Folder() : path(std::filesystem::temp_directory_path() / ("capibara_safetensors_" + std::to_string(getpid()))) {
    std::filesystem::create_directory(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

void write(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// First byte 0: the rest is the file. Otherwise a header up to the first zero byte, which gets the right length, then
// the data.
std::string file_of(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 0) return text;
  const std::size_t zero = std::min(text.find('\0'), text.size());
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(static_cast<std::uint64_t>(zero) >> shift);
  return bytes + text.substr(0, zero) + text.substr(std::min(zero + 1, text.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const Folder folder;
  const std::filesystem::path given = folder.path / "given", written = folder.path / "written";
  write(given, file_of(data, size));
  try {
    const capibara::SafetensorsFile file(given.string());
    const std::map<std::string, capibara::Array> arrays = capibara::load_safetensors(given.string());
    capibara::save_safetensors(written.string(), arrays, file.metadata());
    const capibara::SafetensorsFile again(written.string());
    if (again.names() != file.names() || again.metadata() != file.metadata()) std::abort();
  } catch (const capibara::Error&) {
  }
  return 0;
}
