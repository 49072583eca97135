// A libFuzzer target: no file may crash the .npy reader or make it allocate more memory than the file's length.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <capibara/error.h>

#include "io/files/npy.h"

namespace {

struct Folder {
  Folder() : path(std::filesystem::temp_directory_path() / ("capibara_npy_fuzzer_" + std::to_string(getpid()))) {
    std::filesystem::create_directory(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

void write(const std::filesystem::path& file, const std::uint8_t* data, std::size_t size) {
  std::ofstream(file, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
}

std::string read(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  const std::filesystem::path given = folder.path / "given.npy", first = folder.path / "first.npy",
                              second = folder.path / "second.npy";
  write(given, data, size);
  try {
    // An array that was read can be written and read back unchanged.
    capibara::write_npy(first.string(), capibara::read_npy(given.string()));
    capibara::write_npy(second.string(), capibara::read_npy(first.string()));
    if (read(first) != read(second)) std::abort();
  } catch (const capibara::Error&) {
  }
  return 0;
}
