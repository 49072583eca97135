// Background programs: their order, their errors, what waiting threads do, and how a wait is interrupted.
#include "core/runtime/background.h"

#include <capibara/device.h>
#include <capibara/error.h>

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/runtime/interrupt.h"

#if defined(__SANITIZE_THREAD__)
#define UNDER_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_THREAD_SANITIZER 1
#endif
#endif
#ifndef UNDER_THREAD_SANITIZER
#define UNDER_THREAD_SANITIZER 0
#endif

// A forked child loses memory held by the parent's threads, which do not continue there: turns LeakSanitizer off in
// children.
static bool in_child = false;
extern "C" int __lsan_is_turned_off() { return in_child; }

namespace capibara {
namespace {

std::shared_ptr<Completion> start(BackgroundWork work) {
  auto completion = std::make_shared<Completion>("test");
  run_in_background(completion, std::move(work));
  return completion;
}

// Work that blocks until it is released or stopped.
class Gate {
 public:
  BackgroundWork work() {
    return [this](const std::atomic<int32_t>& stop) {
      entered_ = true;
      while (!open_ && stop == 0) std::this_thread::yield();
      if (stop != 0) throw RuntimeError("stopped");
    };
  }
  void wait_until_entered() const {
    while (!entered_) std::this_thread::yield();
  }
  void open() { open_ = true; }

 private:
  std::atomic<bool> entered_{false}, open_{false};
};

// Installs a host language's interrupt handler while a test runs.
class Handler {
 public:
  explicit Handler(std::function<void()> handler) { set_interrupt_handler(std::move(handler)); }
  ~Handler() { set_interrupt_handler(nullptr); }
};

TEST(Background, RunsProgramsInOrderAndOneAtATime) {
  std::vector<int> order;
  std::vector<std::shared_ptr<Completion>> all;
  for (int i = 0; i < 200; ++i) {
    all.push_back(start([&order, i](const std::atomic<int32_t>&) { order.push_back(i); }));
  }
  all.back()->wait();
  ASSERT_EQ(order.size(), 200u);
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
    EXPECT_TRUE(all[static_cast<std::size_t>(i)]->done());
  }
}

TEST(Background, IsNotReadyBeforeItRan) {
  Gate gate;
  auto completion = start(gate.work());
  Buffer buffer = Buffer::pending(16, completion);
  EXPECT_FALSE(completion->done());
  EXPECT_FALSE(buffer.is_ready());
  EXPECT_NE(buffer.address(), nullptr);
  gate.open();
  buffer.wait();
  EXPECT_TRUE(buffer.is_ready());
}

TEST(Background, AWaitingThreadRunsWhatNobodyElseRuns) {
  for (int i = 0; i < 200; ++i) {
    int value = 0;
    auto completion = start([&value](const std::atomic<int32_t>&) { value = 7; });
    completion->wait();
    EXPECT_EQ(value, 7);
  }
}

TEST(Background, EveryUseRaisesTheErrorOfTheProgram) {
  auto completion = start([](const std::atomic<int32_t>&) { throw RuntimeError("model: out of memory"); });
  const Buffer buffer = Buffer::pending(16, completion);
  for (int use = 0; use < 2; ++use) {
    try {
      buffer.data();
      FAIL() << "no error";
    } catch (const RuntimeError& error) {
      EXPECT_STREQ(error.what(), "model: out of memory");
    }
  }
  EXPECT_TRUE(buffer.is_ready());
}

TEST(Background, AnErrorReachesThoseWhoReadTheFailedResult) {
  auto first = start([](const std::atomic<int32_t>&) { throw ValueError("first"); });
  auto second = start([first](const std::atomic<int32_t>&) { first->wait(); });
  auto third = start([](const std::atomic<int32_t>&) {});
  EXPECT_THROW(second->wait(), ValueError);
  third->wait();
}

TEST(Background, ManyThreadsStartAndWait) {
  std::atomic<int> sum{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&sum] {
      std::vector<std::shared_ptr<Completion>> own;
      for (int i = 0; i < 100; ++i) {
        own.push_back(start([&sum](const std::atomic<int32_t>&) { ++sum; }));
        if (i % 7 == 0) own.back()->wait();
      }
      for (const auto& completion : own) completion->wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, 800);
}

TEST(Background, AnInterruptedWaitGivesUpWhatItWaitsFor) {
  struct Interruption {};
  Gate gate;
  std::atomic<bool> ask{false};
  const Handler handler([&ask] {
    if (ask) throw Interruption();
  });
  auto running = start(gate.work());
  gate.wait_until_entered();  // by the queue's thread, which must not call the handler
  auto waited = start([](const std::atomic<int32_t>&) {});
  auto behind = start([](const std::atomic<int32_t>&) {});
  ask = true;
  EXPECT_THROW(waited->wait(), Interruption);
  ask = false;
  EXPECT_THROW(running->wait(), RuntimeError);
  EXPECT_THROW(waited->wait(), RuntimeError);
  behind->wait();
}

TEST(Background, AnInterruptionOfAProgramRunByTheWaitingThreadReachesIt) {
  struct Interruption {};
  Gate gate;
  auto busy = start(gate.work());
  gate.wait_until_entered();
  std::atomic<bool> ask{false};
  const Handler handler([&ask] {
    if (ask) throw Interruption();
  });
  auto program = start([&](const std::atomic<int32_t>&) {
    for (;;) poll_interrupt();
  });
  ask = true;
  std::thread opener([&gate] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate.open();
  });
  EXPECT_THROW(program->wait(), Interruption);
  ask = false;
  opener.join();
  EXPECT_THROW(program->wait(), RuntimeError);
}

TEST(Background, AnAbandonedProgramBlocksNobody) {
  struct Interruption {};
  std::atomic<bool> entered{false}, release{false}, left{false};
  auto endless = start([&](const std::atomic<int32_t>&) {  // ignores its stop flag, like a LAPACK call
    entered = true;
    while (!release) std::this_thread::yield();
    left = true;
  });
  while (!entered) std::this_thread::yield();
  auto behind = start([](const std::atomic<int32_t>&) {});
  {
    const Handler handler([] { throw Interruption(); });
    EXPECT_THROW(endless->wait(), Interruption);
  }
  EXPECT_THROW(endless->wait(), RuntimeError);  // at once: it has been abandoned
  behind->wait();
  int value = 0;
  start([&value](const std::atomic<int32_t>&) { value = 5; })->wait();
  EXPECT_EQ(value, 5);
  EXPECT_FALSE(left);
  release = true;
  while (!left) std::this_thread::yield();
  start([&value](const std::atomic<int32_t>&) { value = 6; })->wait();
  EXPECT_EQ(value, 6);
}

TEST(Background, LongProgramsAreLeftToTheQueueWhereTheWaitingThreadMayBeInterrupted) {
  const std::thread::id here = std::this_thread::get_id();
  std::thread::id runner;
  auto work = [&runner](const std::atomic<int32_t>&) { runner = std::this_thread::get_id(); };
  const Handler handler([] {});
  auto completion = std::make_shared<Completion>("test");
  run_in_background(completion, work, 0, 1e9);
  completion->wait();
  EXPECT_NE(runner, here);
}

TEST(Background, AChildOfForkRunsWhatIsQueuedAndSaysWhatIsLost) {
  if (UNDER_THREAD_SANITIZER) GTEST_SKIP() << "ThreadSanitizer refuses threads in a child";
  Gate gate;
  auto running = start(gate.work());
  gate.wait_until_entered();
  int value = 0;
  auto queued = start([&value](const std::atomic<int32_t>&) { value = 3; });
  const pid_t child = fork();
  if (child == 0) {
    bool lost = false;
    try {
      running->wait();
    } catch (const RuntimeError&) {
      lost = true;
    }
    queued->wait();
    auto fresh = start([&value](const std::atomic<int32_t>&) { ++value; });
    fresh->wait();
    _exit(lost && value == 4 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  gate.open();
  queued->wait();
  EXPECT_EQ(value, 3);
}

TEST(Background, TheProcessEndsWhileAProgramRunsThatCannotBeStopped) {
  if (UNDER_THREAD_SANITIZER) GTEST_SKIP() << "ThreadSanitizer refuses threads in a child";
  const pid_t child = fork();
  if (child == 0) {
    static std::atomic<bool> entered{false};
    start([](const std::atomic<int32_t>&) {
      entered = true;
      for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
    });
    while (!entered) std::this_thread::yield();
    std::exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

TEST(Background, TheProcessEndsWhileAProgramRuns) {
  if (UNDER_THREAD_SANITIZER) GTEST_SKIP() << "ThreadSanitizer refuses threads in a child";
  const pid_t child = fork();
  if (child == 0) {
    in_child = true;
    static Gate* gate = new Gate;
    start(gate->work());
    gate->wait_until_entered();
    std::exit(5);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 5);
}

}  // namespace
}  // namespace capibara
