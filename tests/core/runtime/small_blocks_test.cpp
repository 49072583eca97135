// Small blocks: allocated, freed and reused, by one thread and across threads.
#include "core/runtime/small_blocks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace capibara {
namespace {

TEST(SmallBlocks, HoldWhatIsWrittenToThem) {
  std::vector<std::pair<unsigned char*, std::size_t>> blocks;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t bytes = 0; bytes < 3000; bytes += 7) {
      auto* block = static_cast<unsigned char*>(take_small_block(bytes));
      std::memset(block, static_cast<int>(bytes % 251), bytes);
      blocks.emplace_back(block, bytes);
    }
    for (const auto& [block, bytes] : blocks) {
      for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(block[i], bytes % 251);
      give_small_block(block, bytes);
    }
    blocks.clear();
  }
}

TEST(SmallBlocks, GoFromThreadToThread) {
  std::vector<std::shared_ptr<int>> made(2000);
  std::thread([&made] {
    for (int i = 0; i < 2000; ++i)
      made[static_cast<std::size_t>(i)] = std::allocate_shared<int>(SmallBlocks<int>(100), i);
  }).join();
  std::thread([made = std::move(made)]() mutable {
    for (int i = 0; i < 2000; ++i) EXPECT_EQ(*made[static_cast<std::size_t>(i)], i);
    made.clear();
    for (int i = 0; i < 500; ++i) made.push_back(std::allocate_shared<int>(SmallBlocks<int>(100), i));
  }).join();
}

}  // namespace
}  // namespace capibara
