// Checks of owners and modes by descriptor, so that nothing can be swapped between check and use.
#include "core/runtime/private_folder.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <capibara/error.h>

namespace capibara {

namespace fs = std::filesystem;

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

std::string user_cache_folder() {
  if (const char* cache = secure_getenv("XDG_CACHE_HOME"); cache && *cache)
    return folder_name(std::string(cache) + "/capibara");
  if (const char* home = secure_getenv("HOME"); home && *home)
    return folder_name(std::string(home) + "/.cache/capibara");
  return "";
}

std::string folder_name(const std::string& folder) {
  std::error_code error;
  fs::path path = fs::absolute(folder, error).lexically_normal();
  if (error) return folder;
  if (!path.has_filename() && path.has_relative_path()) path = path.parent_path();
  return path.string();
}

std::pair<Descriptor, std::string> open_private_folder(const std::string& name) {
  std::error_code ignored;
  fs::create_directories(fs::path(name).parent_path(), ignored);
  ::mkdir(name.c_str(), 0700);
  Descriptor opened(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!opened) {
    const int error = errno;
    const bool link = ::lstat(name.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
    return {Descriptor(), link ? "it is a link; name the folder itself" : std::strerror(error)};
  }
  if (::fstat(opened.number(), &status) != 0) return {Descriptor(), std::strerror(errno)};
  if (status.st_uid != geteuid()) {
    return {Descriptor(), concat("it belongs to user ", status.st_uid, ", this process to user ", geteuid(),
                                 "; name a folder of its own")};
  }
  // Ours by its name, from before its mode was checked: others could read it, but not write.
  const bool readable_default =
      (status.st_mode & 077) != 0 && (status.st_mode & 022) == 0 && name == user_cache_folder();
  if (readable_default && ::fchmod(opened.number(), 0700) == 0) return {std::move(opened), ""};
  if ((status.st_mode & 0777) != 0700) {
    char mode[8];
    std::snprintf(mode, sizeof mode, "%04o", status.st_mode & 0777);
    return {Descriptor(),
            concat("its mode is ", mode, ", expected 0700; 'chmod 700' it, or name a folder that does not exist yet")};
  }
  return {std::move(opened), ""};
}

bool read_exactly(int file, void* to, std::size_t size) {
  auto* next = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t got = ::read(file, next, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    next += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

bool write_whole(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(file, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

std::string random_digits(std::size_t bytes) {
  std::string digits;
  while (digits.size() < 2 * bytes) {
    unsigned char byte = 0;
    const ssize_t got = ::getrandom(&byte, 1, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got != 1) throw RuntimeError(concat("the system gives no random bytes: ", std::strerror(errno)));
    char text[3];
    std::snprintf(text, sizeof text, "%02x", byte);
    digits += text;
  }
  return digits;
}

}  // namespace capibara
