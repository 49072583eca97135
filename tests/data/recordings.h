// The folder into which the build has unpacked the recordings.
#pragma once

#include <filesystem>
#include <string>

namespace capibara::oracle {

// The path of a recording, a file or a folder: CMake unpacks them into a folder next to the test programs.
inline std::string recording(const std::string& name) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "data" / name).string();
}

}  // namespace capibara::oracle
