// ZIP archives: their files read, which are stored as they are or deflated, and archives of stored files written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace capibara {

struct ZipEntry {
  std::string name;
  std::span<const std::byte> stored;  // part of the archive
  bool deflated = false;
  uint64_t size = 0;  // when inflated
  uint32_t checksum = 0;
};

// The files of an archive. `where` begins the messages of ValueErrors, which name what is damaged or not supported.
std::vector<ZipEntry> zip_entries(std::span<const std::byte> archive, const std::string& where);
// The bytes of a file, whose size and checksum are verified.
std::vector<std::byte> zip_contents(const ZipEntry& entry, const std::string& where);
// An archive of files, each a name and its bytes; ValueError if it would have 4 GiB or more.
std::string zip_archive(const std::vector<std::pair<std::string, std::string>>& files, const std::string& where);

}  // namespace capibara
