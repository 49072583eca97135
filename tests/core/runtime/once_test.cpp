// Once: run by one of many threads, and retried by the next one after an exception.
#include "core/runtime/once.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <vector>

using capibara::Once;

TEST(Once, OneOfManyThreadsDoesIt) {
  Once once;
  int count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      once.run([&] { ++count; });
      EXPECT_EQ(count, 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(once.done());
}

TEST(Once, FailuresAreTriedAgain) {
  Once once;
  std::atomic<int> attempts{0}, failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      try {
        once.run([&] {
          if (++attempts <= 5) throw std::runtime_error("not yet");
        });
      } catch (const std::runtime_error&) {
        ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(attempts, 6);
  EXPECT_EQ(failures, 5);
  EXPECT_TRUE(once.done());
}
