// Folders and files that belong to this user alone: what is read from them is trusted.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace capibara {

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  int release() && { return std::exchange(number_, -1); }  // the caller closes it

 private:
  int number_;
};

// The user's cache folder: XDG_CACHE_HOME/capibara or HOME/.cache/capibara. Empty if neither is set, or if this
// program runs with another user's rights.
std::string user_cache_folder();

// The folder's normalised absolute name, without a slash at its end (behind which a link would be followed).
std::string folder_name(const std::string& folder);

// Opens a folder of mode 0700 that belongs to this user and is no link, creating it if it does not exist. The text
// says why a folder is refused.
std::pair<Descriptor, std::string> open_private_folder(const std::string& name);

bool read_exactly(int file, void* to, std::size_t size);
bool write_whole(int file, std::string_view text);
// Random bytes from the system as hexadecimal digits. Raises RuntimeError.
std::string random_digits(std::size_t bytes);

}  // namespace capibara
