// Reads on several threads: each is done once, and the error of the first failing one is raised.
#include <gtest/gtest.h>

#include <capibara/error.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "io/checkpoint/reading_threads.h"

namespace capibara {
namespace {

TEST(ReadingThreads, ReadEverythingOnceAlsoFromInside) {
  for (const std::size_t count : {0u, 1u, 3u, 1000u}) {
    std::vector<std::atomic<int>> outer(count), inner(2 * count);
    for_each_read(count, [&](std::size_t i) {
      ++outer[i];
      const std::thread::id here = std::this_thread::get_id();
      for_each_read(2, [&](std::size_t j) {
        if (count > 1) EXPECT_EQ(std::this_thread::get_id(), here);
        ++inner[2 * i + j];
      });
    });
    for (const auto& times : outer) EXPECT_EQ(times, 1);
    for (const auto& times : inner) EXPECT_EQ(times, 1);
  }
}

TEST(ReadingThreads, RaiseTheErrorOfTheFirstThatFails) {
  for (int time = 0; time < 50; ++time) {
    try {
      for_each_read(100, [&](std::size_t i) {
        if (i % 10 == 7) throw ValueError(std::to_string(i));
      });
      FAIL() << "no error";
    } catch (const ValueError& error) {
      EXPECT_STREQ(error.what(), "7");
    }
  }
  int calls = 0;  // the next region works again
  std::mutex mutex;
  for_each_read(10, [&](std::size_t) {
    const std::lock_guard lock(mutex);
    ++calls;
  });
  EXPECT_EQ(calls, 10);
}

}  // namespace
}  // namespace capibara
