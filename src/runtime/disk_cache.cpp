// The cache folder: names, checksums, and what goes when it is full.
#include "runtime/disk_cache.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <vector>

#include <unistd.h>

namespace capibara {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t default_limit = uint64_t{1} << 30;
constexpr char magic[8] = {'c', 'a', 'p', 'i', 'b', 'a', 'r', '1'};

struct Header {
  char magic[8];
  uint64_t size;
  Digest content;
};

uint64_t mixed(uint64_t word) {
  word ^= word >> 32;
  word *= 0xd6e8feb86659fd93u;
  word ^= word >> 29;
  return word;
}

std::string user_folder() {
  if (const char* given = std::getenv("CAPIBARA_CACHE"); given && *given) {
    return std::strcmp(given, "off") == 0 || std::strcmp(given, "0") == 0 ? "" : given;
  }
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return std::string(cache) + "/capibara";
  if (const char* home = std::getenv("HOME"); home && *home) return std::string(home) + "/.cache/capibara";
  return "";
}

uint64_t user_limit() {
  const char* given = std::getenv("CAPIBARA_CACHE_BYTES");
  const uint64_t bytes = given ? std::strtoull(given, nullptr, 10) : 0;
  return bytes ? bytes : default_limit;
}

std::mutex writing;

}  // namespace

std::string Digest::hex() const {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(words[0]),
                static_cast<unsigned long long>(words[1]));
  return text;
}

Digest digest(std::string_view text) {
  uint64_t a = 0x9e3779b97f4a7c15u ^ text.size(), b = 0xc2b2ae3d27d4eb4fu + text.size();
  std::size_t position = 0;
  for (; position < text.size(); position += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + position, std::min<std::size_t>(8, text.size() - position));
    a = mixed(a + word) * 0xff51afd7ed558ccdu;
    b = mixed((b << 23 | b >> 41) ^ (word * 0x9ddfea08eb382d69u)) + word;
  }
  return {{mixed(a ^ (b >> 17)), mixed(b + 0x165667b19e3779f9u * a)}};
}

DiskCache::DiskCache(std::string folder, uint64_t limit_bytes) : folder_(std::move(folder)), limit_(limit_bytes) {
  if (folder_.empty()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error || access(folder_.c_str(), W_OK) != 0) folder_.clear();
  written_ = limit_;  // look at the folder before the first file is added
}

DiskCache& DiskCache::instance() {
  static DiskCache cache(user_folder(), user_limit());
  return cache;
}

std::string DiskCache::path(const Digest& key) const { return folder_ + "/" + key.hex(); }

std::optional<std::string> DiskCache::find(const Digest& key) const {
  if (folder_.empty()) return std::nullopt;
  const std::string name = path(key);
  std::ifstream file(name, std::ios::binary);
  if (!file) return std::nullopt;
  Header header{};
  std::string content;
  if (file.read(reinterpret_cast<char*>(&header), sizeof header) && std::memcmp(header.magic, magic, sizeof magic) == 0 &&
      header.size <= limit_) {
    content.resize(header.size);
    if (file.read(content.data(), static_cast<std::streamsize>(content.size())) && digest(content) == header.content) {
      std::error_code ignored;
      fs::last_write_time(name, fs::file_time_type::clock::now(), ignored);  // used lately
      return content;
    }
  }
  std::error_code ignored;
  fs::remove(name, ignored);
  return std::nullopt;
}

void DiskCache::store(const Digest& key, std::string_view content) {
  if (folder_.empty() || content.size() > limit_ / 4) return;
  std::lock_guard lock(writing);
  static std::atomic<int> number = 0;
  const std::string beside = path(key) + "." + std::to_string(getpid()) + "." + std::to_string(number++);
  Header header{};
  std::memcpy(header.magic, magic, sizeof magic);
  header.size = content.size();
  header.content = digest(content);
  {
    std::ofstream file(beside, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&header), sizeof header);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    if (!file.flush()) {
      file.close();
      std::remove(beside.c_str());
      return;
    }
  }
  if (std::rename(beside.c_str(), path(key).c_str()) != 0) std::remove(beside.c_str());
  written_ += content.size() + sizeof header;
  if (written_ > limit_ / 16) trim();
}

void DiskCache::trim() {
  written_ = 0;
  struct File {
    fs::file_time_type time;
    uint64_t size;
    fs::path path;
  };
  std::vector<File> files;
  uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    const uint64_t size = entry->file_size(ignored);
    if (ignored) continue;
    files.push_back({entry->last_write_time(ignored), size, entry->path()});
    total += size;
  }
  if (total <= limit_) return;
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.time < b.time; });
  for (const File& file : files) {
    if (total <= limit_ / 4 * 3) break;
    std::error_code ignored;
    if (fs::remove(file.path, ignored)) total -= file.size;
  }
}

}  // namespace capibara
