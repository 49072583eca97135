// The thread pool: every iteration runs once, for calls from any thread, nested calls, and after fork().
#include "core/runtime/thread_pool.h"

#include <capibara/error.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "core/runtime/interrupt.h"
#include "lax/math/denormals.h"

namespace capibara {
namespace {

// The number of times each iteration ran.
std::vector<int> visits(int64_t extent, int64_t grain) {
  std::vector<std::atomic<int>> counts(static_cast<std::size_t>(extent));
  parallel_for(extent, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++counts[static_cast<std::size_t>(i)];
    return 0;
  });
  return std::vector<int>(counts.begin(), counts.end());
}

class ThreadPool : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_thread_count(GetParam()); }
  void TearDown() override { set_thread_count(2); }
};
INSTANTIATE_TEST_SUITE_P(Threads, ThreadPool, ::testing::Values(1, 2, 4));

TEST_P(ThreadPool, RunsEveryIterationOnce) {
  for (int64_t extent : {0, 1, 2, 3, 7, 64, 1000, 10007}) {
    for (int64_t grain : {0, 1, 3, 64, 20000}) {
      EXPECT_EQ(visits(extent, grain), std::vector<int>(static_cast<std::size_t>(extent), 1))
          << extent << " by " << grain;
    }
  }
}

TEST_P(ThreadPool, IsUsableThousandsOfTimes) {
  std::atomic<int64_t> sum = 0;
  for (int round = 0; round < 5000; ++round) {
    parallel_for(4, 1, [&](int64_t begin, int64_t) {
      sum += begin;
      return 0;
    });
  }
  EXPECT_EQ(sum, 5000 * 6);
}

TEST_P(ThreadPool, NestedLoopsRunOnTheirThread) {
  std::atomic<int> iterations = 0, strangers = 0;
  parallel_for(16, 1, [&](int64_t, int64_t) {
    EXPECT_TRUE(in_parallel_region() || GetParam() == 1);
    auto self = std::this_thread::get_id();
    return parallel_for(8, 1, [&](int64_t, int64_t) {
      ++iterations;
      if (GetParam() > 1 && std::this_thread::get_id() != self) ++strangers;
      return 0;
    });
  });
  EXPECT_EQ(iterations, 128);
  EXPECT_EQ(strangers, 0);
  EXPECT_FALSE(in_parallel_region());
}

TEST_P(ThreadPool, ServesManyCallersAtOnce) {
  std::vector<std::thread> callers;
  std::atomic<int64_t> sum = 0;
  for (int c = 0; c < 6; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 300; ++round) {
        parallel_for(32, 2, [&](int64_t begin, int64_t end) {
          sum += end - begin;
          return 0;
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 6 * 300 * 32);
}

TEST_P(ThreadPool, ReturnsTheGreatestStatusAndStops) {
  std::atomic<int> begun = 0;
  int32_t status = parallel_for(100000, 1, [&](int64_t begin, int64_t) {
    ++begun;
    return begin == 5 ? 3 : 0;
  });
  EXPECT_EQ(status, 3);
  EXPECT_LT(begun, 100000);
  EXPECT_EQ(parallel_for(10, 1, [](int64_t, int64_t) { return 0; }), 0);
}

TEST_P(ThreadPool, ThrowsTheBodysErrorInTheCaller) {
  for (int round = 0; round < 20; ++round) {
    EXPECT_THROW(parallel_for(64, 1,
                              [](int64_t begin, int64_t) -> int32_t {
                                if (begin == 40) throw ValueError("iteration 40");
                                return 0;
                              }),
                 ValueError);
  }
  EXPECT_EQ(visits(100, 7), std::vector<int>(100, 1));
}

TEST_P(ThreadPool, WorkersComputeInTheCallersFloatMode) {
  const float tiny = std::numeric_limits<float>::min();
  for (bool flush : {true, false}) {
    std::optional<math::FlushDenormals> scope;
    if (flush) scope.emplace();
    std::atomic<int> zeros = 0;
    parallel_for(64, 1, [&](int64_t, int64_t) {
      volatile float half = tiny;
      half = half * 0.5f;
      zeros += half == 0.0f ? 1 : 0;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      return 0;
    });
    EXPECT_EQ(zeros, flush ? 64 : 0);
  }
}

TEST_P(ThreadPool, AChildOfForkMakesItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer refuses threads in a child of fork";
#endif
  visits(64, 1);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    bool good = visits(1000, 3) == std::vector<int>(1000, 1) && thread_count() >= 1;
    _exit(good ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(visits(1000, 3), std::vector<int>(1000, 1));
}

TEST_P(ThreadPool, AChildForkedInsideARegionRunsAlone) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer refuses threads in a child of fork";
#endif
  std::atomic<int> good = 0;
  parallel_for(4, 1, [&](int64_t, int64_t) {
    pid_t child = fork();
    if (child == 0) _exit(visits(100, 3) == std::vector<int>(100, 1) ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    good += WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 1 : 0;
    return 0;
  });
  EXPECT_EQ(good, 4);
}

TEST(ThreadPool, SmallWorkStaysOnTheCaller) {
  set_thread_count(2);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the workers sleep
  std::set<std::thread::id> threads;
  int calls = 0;
  parallel_for_cost(1000, 10.0, [&](int64_t begin, int64_t end) {  // 10 microseconds
    threads.insert(std::this_thread::get_id());
    calls += begin == 0 && end == 1000;
    return 0;
  });
  EXPECT_EQ(threads, std::set<std::thread::id>{std::this_thread::get_id()});
  EXPECT_EQ(calls, 1);
}

TEST(ThreadPool, LargeWorkIsSharedOut) {
  set_thread_count(2);
  std::atomic<int> chunks = 0;
  std::atomic<int64_t> iterations = 0;
  parallel_for_cost(1000, 1000.0, [&](int64_t begin, int64_t end) {
    ++chunks;
    iterations += end - begin;
    return 0;
  });
  EXPECT_EQ(iterations, 1000);
  EXPECT_GE(chunks, 8);
}

TEST_P(ThreadPool, AStopFlagEndsARegionOnAllThreads) {
  std::atomic<int32_t> stop{0};
  std::atomic<int> chunks{0};
  const StopFlag flag(&stop, false);
  EXPECT_THROW(parallel_for(1000000, 1,
                            [&](int64_t, int64_t) {
                              if (++chunks == 10) stop = 1;
                              return 0;
                            }),
               RuntimeError);
  EXPECT_LT(chunks, 1000);
  stop = 0;
  EXPECT_EQ(parallel_for(100, 1, [](int64_t, int64_t) { return 0; }), 0);
}

TEST_P(ThreadPool, LongRegionsAreCutSoThatTheyCanBeInterrupted) {
  std::atomic<int> chunks{0};
  parallel_for_cost(1000, 1e6, [&](int64_t, int64_t) {  // claims a cost of one second
    ++chunks;
    return 0;
  });
  EXPECT_GE(chunks, 100);
}

TEST_P(ThreadPool, ThreadsOfThePoolKnowThemselves) {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> wrong{0};
  parallel_for(64, 1, [&](int64_t, int64_t) {
    if (on_pool_thread() == (std::this_thread::get_id() == caller)) ++wrong;
    return 0;
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_FALSE(on_pool_thread());
}

TEST(ThreadPool, RejectsAnImpossibleNumberOfThreads) {
  EXPECT_THROW(set_thread_count(0), ValueError);
  pid_t child = fork();
  if (child == 0) {
    setenv("CAPIBARA_NUM_THREADS", "many", 1);
    try {
      thread_count();
    } catch (const ValueError& error) {
      _exit(std::string(error.what()).find("CAPIBARA_NUM_THREADS") != std::string::npos ? 0 : 1);
    }
    _exit(2);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace capibara
