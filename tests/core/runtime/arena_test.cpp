// The arena of large arrays: blocks are reused, bounded, and refused with a reason.
#include "core/runtime/arena.h"

#include <capibara/array.h>
#include <capibara/error.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace capibara {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool caches = false;
#else
constexpr bool caches = true;
#endif

constexpr std::size_t mib = 1024 * 1024;

// The error message of a failing request; empty if it succeeds.
std::string failure(std::size_t bytes, const char* words) {
  try {
    arena::give(arena::take(bytes, words));
  } catch (const RuntimeError& error) {
    return error.what();
  }
  return "";
}

TEST(Arena, GivesAlignedWritableMemory) {
  for (std::size_t bytes :
       {std::size_t{1}, std::size_t{65536}, std::size_t{65537}, 2 * mib - 1, 2 * mib, 5 * mib + 3}) {
    std::byte* block = arena::take(bytes, "test");
    std::memset(block, 0x5a, bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0u);
    if (caches && bytes >= 2 * mib) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % (2 * mib), 0u);
    }
    arena::give(block);
  }
}

TEST(Arena, CountsSmallArraysOfAllThreads) {
  const std::size_t before = arena::usage().in_use;
  std::vector<Buffer> held;
  std::thread([&held] {
    for (int i = 0; i < 100; ++i) held.push_back(Buffer::allocate(1000));
  }).join();
  const std::size_t small = arena::usage().in_use;  // including the descriptor of each buffer
  EXPECT_GE(small, before + 100'000);
  EXPECT_LE(small, before + 150'000);
  EXPECT_GE(arena::usage().peak_in_use, small);
  held.push_back(Buffer::allocate(mib));  // from the arena
  EXPECT_GE(arena::usage().in_use, small + mib);
  held.clear();
  EXPECT_EQ(arena::usage().in_use, before);
}

TEST(Arena, UsesAFreedBlockAgain) {
  if (!caches) GTEST_SKIP() << "no cache under AddressSanitizer";
  std::byte* first = arena::take(3 * mib, "test");
  arena::give(first);
  std::byte* second = arena::take(3 * mib - 1000, "test");
  EXPECT_EQ(first, second);
  arena::give(second);
}

TEST(Arena, CountsWhatIsLiveAndCached) {
  arena::trim();
  arena::Usage before = arena::usage();
  EXPECT_EQ(before.cached, 0u);
  std::byte* block = arena::take(4 * mib, "test");
  EXPECT_EQ(arena::usage().live, before.live + 4 * mib);
  EXPECT_EQ(arena::usage().live_blocks, before.live_blocks + 1);
  arena::give(block);
  EXPECT_EQ(arena::usage().live, before.live);
  EXPECT_EQ(arena::usage().cached, caches ? 4 * mib : 0);
  arena::trim();
  EXPECT_EQ(arena::usage().cached, 0u);
}

TEST(Arena, CacheStaysWithinTheWorstMomentAndSomeSlack) {
  arena::trim();
  for (std::size_t size = 20; size < 200; size += 20) arena::give(arena::take(size * mib, "test"));
  arena::Usage now = arena::usage();
  EXPECT_LE(now.live + now.cached, now.peak_live + 256 * mib);
  arena::trim();
}

TEST(Arena, RefusesWhatTheMachineCannotHoldAndNamesTheLargest) {
  std::byte* block = arena::take(7 * mib, "weights float32[7,512,512]");
  for (std::size_t bytes : {std::size_t{1} << 46, std::size_t{1} << 62, std::numeric_limits<std::size_t>::max()}) {
    std::string words = failure(bytes, "dot_general float32[huge]");
    EXPECT_NE(words.find("dot_general float32[huge]: out of memory"), std::string::npos) << words;
    EXPECT_NE(words.find("7.0 MiB (weights float32[7,512,512])"), std::string::npos) << words;
  }
  arena::give(block);
  EXPECT_EQ(failure(mib, "small"), "");
}

TEST(Arena, RefusesTogetherWhatEachAloneWouldFit) {
  // Untouched memory counts: twice two thirds of the machine's memory is too much.
  std::vector<std::byte*> blocks;
  std::string words;
  for (int i = 0; i < 3 && words.empty(); ++i) {
    try {
      std::size_t pages =
          static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
      blocks.push_back(arena::take(pages / 5 * 2, "two fifths"));
    } catch (const RuntimeError& error) {
      words = error.what();
    }
  }
  EXPECT_NE(words.find("out of memory"), std::string::npos);
  for (std::byte* block : blocks) arena::give(block);
  arena::trim();
}

TEST(Arena, RefusesBeyondTheAddressSpaceLimitAndLives) {
  if (!caches) GTEST_SKIP() << "AddressSanitizer needs the address space";
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer needs the address space";
#endif
  pid_t child = fork();
  if (child == 0) {
    rlimit limit{2048ull * mib, 2048ull * mib};
    setrlimit(RLIMIT_AS, &limit);
    bool refused = failure(3000 * mib, "big").find("big: out of memory") != std::string::npos;
    _exit(refused && failure(8 * mib, "small").empty() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(Arena, ServesManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int round = 0; round < 200; ++round) {
        std::size_t bytes = 65536u * static_cast<std::size_t>(1 + (round * 7 + t) % 40);
        std::byte* block = arena::take(bytes, "thread");
        block[0] = block[bytes - 1] = static_cast<std::byte>(t);
        EXPECT_EQ(block[0], static_cast<std::byte>(t));
        arena::give(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Arena, HoldsTheBuffersOfLargeArrays) {
  arena::Usage before = arena::usage();
  {
    arena::Purpose purpose("carry float32[1024,1024]");
    Buffer buffer = Buffer::allocate(4 * mib);
    EXPECT_EQ(arena::usage().live, before.live + 4 * mib);
    Buffer copy = buffer;
    EXPECT_EQ(copy.data(), buffer.data());
    EXPECT_NE(failure(std::size_t{1} << 50, "x").find("4.0 MiB (carry float32[1024,1024])"), std::string::npos);
  }
  EXPECT_EQ(arena::usage().live, before.live);
  EXPECT_THROW(Buffer::allocate(std::numeric_limits<std::size_t>::max()), RuntimeError);
}

}  // namespace
}  // namespace capibara
