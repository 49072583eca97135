// The folder of a test's own files.
#pragma once

#include <string>

namespace capibara {

// The folder of a test's __FILE__. Compiler caches may make that relative to the build folder; tests run in the source
// tree.
inline std::string folder_of(const std::string& file) {
  const std::string folder = file.substr(0, file.find_last_of('/') + 1);
  return folder.starts_with('/') ? folder : folder.substr(folder.rfind("tests/"));
}

}  // namespace capibara
