// A libFuzzer target: no file in the cache folder may crash the cache, and it returns only contents stored under the
// key.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/runtime/disk_cache.h"

namespace {

struct Folder {
  Folder() : path(std::filesystem::temp_directory_path() / ("capibara_cache_fuzzer_" + std::to_string(getpid()))) {}
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  static capibara::DiskCache cache(folder.path, 1 << 20);
  static const capibara::Digest key = capibara::digest("key"), other = capibara::digest("other");
  const std::string text(reinterpret_cast<const char*>(data), size);

  // As a file: returned only if it is what the cache would have written.
  const std::filesystem::path file = folder.path / (key.hex() + ".capibara");
  std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
  if (const std::optional<std::string> found = cache.find(key); found && capibara::cache_entry(key, *found) != text)
    std::abort();
  std::filesystem::remove(file);

  // As content: stored and found again, but not under another key, or with a bit changed or a byte missing.
  cache.store(key, text);
  if (cache.find(key) != text || cache.find(other)) std::abort();
  std::string entry = capibara::cache_entry(key, text);
  const std::size_t at = size > 1 ? (data[0] * 256u + data[1]) % entry.size() : 0;
  if (capibara::cache_entry_content(std::string_view(entry).substr(0, at), key)) std::abort();
  entry[at] = static_cast<char>(entry[at] ^ (1 << (size % 8)));
  if (capibara::cache_entry_content(entry, key)) std::abort();
  return 0;
}
