// Interruptible work: where it runs, what it raises, and the state after an interruption.
#include "core/runtime/attend.h"

#include <capibara/error.h>

#include <gtest/gtest.h>

#include <thread>

#include "core/runtime/interrupt.h"

namespace capibara {
namespace {

// Installs a host language's interrupt handler while a test runs.
class Handler {
 public:
  explicit Handler(std::function<void()> handler) { set_interrupt_handler(std::move(handler)); }
  ~Handler() { set_interrupt_handler(nullptr); }
};

TEST(Attend, LongWorkIsAttendedWhereSomethingInterrupts) {
  EXPECT_FALSE(should_attend(1e9));
  const Handler handler([] {});
  EXPECT_TRUE(should_attend(1e9));
  EXPECT_FALSE(should_attend(1e3));
}

TEST(Attend, WorkRunsOnAThreadThatDoesNotAsk) {
  std::atomic<int> questions{0};
  const std::thread::id here = std::this_thread::get_id();
  const Handler handler([&] {
    EXPECT_EQ(std::this_thread::get_id(), here);
    ++questions;
  });
  for (int i = 0; i < 20; ++i) {
    bool own = false;
    run_attended("test", [&](const std::atomic<int32_t>&) {
      own = std::this_thread::get_id() != here && !may_be_interrupted();
      poll_interrupt();
    });
    EXPECT_TRUE(own);
  }
}

TEST(Attend, RaisesWhatTheWorkThrows) {
  struct Foreign {};
  EXPECT_THROW(run_attended("test", [](const std::atomic<int32_t>&) { throw ValueError("wrong"); }), ValueError);
  EXPECT_THROW(run_attended("test", [](const std::atomic<int32_t>&) { throw Foreign(); }), Foreign);
}

TEST(Attend, AnInterruptionStopsWhatPolls) {
  struct Interruption {};
  std::atomic<bool> entered{false};
  auto left = std::make_shared<std::atomic<bool>>(false);
  const Handler handler([&] {
    if (entered) throw Interruption();
  });
  EXPECT_THROW(run_attended("test",
                            [&entered, left](const std::atomic<int32_t>&) {
                              entered = true;
                              try {
                                for (;;) poll_stop();
                              } catch (...) {
                                *left = true;
                                throw;
                              }
                            }),
               Interruption);
  while (!*left) std::this_thread::yield();
}

TEST(Attend, WhatCannotBeStoppedBlocksNobody) {
  struct Interruption {};
  auto release = std::make_shared<std::atomic<bool>>(false), left = std::make_shared<std::atomic<bool>>(false);
  {
    const Handler handler([] { throw Interruption(); });
    EXPECT_THROW(run_attended("test",
                              [release, left](const std::atomic<int32_t>&) {
                                while (!*release) std::this_thread::yield();
                                *left = true;
                              }),
                 Interruption);
  }
  int value = 0;
  run_attended("test", [&value](const std::atomic<int32_t>&) { value = 3; });
  EXPECT_EQ(value, 3);
  EXPECT_FALSE(*left);
  *release = true;
  while (!*left) std::this_thread::yield();
}

}  // namespace
}  // namespace capibara
