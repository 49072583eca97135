// A libFuzzer target: no tokenizer file may crash its reader or make it allocate memory that the file only claims.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <capibara/error.h>
#include <capibara/training/data.h>

namespace {

struct Folder {
  Folder() : path(std::filesystem::temp_directory_path() / ("capibara_tokenizer_fuzzer_" + std::to_string(getpid()))) {
    std::filesystem::create_directory(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  const std::string path = folder.path / "given", text(reinterpret_cast<const char*>(data), size);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << "capibara tokenizer 1\n" << text;
  try {
    const capibara::training::Tokenizer tokenizer = capibara::training::Tokenizer::load(path);
    if (tokenizer.decode(tokenizer.encode(text)) != text) std::abort();
  } catch (const capibara::ValueError&) {
  }
  return 0;
}
