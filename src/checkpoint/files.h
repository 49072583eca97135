// Files and folders of checkpoints: written so that they survive a crash, read at any place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/uio.h>

#include "runtime/private_folder.h"

namespace capibara {

// Raises CheckpointError: what could not be done to which path, why by errno, and a hint where there is one.
[[noreturn]] void throw_file_error(const std::string& what, const std::string& path);

// A folder that is being written: it remembers what must be synced before it may get its name.
class NewFolder {
 public:
  // Makes the folder and locks it: whoever finds it unlocked may remove it.
  explicit NewFolder(std::string path);

  const std::string& path() const { return path_; }
  void make_folders(const std::string& relative);  // all of them: "params/a"
  void write_file(const std::string& relative, std::string_view text);
  // A file made of pieces that are written as they are.
  void write_pieces(const std::string& relative, std::vector<iovec> pieces);
  // A second name for a file elsewhere; false where the file system has none.
  bool link_file(const std::string& from, const std::string& relative);
  void sync() const;  // every file, then every folder

 private:
  std::string path_;
  Descriptor folder_;
  std::vector<std::string> files_, folders_;
};

void sync_folder(const std::string& path);
void make_folder_and_parents(const std::string& path);
// Removes a folder and all in it; links in it are not followed. What cannot be removed stays.
void remove_tree(const std::string& path);
// Whether nobody holds the lock of NewFolder.
bool is_abandoned(const std::string& folder);
std::vector<std::string> names_in(const std::string& folder);  // sorted; none where it cannot be read
bool is_folder(const std::string& path);
bool is_file(const std::string& path);

// Bytes that are read at any place: a file, a part of a file, or bytes in memory.
class Blob {
 public:
  static Blob open(const std::string& path);  // raises where it cannot be read
  static Blob of_bytes(std::string bytes, std::string name);
  Blob part(uint64_t offset, uint64_t size) const;

  uint64_t size() const { return size_; }
  const std::string& name() const { return name_; }           // of the file
  void read(uint64_t offset, std::span<std::byte> to) const;  // raises where it ends before
  std::string read_all(uint64_t max_bytes) const;

 private:
  std::shared_ptr<const Descriptor> file_;
  std::shared_ptr<const std::string> bytes_;
  uint64_t offset_ = 0, size_ = 0;
  std::string name_;
};

}  // namespace capibara
