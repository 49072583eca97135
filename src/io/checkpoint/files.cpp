// System calls behind the files of checkpoints.
#include "io/checkpoint/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include <capibara/checkpoint.h>

#include "core/runtime/counters.h"
#include "io/checkpoint/objects.h"

namespace capibara {

void throw_file_error(const std::string& what, const std::string& path) {
  const int reason = errno;
  const char* hint = "";
  if (reason == ENOSPC || reason == EDQUOT)
    hint = "; free space, or save fewer steps (max_to_keep; capibara train --keep)";
  if (reason == EACCES || reason == EROFS || reason == EPERM) hint = "; name a folder that this user may write";
  if (reason == ENAMETOOLONG) hint = "; the path of an array is too long for a file name";
  throw CheckpointError(concat("checkpoint: ", what, " ", path, " failed: ", std::strerror(reason), hint));
}

namespace {

Descriptor open_folder(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

void sync_path(const std::string& path, int flags) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags));
  if (!file || ::fsync(file.number()) != 0) throw_file_error("syncing", path);
}

}  // namespace

void sync_folder(const std::string& path) { sync_path(path, O_DIRECTORY); }

void make_folder_and_parents(const std::string& path) {
  if (is_object_path(path)) {
    names_in(path);  // raises if the bucket does not exist
    return;
  }
  if (is_folder(path)) return;
  const std::size_t slash = path.find_last_of('/');
  if (slash != std::string::npos && slash > 0) make_folder_and_parents(path.substr(0, slash));
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) throw_file_error("making the folder", path);
  if (!is_folder(path)) throw CheckpointError(concat("checkpoint: ", path, " is not a folder"));
  sync_folder(slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash));
}

// ---- a folder being written ---------------------------------------------------------------------------------------

NewFolder::NewFolder(std::string path) : path_(std::move(path)) {
  if (::mkdir(path_.c_str(), 0777) != 0) throw_file_error("making the folder", path_);
  folder_ = open_folder(path_);
  if (!folder_) throw_file_error("opening the folder", path_);
  ::flock(folder_.number(), LOCK_EX | LOCK_NB);  // file systems without locks: leftovers stay
  folders_.push_back(path_);
}

void NewFolder::make_folders(const std::string& relative) {
  for (std::size_t slash = relative.find('/');; slash = relative.find('/', slash + 1)) {
    const std::string path = path_ + "/" + relative.substr(0, slash);
    if (::mkdir(path.c_str(), 0777) == 0)
      folders_.push_back(path);
    else if (errno != EEXIST)
      throw_file_error("making the folder", path);
    if (slash == std::string::npos) return;
  }
}

void NewFolder::write_pieces(const std::string& relative, std::vector<iovec> pieces) {
  const std::string path = path_ + "/" + relative;
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file) throw_file_error("writing", path);
  files_.push_back(path);
  std::size_t first = 0;
  while (first < pieces.size()) {
    if (pieces[first].iov_len == 0) {
      ++first;
      continue;
    }
    const auto count = static_cast<int>(std::min<std::size_t>(pieces.size() - first, IOV_MAX));
    const ssize_t put = ::writev(file.number(), pieces.data() + first, count);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw_file_error("writing", path);
    for (auto left = static_cast<std::size_t>(put); left > 0;) {
      const std::size_t step = std::min(left, pieces[first].iov_len);
      pieces[first].iov_base = static_cast<char*>(pieces[first].iov_base) + step;
      pieces[first].iov_len -= step;
      left -= step;
      first += pieces[first].iov_len == 0;
    }
  }
#if defined(SYNC_FILE_RANGE_WRITE)
  ::sync_file_range(file.number(), 0, 0, SYNC_FILE_RANGE_WRITE);  // starts writing to disk while the next file is made
#endif
}

bool NewFolder::link_file(const std::string& from, const std::string& relative, const std::vector<iovec>&) {
  const std::string path = path_ + "/" + relative;
  if (::link(from.c_str(), path.c_str()) == 0) return true;
  if (errno == ENOSPC || errno == EDQUOT) throw_file_error("linking", path);
  return false;
}

void NewFolder::sync() const {
  for (const std::string& file : files_) sync_path(file, 0);
  for (auto folder = folders_.rbegin(); folder != folders_.rend(); ++folder) sync_folder(*folder);
}

// ---- folders ------------------------------------------------------------------------------------------------------

bool is_folder(const std::string& path) {
  if (is_object_path(path)) return !names_in(path).empty();
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool is_file(const std::string& path) {
  if (is_object_path(path)) return Blob::open_if_there(path).has_value();
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

std::vector<std::string> names_in(const std::string& folder) {
  if (is_object_path(folder)) return object_names_in(folder);
  std::vector<std::string> names;
  DIR* listing = ::opendir(folder.c_str());
  if (!listing) return names;
  while (const dirent* entry = ::readdir(listing)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(listing);
  std::sort(names.begin(), names.end());
  return names;
}

void remove_tree(const std::string& path) {
  if (is_object_path(path)) return remove_object_tree(path);
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return;
  if (!S_ISDIR(status.st_mode)) {
    ::unlink(path.c_str());
    return;
  }
  for (const std::string& name : names_in(path)) remove_tree(path + "/" + name);
  ::rmdir(path.c_str());
}

bool is_abandoned(const std::string& folder) {
  const Descriptor opened = open_folder(folder);
  return opened && ::flock(opened.number(), LOCK_EX | LOCK_NB) == 0;
}

// ---- reading ------------------------------------------------------------------------------------------------------

std::optional<Blob> Blob::open_if_there(const std::string& path) {
  if (!is_object_path(path)) return is_file(path) ? std::optional(open(path)) : std::nullopt;
  std::optional<ObjectInfo> info = object_at(path);
  if (!info) return std::nullopt;
  Blob blob;
  blob.name_ = path;
  blob.size_ = info->size;
  blob.object_ = std::make_shared<const ObjectInfo>(*std::move(info));
  return blob;
}

Blob Blob::open(const std::string& path) {
  if (is_object_path(path)) {
    const std::optional<Blob> object = open_if_there(path);
    if (!object) throw CheckpointError(concat("checkpoint: there is no object ", path));
    return *object;
  }
  Blob blob;
  blob.name_ = path;
  auto file = std::make_shared<Descriptor>(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!*file || ::fstat(file->number(), &status) != 0) throw_file_error("opening", path);
  if (!S_ISREG(status.st_mode)) throw CheckpointError(concat("checkpoint: ", path, " is not a file"));
  blob.size_ = static_cast<uint64_t>(status.st_size);
  blob.file_ = std::move(file);
  return blob;
}

Blob Blob::of_bytes(std::string bytes, std::string name) {
  Blob blob;
  blob.size_ = bytes.size();
  blob.bytes_ = std::make_shared<const std::string>(std::move(bytes));
  blob.name_ = std::move(name);
  return blob;
}

Blob Blob::part(uint64_t offset, uint64_t size) const {
  if (offset > size_ || size > size_ - offset) {
    throw CorruptCheckpointError(
        concat("checkpoint: ", name_, ": expected ", size, " bytes at ", offset, ", but it has ", size_, " bytes"));
  }
  Blob blob = *this;
  blob.offset_ += offset;
  blob.size_ = size;
  return blob;
}

void Blob::read(uint64_t offset, std::span<std::byte> to) const {
  if (offset > size_ || to.size() > size_ - offset) {
    throw CorruptCheckpointError(concat("checkpoint: ", name_, ": expected ", to.size(), " bytes at ", offset,
                                        ", but it has ", size_, " bytes"));
  }
  if (bytes_) {
    if (!to.empty()) std::memcpy(to.data(), bytes_->data() + offset_ + offset, to.size());
    return;
  }
  Counters::add(process_counters.checkpoint_read_bytes, to.size());
  if (object_) return read_object_part(name_, *object_, offset_ + offset, to);
  while (!to.empty()) {
    const ssize_t got = ::pread(file_->number(), to.data(), to.size(), static_cast<off_t>(offset_ + offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_file_error("reading", name_);
    if (got == 0) throw CorruptCheckpointError(concat("checkpoint: ", name_, " became shorter while it was read"));
    to = to.subspan(static_cast<std::size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
}

void Blob::prefetch() const {
  if (file_)
    ::posix_fadvise(file_->number(), static_cast<off_t>(offset_), static_cast<off_t>(size_), POSIX_FADV_WILLNEED);
}

std::string Blob::read_all(uint64_t max_bytes) const {
  if (size_ > max_bytes)
    throw CorruptCheckpointError(concat("checkpoint: ", name_, " has ", size_, " bytes, expected at most ", max_bytes));
  // The system reports a file's true length; an object's is only the store's claim, so memory grows as bytes arrive.
  const std::size_t piece = object_ ? std::size_t{1} << 24 : size_;
  std::string text;
  while (text.size() < size_) {
    const std::size_t before = text.size();
    text.resize(before + std::min<uint64_t>(piece, size_ - before));
    read(before, std::as_writable_bytes(std::span(text)).subspan(before));
  }
  return text;
}

}  // namespace capibara
