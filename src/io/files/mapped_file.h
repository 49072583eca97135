// A file mapped into memory for reading.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace capibara {

class MappedFile {
 public:
  // Raises ValueError if there is no readable regular file of this name.
  explicit MappedFile(const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace capibara
