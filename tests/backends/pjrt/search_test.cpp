// Where plugins are searched: in the packages of one interpreter, not of every one on PATH.
#include "backends/pjrt/plugin.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

namespace capibara::pjrt {
namespace {

namespace fs = std::filesystem;

class PluginSearch : public testing::Test {
 protected:
  PluginSearch() : folder_(fs::temp_directory_path() / ("capibara_search_" + std::to_string(getpid()))) {
    for (const char* name :
         {"PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "CAPIBARA_PLUGIN", "TPU_LIBRARY_PATH"}) {
      const char* value = std::getenv(name);
      before_[name] = value ? std::optional<std::string>(value) : std::nullopt;
      unsetenv(name);
    }
  }
  ~PluginSearch() override {
    for (const auto& [name, value] : before_) value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
    fs::remove_all(folder_);
  }

  // An interpreter of this version with a plugin among its packages.
  std::string prefix(const std::string& name, const std::string& version = "python3.11") {
    const fs::path made = folder_ / name;
    fs::create_directories(made / "bin");
    std::ofstream(made / "bin" / version);
    fs::create_symlink(version, made / "bin" / "python3");
    add_plugin(made / "lib" / version / "site-packages", name);
    return made.string();
  }
  void add_plugin(const fs::path& packages, const std::string& name) {
    fs::create_directories(packages / "xla_plugins" / name);
    std::ofstream(packages / "xla_plugins" / name / (name + "_pjrt_cpu.so"));
  }
  static std::string found() {
    std::string names;
    for (const Candidate& candidate : search().found) names += fs::path(candidate.path).filename().string() + " ";
    return names;
  }

  fs::path folder_;
  std::map<std::string, std::optional<std::string>> before_;
};

TEST_F(PluginSearch, LooksAtTheFirstInterpreterOfPathAlone) {
  const std::string first = prefix("first"), second = prefix("second");
  setenv("PATH", (first + "/bin:" + second + "/bin").c_str(), 1);
  EXPECT_EQ(found(), "first_pjrt_cpu.so ");
}

TEST_F(PluginSearch, PrefersTheActiveEnvironment) {
  const std::string active = prefix("active"), other = prefix("other");
  setenv("PATH", (other + "/bin").c_str(), 1);
  setenv("VIRTUAL_ENV", active.c_str(), 1);
  EXPECT_EQ(found(), "active_pjrt_cpu.so ");
}

TEST_F(PluginSearch, LooksAtPackagesOfTheInterpretersOwnVersion) {
  const std::string own = prefix("own");
  add_plugin(fs::path(own) / "lib" / "python3.7" / "site-packages", "older");
  setenv("PATH", (own + "/bin:relative/bin").c_str(), 1);
  EXPECT_EQ(found(), "own_pjrt_cpu.so ");
}

}  // namespace
}  // namespace capibara::pjrt
