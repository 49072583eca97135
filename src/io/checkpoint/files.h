// Files and folders of checkpoints: written so that they survive a crash, read at any offset. Paths that begin with
// gs:// are in an object store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/uio.h>

#include "core/runtime/private_folder.h"
#include "io/files/object_store.h"

namespace capibara {

// Raises CheckpointError with the failed action, the path, the reason from errno, and a hint if there is one.
[[noreturn]] void throw_file_error(const std::string& what, const std::string& path);

// The destination of a step.
class StepFolder {
 public:
  virtual ~StepFolder() = default;
  virtual void make_folders(const std::string& relative) = 0;  // all of them: "params/a"
  // A file made of pieces, written without a copy.
  virtual void write_pieces(const std::string& relative, std::vector<iovec> pieces) = 0;
  // The bytes of another step's file, known to be equal, under a second name or copied in place; false if that
  // is not possible.
  virtual bool link_file(const std::string& from, const std::string& relative, const std::vector<iovec>& pieces) = 0;
  virtual void sync() const = 0;  // every file, then every folder

  void write_file(const std::string& relative, std::string_view text) {
    write_pieces(relative, {iovec{const_cast<char*>(text.data()), text.size()}});
  }
};

// A folder that is being written: it remembers what must be synced before it may get its name.
class NewFolder : public StepFolder {
 public:
  // Creates the folder and locks it: any process that finds it unlocked may remove it.
  explicit NewFolder(std::string path);

  void make_folders(const std::string& relative) override;
  void write_pieces(const std::string& relative, std::vector<iovec> pieces) override;
  bool link_file(const std::string& from, const std::string& relative, const std::vector<iovec>& pieces) override;
  void sync() const override;

 private:
  std::string path_;
  Descriptor folder_;
  std::vector<std::string> files_, folders_;
};

// Objects below a name: each exists once its upload has ended.
class ObjectFolder : public StepFolder {
 public:
  // Existing objects there are removed.
  explicit ObjectFolder(std::string path);

  void make_folders(const std::string&) override {}
  void write_pieces(const std::string& relative, std::vector<iovec> pieces) override;
  bool link_file(const std::string& from, const std::string& relative, const std::vector<iovec>& pieces) override;
  void sync() const override {}

 private:
  std::string path_;
};

// Steps in an object store are committed by a last object, as Orbax does it.
inline constexpr char commit_marker[] = "commit_success.txt";
void write_commit_marker(const std::string& step_folder);
void remove_object_tree(const std::string& folder);  // the marker first

void sync_folder(const std::string& path);
void make_folder_and_parents(const std::string& path);
// Removes a folder and its contents; links in it are not followed. What cannot be removed stays.
void remove_tree(const std::string& path);
// True if no one holds the lock of NewFolder.
bool is_abandoned(const std::string& folder);
std::vector<std::string> names_in(const std::string& folder);  // sorted; empty if it cannot be read
bool is_folder(const std::string& path);
bool is_file(const std::string& path);

// Bytes that are read at any offset: a file or an object, a part of one, or bytes in memory.
class Blob {
 public:
  static Blob open(const std::string& path);  // raises if it cannot be read
  static std::optional<Blob> open_if_there(const std::string& path);
  static Blob of_bytes(std::string bytes, std::string name);
  Blob part(uint64_t offset, uint64_t size) const;

  uint64_t size() const { return size_; }
  const std::string& name() const { return name_; }           // of the file
  void read(uint64_t offset, std::span<std::byte> to) const;  // raises if it ends before
  std::string read_all(uint64_t max_bytes) const;
  bool is_remote() const { return object_ != nullptr; }
  void prefetch() const;  // hints to the system that all of it will be read

 private:
  std::shared_ptr<const Descriptor> file_;
  std::shared_ptr<const std::string> bytes_;
  std::shared_ptr<const ObjectInfo> object_;
  uint64_t offset_ = 0, size_ = 0;
  std::string name_;
};

}  // namespace capibara
