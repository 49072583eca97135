// Files that survive the process: results of slow work by key, in the user's cache folder.
//
// Safe under several processes and corruption: a file is written beside its place and renamed, and one whose checksum is
// wrong counts as absent. CAPIBARA_CACHE names another folder, or is `off`; CAPIBARA_CACHE_BYTES bounds it (1 GiB).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace capibara {

// 128 bits of a text: two texts with the same digest do not occur.
struct Digest {
  std::array<uint64_t, 2> words{};
  std::string hex() const;
  friend bool operator==(const Digest&, const Digest&) = default;
  friend auto operator<=>(const Digest&, const Digest&) = default;
};
Digest digest(std::string_view text);

class DiskCache {
 public:
  explicit DiskCache(std::string folder, uint64_t limit_bytes);
  static DiskCache& instance();  // of this user; does nothing where the folder cannot be made

  std::optional<std::string> find(const Digest& key) const;
  // The oldest files go where the folder grows beyond its limit. Failures to write are no errors.
  void store(const Digest& key, std::string_view content);

 private:
  std::string path(const Digest& key) const;
  void trim();

  std::string folder_;  // empty: off
  uint64_t limit_;
  uint64_t written_ = 0;  // bytes since the last look at the folder
};

}  // namespace capibara
