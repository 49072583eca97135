// Where the build has unpacked the recordings of this folder.
#pragma once

#include <filesystem>
#include <string>

namespace capibara::oracle {

// The path of a recording, a file or a folder: test programs stand beside the folder that CMake unpacks into.
inline std::string recording(const std::string& name) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "data" / name).string();
}

}  // namespace capibara::oracle
