// Reductions of blocks: the order of the tree, every dtype, NaN, and blocks that are subtrees.
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include <capibara/capibara.h>

#include "core/array/element.h"
#include "core/processes/reduce.h"

using namespace capibara;
using namespace capibara::processes;

namespace {

template <class T>
std::vector<T> combined(Reduction kind, const std::vector<std::vector<T>>& blocks) {
  std::vector<const std::byte*> pointers;
  for (const auto& block : blocks) pointers.push_back(reinterpret_cast<const std::byte*>(block.data()));
  std::vector<T> out(blocks[0].size());
  combine_blocks(kind, dtype_of<T>(), pointers, static_cast<int64_t>(out.size()), dtype_of<T>(),
                 reinterpret_cast<std::byte*>(out.data()));
  return out;
}

std::vector<std::vector<float>> random_blocks(std::size_t count, std::size_t size) {
  std::mt19937 generator(7);
  std::normal_distribution<float> draw(0, 1000);
  std::vector<std::vector<float>> blocks(count, std::vector<float>(size));
  for (auto& block : blocks) {
    for (float& value : block) value = draw(generator);
  }
  return blocks;
}

// The sum in tree order, written out for each number of blocks.
float tree_of(const std::vector<float>& v) {
  switch (v.size()) {
    case 1:
      return v[0];
    case 2:
      return v[0] + v[1];
    case 3:
      return (v[0] + v[1]) + v[2];
    case 4:
      return (v[0] + v[1]) + (v[2] + v[3]);
    case 5:
      return ((v[0] + v[1]) + (v[2] + v[3])) + v[4];
    case 6:
      return ((v[0] + v[1]) + (v[2] + v[3])) + (v[4] + v[5]);
    case 7:
      return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + v[6]);
    default:
      return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
  }
}

}  // namespace

TEST(CombineBlocks, AddInTheOrderOfTheTree) {
  for (std::size_t count = 1; count <= 8; ++count) {
    const auto blocks = random_blocks(count, 1300);  // more than two tiles
    const std::vector<float> got = combined(Reduction::sum, blocks);
    for (std::size_t i = 0; i < got.size(); ++i) {
      std::vector<float> column;
      for (const auto& block : blocks) column.push_back(block[i]);
      ASSERT_EQ(got[i], tree_of(column)) << count << " blocks, element " << i;
    }
  }
}

TEST(CombineBlocks, OfTwoFourOrOneAreSubtrees) {
  const auto blocks = random_blocks(8, 600);
  const std::vector<float> whole = combined(Reduction::sum, blocks);
  for (const std::size_t lanes : {1, 2, 4, 8}) {
    std::vector<std::vector<float>> partial;
    for (std::size_t first = 0; first < 8; first += lanes) {
      const auto begin = blocks.begin() + static_cast<std::ptrdiff_t>(first);
      partial.push_back(combined<float>(Reduction::sum, {begin, begin + static_cast<std::ptrdiff_t>(lanes)}));
    }
    EXPECT_EQ(combined(Reduction::sum, partial), whole) << lanes << " lanes";
  }
}

TEST(CombineBlocks, OfBfloat16RoundOnce) {
  // 256 + 1 + 1: bfloat16 has 8 bits, so rounding after each addition would lose both ones.
  const std::vector<BFloat16> a = {BFloat16(256.0f)}, b = {BFloat16(1.0f)}, c = {BFloat16(1.0f)};
  const std::byte* blocks[] = {reinterpret_cast<const std::byte*>(a.data()),
                               reinterpret_cast<const std::byte*>(b.data()),
                               reinterpret_cast<const std::byte*>(c.data())};
  BFloat16 out;
  combine_blocks(Reduction::sum, DType::bfloat16, blocks, 1, DType::bfloat16, reinterpret_cast<std::byte*>(&out));
  EXPECT_EQ(static_cast<float>(out), 258.0f);
}

TEST(CombineBlocks, OfIntegersWrap) {
  EXPECT_EQ(combined<int8_t>(Reduction::sum, {{100}, {100}}), (std::vector<int8_t>{-56}));
  EXPECT_EQ(combined<uint8_t>(Reduction::sum, {{200}, {100}}), (std::vector<uint8_t>{44}));
  EXPECT_EQ(combined<int32_t>(Reduction::sum, {{2147483647}, {1}}), (std::vector<int32_t>{-2147483647 - 1}));
}

TEST(CombineBlocks, KeepNanInMinimaAndMaxima) {
  const float nan = std::nanf("");
  for (const Reduction kind : {Reduction::min, Reduction::max}) {
    const std::vector<float> got = combined<float>(kind, {{nan, 1, 2}, {1, nan, 5}});
    EXPECT_TRUE(std::isnan(got[0]));
    EXPECT_TRUE(std::isnan(got[1]));
    EXPECT_EQ(got[2], kind == Reduction::min ? 2 : 5);
  }
}

TEST(CombineBlocks, OfKeysAreRefused) {
  const std::byte none{};
  const std::byte* blocks[] = {&none};
  std::byte out{};
  EXPECT_THROW(combine_blocks(Reduction::sum, DType::key_fry, blocks, 0, DType::key_fry, &out), TypeError);
}
