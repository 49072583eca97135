// Files that survive the process: results of slow work by key, in a folder of the user's own.
//
// Its entries run as machine code, so the folder has to belong to the user with mode 0700; any other is refused. A
// file carries its key and the digest of its content: one that was renamed, swapped or damaged counts as absent. A file
// is written under another name and renamed, so processes may share the folder and be killed at any time. Names
// that the cache did not choose and files without its magic are never touched, and links never followed. CAPIBARA_CACHE
// names another folder, or is `off`; CAPIBARA_CACHE_BYTES bounds it (1 GiB).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "core/runtime/digest.h"

namespace capibara {

class DiskCache {
 public:
  // An empty folder: off. One that does not exist is made.
  explicit DiskCache(const std::string& folder, uint64_t limit_bytes = default_limit);
  static DiskCache& instance();  // of this process; warns once where its folder is refused

  // Switches to another folder and limit, for jax_compilation_cache_dir. Raises ValueError if the folder is
  // refused; the cache is then off.
  void move_to(const std::string& folder, uint64_t limit_bytes = default_limit);
  std::string folder() const;   // empty: off
  std::string refusal() const;  // why the requested folder is not used; empty: it is, or none was requested

  std::optional<std::string> find(const Digest& key) const;
  // Evicts the oldest files when the folder exceeds its limit. Failures to write are ignored.
  void store(const Digest& key, std::string_view content);

  static constexpr uint64_t default_limit = uint64_t{1} << 30;

 private:
  struct Folder;
  std::shared_ptr<Folder> current() const;

  mutable std::mutex mutex_;
  std::shared_ptr<Folder> folder_;  // null: off
  std::string refusal_;
};

// The content of a file of the cache. Empty if it is incomplete, or was not stored under this key.
std::optional<std::string_view> cache_entry_content(std::string_view file, const Digest& key);
std::string cache_entry(const Digest& key, std::string_view content);

}  // namespace capibara
