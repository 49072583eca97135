// Named arrays in safetensors files, the format of published weights.
#pragma once

#include <capibara/array.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace capibara {

class MappedFile;

// A file that is mapped and validated when opened; each array is copied when read.
class SafetensorsFile {
 public:
  // ValueError that names the file and tensor if the header, a dtype, a shape or an offset is wrong.
  explicit SafetensorsFile(const std::string& path);

  std::vector<std::string> names() const;
  bool has(const std::string& name) const { return entries_.count(name) != 0; }
  // The type as stored in the file; ValueError with the nearest name if there is none.
  const ArrayType& type(const std::string& name) const;
  // The array; 64-bit types are narrowed unless x64 is on.
  Array read(const std::string& name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  struct Entry {
    ArrayType type;
    std::size_t begin = 0;  // byte in the file
  };
  const Entry& entry(const std::string& name) const;

  std::string path_;
  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

// All arrays of a file.
std::map<std::string, Array> load_safetensors(const std::string& path);
// Writes arrays and texts; the file appears under its name only once it is complete.
void save_safetensors(const std::string& path, const std::map<std::string, Array>& arrays,
                      const std::map<std::string, std::string>& metadata = {});

}  // namespace capibara
