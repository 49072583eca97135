// Files mapped into memory, by mmap.
#include "io/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <capibara/error.h>

namespace capibara {

MappedFile::MappedFile(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw ValueError(concat(path, " cannot be opened: ", std::strerror(errno)));
  struct stat info = {};
  if (::fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(file);
    throw ValueError(concat(path, " is not a regular file"));
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  void* start = size == 0 ? nullptr : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  const int why = errno;
  ::close(file);
  if (start == MAP_FAILED) throw ValueError(concat(path, " cannot be mapped: ", std::strerror(why)));
  bytes_ = {static_cast<const std::byte*>(start), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace capibara
