// A plugin's profiler takes part in ours: its planes appear next to our spans, its refusal with its message.
#include <gtest/gtest.h>

#include <capibara/profile.h>
#include <capibara/profile_formats.h>

#include "backends/pjrt/described_plugin.h"
#include "backends/pjrt/plugin_profiler.h"
#include "operate/reports/xspace.h"

namespace capibara::pjrt {

namespace {

profile::Profile profile_of_a_span() {
  profile::start();
  { const profile::Span span("ours"); }
  return profile::stop();
}

TEST(PluginProfiler, GivesItsPlanesBesideOurs) {
  const std::string path = described_plugin();
  if (path.empty()) GTEST_SKIP() << "no C compiler for this machine";
  add_profiler(std::make_shared<const Plugin>("cuda", path));
  for (int time = 0; time < 2; ++time) {  // it is created again each time
    const profile::Profile taken = profile_of_a_span();
    EXPECT_TRUE(taken.refusals.empty());
    std::vector<std::string> names;
    const profile::XSpace space = profile::read_xspace(profile::to_xspace(taken));
    for (const profile::XPlane& plane : space.planes) names.push_back(plane.name);
    EXPECT_EQ(names, (std::vector<std::string>{"/host:CPU", "Task Environment", "/device:GPU:0"}));
  }
  // XLA's plugins lend their bytes with a zero after them, and record CUPTI's messages.
  setenv("DESCRIBED_PROFILER_LENDS", "1", 1);
  const profile::Profile lent = profile_of_a_span();
  unsetenv("DESCRIBED_PROFILER_LENDS");
  ASSERT_EQ(lent.device_spaces.size(), 1u);
  const profile::XSpace written = profile::read_xspace(profile::to_xspace(lent));
  ASSERT_EQ(written.planes.size(), 3u);
  EXPECT_EQ(written.planes[2].name, "/device:GPU:0");
  EXPECT_EQ(written.errors, std::vector<std::string>{"no privileges"});
  ASSERT_EQ(lent.refusals.size(), 1u);
  EXPECT_NE(lent.refusals[0].find("no privileges"), std::string::npos) << lent.refusals[0];
  setenv("DESCRIBED_PROFILER_REFUSES", "1", 1);
  const profile::Profile refused = profile_of_a_span();
  unsetenv("DESCRIBED_PROFILER_REFUSES");
  ASSERT_EQ(refused.refusals.size(), 1u);
  EXPECT_NE(refused.refusals[0].find("told not to trace"), std::string::npos) << refused.refusals[0];
  EXPECT_TRUE(refused.device_spaces.empty());
  const profile::XSpace space = profile::read_xspace(profile::to_xspace(refused));
  EXPECT_EQ(space.warnings, refused.refusals);
  EXPECT_TRUE(profile_of_a_span().refusals.empty());
}

}  // namespace

}  // namespace capibara::pjrt
