// Arrays made from values in the program's memory.
#include <capibara/array.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace {

using capibara::Array;
using capibara::DType;

// Misaligned, as in a mapped file whose header has an odd length; 64-bit elements are narrowed.
TEST(HostValues, MayLieAtAnyByte) {
  const std::vector<int64_t> integers = {1, -2, int64_t{1} << 30};
  const std::vector<double> numbers = {0.5, -1.25, 3};
  std::vector<char> bytes(64);
  for (std::size_t shift = 0; shift < 8; ++shift) {
    std::memcpy(bytes.data() + shift, integers.data(), 24);
    EXPECT_EQ(Array::from_host(DType::int64, {3}, bytes.data() + shift).to_vector<int64_t>(), integers);
    std::memcpy(bytes.data() + shift, numbers.data(), 24);
    EXPECT_EQ(Array::from_host(DType::float64, {3}, bytes.data() + shift).to_vector<double>(), numbers);
  }
}

}  // namespace
