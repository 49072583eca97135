// Compiles described_plugin.c to a shared library.
#pragma once

#include <gtest/gtest.h>

#include <capibara/error.h>

#include "core/array/source_folder.h"

#include <cstdlib>
#include <filesystem>
#include <string>

namespace capibara::pjrt {

// The path of the compiled library; empty if there is no C compiler for this machine.
inline std::string described_plugin() {
  const std::string path = testing::TempDir() + "/described_plugin.so";
  const std::string source = folder_of(__FILE__) + "described_plugin.c";
#ifdef __x86_64__
  const std::string machine = "x86_64";
#else
  const std::string machine = "aarch64";
#endif
  // Under ./run emulate cc is the host's compiler, outside the emulator.
  const std::string command =
      concat("cc -dumpmachine | grep -q ", machine, " && cc -shared -fPIC -o ", path, " ", source, " > /dev/null 2>&1");
  return std::filesystem::exists(source) && std::system(command.c_str()) == 0 ? path : "";
}

}  // namespace capibara::pjrt
