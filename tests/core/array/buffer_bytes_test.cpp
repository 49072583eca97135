// Buffer sizes: products beyond 64 bits are errors that state the true number, never a small buffer.
#include <capibara/lax.h>

#include <gtest/gtest.h>

#include "core/array/buffer_bytes.h"

namespace capibara {
namespace {

ArrayType floats(Shape shape) { return {std::move(shape), DType::float32, false, false, {}}; }

std::string refusal(const ArrayType& type) {
  try {
    return concat("accepted as ", buffer_bytes(type), " bytes");
  } catch (const RuntimeError& error) {
    return error.what();
  }
}

TEST(BufferBytes, AreTheProductOfTheSizes) {
  EXPECT_EQ(buffer_bytes(floats({})), 4U);
  EXPECT_EQ(buffer_bytes(floats({3, 5})), 60U);
  EXPECT_EQ(buffer_bytes(floats({int64_t{1} << 40, int64_t{1} << 40, 0})), 0U);
}

TEST(BufferBytes, BeyondEveryMachineAreNamedByTheirTrueNumber) {
  EXPECT_NE(refusal(floats({1'000'000'000, 10'000'000'000})).find("34.7 EiB wanted"), std::string::npos);
  EXPECT_NE(refusal(floats({int64_t{1} << 31, int64_t{1} << 31})).find("16.0 EiB wanted"), std::string::npos);
  EXPECT_NE(refusal(floats({int64_t{1} << 62, int64_t{1} << 62})).find("EiB wanted"), std::string::npos);
}

// 2^62 elements of four bytes: their size modulo 2^64 is 0.
TEST(BufferBytes, ThatWouldWrapAreNoBuffer) {
  EXPECT_THROW(jax::lax::full({int64_t{1} << 31, int64_t{1} << 31}, 1.0f).block_until_ready(), RuntimeError);
}

TEST(ElementCount, OfAnEmptyShapeIsZeroHoweverLargeItsOtherSizesAre) {
  EXPECT_EQ(floats({int64_t{1} << 40, int64_t{1} << 40, 0}).size(), 0);
}

}  // namespace
}  // namespace capibara
