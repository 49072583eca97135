// The plugin for the tests of this room: XLA on the host's processor, or the one of CAPIBARA_TEST_PLATFORM (cuda).
// Tests are skipped if there is none.
#pragma once

#include "backends/backend.h"
#include "backends/pjrt/backend.h"

#include <capibara/capibara.h>

#include <gtest/gtest.h>

#include <cstdlib>

namespace capibara::pjrt {

inline std::string plugin_platform() {
  const char* named = std::getenv("CAPIBARA_TEST_PLATFORM");
  return named && *named ? named : "xla_cpu";
}

inline bool has_plugin() {
  static const bool found = [] {
    for (const Candidate& candidate : search().found) {
      if (candidate.platform == plugin_platform()) return true;
    }
    return false;
  }();
  return found;
}

// Runs the test's programs on the plugin.
class OnPlugin : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_plugin()) GTEST_SKIP() << "no plugin for " << plugin_platform() << " is installed";
    Config settings = config();
    settings.platform = plugin_platform();
    settings.num_cpu_devices = 4;  // the count set by the first test applies to all
    scope_.emplace(settings);
  }
  void TearDown() override { scope_.reset(); }

  // The results of the reference backend for the same program.
  static Arrays on_reference(const Program& program, const Arrays& inputs) {
    Config settings = config();
    settings.platform = "reference";
    ConfigScope scope(settings);
    return default_backend().compile(program)->execute(inputs, {});
  }

 private:
  std::optional<ConfigScope> scope_;
};

}  // namespace capibara::pjrt
