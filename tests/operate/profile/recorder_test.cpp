// Spans, steps and threads in profiles, and rejected calls of start and stop.
#include <capibara/profile.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

#include <capibara/error.h>

namespace capibara {
namespace {

namespace profile = capibara::profile;

const profile::Event& named(const profile::Profile& taken, const std::string& name) {
  const auto it =
      std::find_if(taken.events.begin(), taken.events.end(), [&](const auto& event) { return event.name == name; });
  if (it == taken.events.end()) throw std::out_of_range("no event " + name);
  return *it;
}

bool inside(const profile::Event& inner, const profile::Event& outer) {
  return inner.start >= outer.start && inner.start + inner.duration <= outer.start + outer.duration;
}

TEST(Profile, NestedSpansLieInsideOneAnother) {
  profile::start();
  EXPECT_TRUE(profile::active());
  {
    const profile::Span outer("outer", {{"batch", "8"}});
    profile::Span inner("inner");
    inner.argument("size", "3");
  }
  const profile::Profile taken = profile::stop();
  EXPECT_FALSE(profile::active());
  ASSERT_EQ(taken.events.size(), 2U);
  EXPECT_EQ(taken.events[0].name, "outer");  // outer ones first
  EXPECT_TRUE(inside(taken.events[1], taken.events[0]));
  EXPECT_EQ(taken.events[0].arguments, (std::vector<std::pair<std::string, std::string>>{{"batch", "8"}}));
  EXPECT_EQ(taken.events[1].arguments, (std::vector<std::pair<std::string, std::string>>{{"size", "3"}}));
  EXPECT_GE(taken.duration, taken.events[0].duration);
  EXPECT_FALSE(taken.host.empty());
}

TEST(Profile, StepsNumberWhatHappensInThem) {
  profile::start();
  for (int64_t number : {7, 8}) {
    const profile::Step step(number);
    EXPECT_EQ(profile::current_step(), number);
    const profile::Span span("work " + std::to_string(number));
  }
  EXPECT_EQ(profile::current_step(), -1);
  const profile::Profile taken = profile::stop();
  EXPECT_EQ(named(taken, "work 7").step, 7);
  EXPECT_EQ(named(taken, "work 8").step, 8);
  EXPECT_EQ(std::count_if(taken.events.begin(), taken.events.end(),
                          [](const auto& event) { return event.kind == profile::EventKind::step; }),
            2);
}

TEST(Profile, EveryThreadHasItsOwnLine) {
  profile::start();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      profile::name_thread("worker " + std::to_string(t));
      for (int i = 0; i < 500; ++i) const profile::Span span("s" + std::to_string(t));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const profile::Profile taken = profile::stop();
  EXPECT_EQ(taken.events.size(), 2000U);
  ASSERT_EQ(taken.threads.size(), 4U);
  for (const profile::Thread& thread : taken.threads) {
    const char number = thread.name.back();
    for (const profile::Event& event : taken.events) {
      if (event.thread != thread.id) continue;
      EXPECT_EQ(event.name, std::string("s") + number);
    }
  }
}

TEST(Profile, SpansThatWereOpenBeforeTheStartOrAtTheStopAreLeftOut) {
  {
    const profile::Span before("before");
    profile::start();
    const profile::Span in("in");
  }
  auto open = std::make_unique<profile::Span>("open");
  const profile::Profile first = profile::stop();
  ASSERT_EQ(first.events.size(), 1U);
  EXPECT_EQ(first.events[0].name, "in");
  profile::start();
  open.reset();  // opened in another profile
  EXPECT_TRUE(profile::stop().events.empty());
}

TEST(Profile, ThreadsThatRecordWhileItStopsDoNoHarm) {
  std::atomic<bool> end{false};
  std::thread busy([&] {
    while (!end) const profile::Span span("busy");
  });
  std::size_t seen = 0;
  for (int i = 0; i < 20 || seen == 0; ++i) {  // until the other thread has run
    profile::start();
    std::this_thread::sleep_for(std::chrono::microseconds(500));
    const profile::Profile taken = profile::stop();
    for (const profile::Event& event : taken.events) EXPECT_EQ(event.name, "busy");
    seen += taken.events.size();
  }
  end = true;
  busy.join();
  EXPECT_GT(seen, 0U);
}

TEST(Profile, ExceptionsCloseSpans) {
  profile::start();
  try {
    const profile::Step step(3);
    const profile::Span span("fails");
    throw std::runtime_error("on purpose");
  } catch (const std::runtime_error&) {
  }
  const profile::Profile taken = profile::stop();
  EXPECT_EQ(named(taken, "fails").step, 3);
  EXPECT_EQ(profile::current_step(), -1);
}

TEST(Profile, StartingOrStoppingTwiceIsAnErrorThatSaysSo) {
  profile::start();
  EXPECT_THROW(profile::start(), RuntimeError);
  profile::stop();
  try {
    profile::stop();
    FAIL() << "stopped twice";
  } catch (const RuntimeError& error) {
    EXPECT_EQ(std::string(error.what()), "profile: no profile is being taken; start one first");
  }
}

}  // namespace
}  // namespace capibara
