// The plugin that the tests of this room run on: XLA on the host's processor. Tests are skipped where there is none.
#pragma once

#include "backends/backend.h"
#include "backends/pjrt/backend.h"

#include <capibara/capibara.h>

#include <gtest/gtest.h>

namespace capibara::pjrt {

inline bool has_plugin() {
  static const bool found = [] {
    for (const Candidate& candidate : search().found) {
      if (candidate.platform == "xla_cpu") return true;
    }
    return false;
  }();
  return found;
}

// Programs of the test run on the plugin.
class OnPlugin : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_plugin()) GTEST_SKIP() << "no XLA:CPU plugin is installed (xla-cpu-pjrt)";
    Config settings = config();
    settings.platform = "xla_cpu";
    settings.num_cpu_devices = 4;  // the first test's count holds for all
    scope_.emplace(settings);
  }
  void TearDown() override { scope_.reset(); }

 private:
  std::optional<ConfigScope> scope_;
};

}  // namespace capibara::pjrt
