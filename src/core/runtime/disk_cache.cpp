// The cache folder: its owner, the format of its files, and eviction when it is full.
#include "core/runtime/disk_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

#include <capibara/error.h>

#include "core/runtime/listeners.h"
#include "core/runtime/private_folder.h"
#include "core/runtime/warning.h"

namespace capibara {

namespace {

constexpr char magic[8] = {'c', 'a', 'p', 'i', 'b', 'a', 'r', '2'};
constexpr std::string_view entry_ending = ".capibara", unfinished_ending = ".capibara-part";
constexpr std::size_t entry_digits = 64, unfinished_digits = 32;
constexpr time_t unfinished_seconds = 3600;  // a file still being written is younger

struct Header {
  char magic[8];
  uint64_t size;
  Digest key, content;
};

std::string user_folder() {
  const char* given = secure_getenv("CAPIBARA_CACHE");
  if (!given || !*given) return user_cache_folder();
  return std::strcmp(given, "off") == 0 || std::strcmp(given, "0") == 0 ? "" : given;
}

uint64_t user_limit() {
  const char* given = secure_getenv("CAPIBARA_CACHE_BYTES");
  const uint64_t bytes = given ? std::strtoull(given, nullptr, 10) : 0;
  return bytes ? bytes : DiskCache::default_limit;
}

bool has_form(std::string_view name, std::size_t digits, std::string_view ending) {
  return name.size() == digits + ending.size() && name.ends_with(ending) &&
         name.find_first_not_of("0123456789abcdef") == digits;
}
bool is_entry(std::string_view name) { return has_form(name, entry_digits, entry_ending); }
bool is_unfinished(std::string_view name) { return has_form(name, unfinished_digits, unfinished_ending); }

std::string name_of(const Digest& key) { return key.hex() + std::string(entry_ending); }

bool is_plain_own_file(const struct stat& status) { return S_ISREG(status.st_mode) && status.st_uid == geteuid(); }

// Files left by a writer or machine that stopped too early are ours too: empty, or zeros in place of the magic.
bool has_magic(const char* start, std::size_t size) {
  constexpr char zeros[sizeof magic] = {};
  return size < sizeof magic || std::memcmp(start, magic, sizeof magic) == 0 ||
         std::memcmp(start, zeros, sizeof magic) == 0;
}

}  // namespace

std::string cache_entry(const Digest& key, std::string_view content) {
  Header header{};
  std::memcpy(header.magic, magic, sizeof magic);
  header.size = content.size();
  header.key = key;
  header.content = digest(content);
  std::string file(reinterpret_cast<const char*>(&header), sizeof header);
  return file.append(content);
}

std::optional<std::string_view> cache_entry_content(std::string_view file, const Digest& key) {
  Header header{};
  if (file.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, file.data(), sizeof header);
  const std::string_view content = file.substr(sizeof header);
  const bool whole = std::memcmp(header.magic, magic, sizeof magic) == 0 && header.key == key &&
                     header.size == content.size() && header.content == digest(content);
  return whole ? std::optional(content) : std::nullopt;
}

// ---- the folder ---------------------------------------------------------------------------------------------------

struct DiskCache::Folder {
  Folder(std::string path, Descriptor opened, uint64_t limit_bytes)
      : name(std::move(path)), descriptor(std::move(opened)), limit(limit_bytes), written(limit_bytes) {}

  const std::string name;
  const Descriptor descriptor;
  const uint64_t limit;
  std::mutex writing;
  uint64_t written;  // bytes since the last trim: one is due before the first file is added

  Descriptor open_entry(const std::string& entry) const {
    return Descriptor(::openat(descriptor.number(), entry.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  }
  void remove(const std::string& entry) const { ::unlinkat(descriptor.number(), entry.c_str(), 0); }

  // True if the file of this name was written by the cache, or does not exist.
  bool may_replace(const std::string& entry) const {
    struct stat status {};
    if (::fstatat(descriptor.number(), entry.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT;
    if (!is_plain_own_file(status)) return false;
    const Descriptor file = open_entry(entry);
    if (!file) return false;
    char start[sizeof magic] = {};
    const ssize_t size = ::read(file.number(), start, sizeof start);
    return size >= 0 && has_magic(start, static_cast<std::size_t>(size));
  }

  std::optional<std::string> find(const Digest& key) const;
  void store(const Digest& key, std::string_view content);
  void trim();
};

std::optional<std::string> DiskCache::Folder::find(const Digest& key) const {
  const std::string entry = name_of(key);
  const Descriptor file = open_entry(entry);
  struct stat status {};
  if (!file || ::fstat(file.number(), &status) != 0 || !is_plain_own_file(status)) return std::nullopt;
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size <= limit) {
    std::string text(size, '\0');
    if (read_exactly(file.number(), text.data(), text.size())) {
      if (const std::optional<std::string_view> content = cache_entry_content(text, key)) {
        ::futimens(file.number(), nullptr);  // marks it as recently used
        text.erase(0, static_cast<std::size_t>(content->data() - text.data()));
        return text;
      }
    }
  }
  if (may_replace(entry)) remove(entry);
  return std::nullopt;
}

void DiskCache::Folder::store(const Digest& key, std::string_view content) {
  if (content.size() > limit / 4) return;
  std::lock_guard lock(writing);
  const std::string entry = name_of(key);
  if (!may_replace(entry)) return;
  const std::string beside = random_digits(unfinished_digits / 2) + std::string(unfinished_ending);
  const std::string text = cache_entry(key, content);
  {
    const Descriptor file(
        ::openat(descriptor.number(), beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return;
    if (!write_whole(file.number(), text)) return remove(beside);
  }
  if (::renameat(descriptor.number(), beside.c_str(), descriptor.number(), entry.c_str()) != 0) remove(beside);
  written += text.size();
  if (written > limit / 16) trim();
}

// Considers only files with our names, and removes only those with our magic.
void DiskCache::Folder::trim() {
  written = 0;
  struct File {
    timespec time;
    uint64_t size;
    std::string name;
  };
  std::vector<File> files;
  uint64_t total = 0;
  const int again = ::openat(descriptor.number(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* listing = again < 0 ? nullptr : ::fdopendir(again);
  if (!listing) {
    if (again >= 0) ::close(again);
    return;
  }
  const time_t now = std::time(nullptr);
  while (const dirent* one = ::readdir(listing)) {
    const std::string entry = one->d_name;
    struct stat status {};
    if ((!is_entry(entry) && !is_unfinished(entry)) ||
        ::fstatat(descriptor.number(), entry.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !is_plain_own_file(status)) {
      continue;
    }
    if (is_unfinished(entry)) {  // its writer was killed, or still writes
      if (now - status.st_mtim.tv_sec > unfinished_seconds && may_replace(entry)) remove(entry);
      continue;
    }
    files.push_back({status.st_mtim, static_cast<uint64_t>(status.st_size), entry});
    total += files.back().size;
  }
  ::closedir(listing);
  if (total <= limit) return;
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return std::pair(a.time.tv_sec, a.time.tv_nsec) < std::pair(b.time.tv_sec, b.time.tv_nsec);
  });
  for (const File& file : files) {
    if (total <= limit / 4 * 3) break;
    if (!may_replace(file.name)) continue;
    remove(file.name);
    total -= file.size;
  }
}

// ---- the cache ----------------------------------------------------------------------------------------------------

DiskCache::DiskCache(const std::string& folder, uint64_t limit_bytes) {
  if (folder.empty()) return;
  const std::string name = folder_name(folder);
  auto [descriptor, reason] = open_private_folder(name);
  if (reason.empty()) {
    folder_ = std::make_shared<Folder>(name, std::move(descriptor), limit_bytes);
  } else {
    refusal_ = concat("the cache folder ", name, " is not used: ", reason);
  }
}

DiskCache& DiskCache::instance() {
  static auto* cache = new DiskCache(user_folder(), user_limit());  // never freed: programs compile until the very end
  static std::atomic<bool> warned = cache->refusal().empty() || user_folder() == user_cache_folder();
  if (!warned.exchange(true)) warn(cache->refusal());
  return *cache;
}

void DiskCache::move_to(const std::string& folder, uint64_t limit_bytes) {
  DiskCache next(folder, limit_bytes);
  std::lock_guard lock(mutex_);
  folder_ = std::move(next.folder_);
  refusal_ = std::move(next.refusal_);
  if (!refusal_.empty()) throw ValueError(refusal_);
}

std::shared_ptr<DiskCache::Folder> DiskCache::current() const {
  std::lock_guard lock(mutex_);
  return folder_;
}

std::string DiskCache::folder() const {
  const std::shared_ptr<Folder> folder = current();
  return folder ? folder->name : "";
}

std::string DiskCache::refusal() const {
  std::lock_guard lock(mutex_);
  return refusal_;
}

std::optional<std::string> DiskCache::find(const Digest& key) const {
  const std::shared_ptr<Folder> folder = current();
  if (!folder) return std::nullopt;
  std::optional<std::string> found = folder->find(key);
  tell_event(found ? "/jax/compilation_cache/cache_hits" : "/jax/compilation_cache/cache_misses");
  return found;
}

void DiskCache::store(const Digest& key, std::string_view content) {
  if (const std::shared_ptr<Folder> folder = current()) folder->store(key, content);
}

}  // namespace capibara
