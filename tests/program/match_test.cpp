// The conditions of matches: ranges of types, other readers, operands that contain each other.
#include "program/ir/match.h"

#include <capibara/capibara.h>

#include <gtest/gtest.h>

namespace capibara {
namespace {

TEST(Match, TypesHoldTheIntegersOfTheirRange) {
  EXPECT_TRUE(holds_exactly(DType::int8, {-128, 127}));
  EXPECT_FALSE(holds_exactly(DType::int8, {0, 128}));
  EXPECT_FALSE(holds_exactly(DType::int8, {-129, 0}));
  EXPECT_TRUE(holds_exactly(DType::uint8, {0, 255}));
  EXPECT_FALSE(holds_exactly(DType::uint8, {0, 256}));
  EXPECT_FALSE(holds_exactly(DType::uint32, {-1, 0}));
  EXPECT_TRUE(holds_exactly(DType::uint32, {0, 0xffffffff}));
  EXPECT_FALSE(holds_exactly(DType::uint32, {0, 0x100000000}));
  EXPECT_TRUE(holds_exactly(DType::int64, {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}));
  EXPECT_TRUE(holds_exactly(DType::uint64, {0, std::numeric_limits<int64_t>::max()}));
  EXPECT_FALSE(holds_exactly(DType::bool_, {0, 1}));
}

// The first integer that a floating type rounds is one above the end of its exact range.
TEST(Match, FloatsHoldWhatTheirMantissaDoes) {
  for (const DType dtype : {DType::bfloat16, DType::float16, DType::float32}) {
    const int64_t limit = int64_t{1} << (dtype_row(dtype).mantissa_bits + 1);
    EXPECT_TRUE(holds_exactly(dtype, {-limit, limit})) << to_string(dtype);
    EXPECT_FALSE(holds_exactly(dtype, {0, limit + 1})) << to_string(dtype);
    const Array next = Array(limit + 1).astype(DType::float64).astype(dtype).astype(DType::float64);
    EXPECT_NE(next.item<double>(), static_cast<double>(limit + 1)) << to_string(dtype);
  }
  EXPECT_FALSE(holds_exactly(DType::float8_e4m3fn, {0, 1}));
}

// 0: b = sin a; 1: c = mul b b; 2: d = add c b; 3: e = add d a
Program chain() {
  return jax::make_jaxpr([](const Array& a) {
    const Array b = jax::lax::sin(a), c = b * b, d = c + b;
    return d + a;
  })(jax::numpy::ones({3}));
}

TEST(Match, IsClosedWhereOthersReadNothing) {
  const Uses uses(chain());
  EXPECT_TRUE(is_closed(uses, std::vector<int>{0, 1, 2}, std::vector<int>{3}));
  EXPECT_TRUE(is_closed(uses, std::vector<int>{0, 1}, std::vector<int>{2}));
  EXPECT_FALSE(is_closed(uses, std::vector<int>{0}, std::vector<int>{1}));  // 2 reads b as well
  EXPECT_FALSE(is_closed(uses, std::vector<int>{3}, std::vector<int>{}));   // a result of the program
}

TEST(Match, OperandsAreIndependentOfWhatIsReplaced) {
  const Program program = chain();
  const Uses uses(program);
  const Atom a = program.invars()[0], b = program.equations()[0].outputs[0], c = program.equations()[1].outputs[0];
  EXPECT_TRUE(are_independent(uses, std::vector<Atom>{a, b}, std::vector<int>{1, 2}));
  EXPECT_FALSE(are_independent(uses, std::vector<Atom>{a, c}, std::vector<int>{1, 2}));
  EXPECT_FALSE(are_independent(uses, std::vector<Atom>{c}, std::vector<int>{0}));  // through c = b b
  EXPECT_TRUE(are_independent(uses, std::vector<Atom>{c}, std::vector<int>{0}, std::vector<int>{1}));
}

TEST(Match, SeesArraysWithoutElements) {
  const ArrayType full = jax::numpy::ones({2, 3}).type(), empty = jax::numpy::ones({2, 0}).type();
  EXPECT_FALSE(any_empty(std::vector<ArrayType>{full, full}));
  EXPECT_TRUE(any_empty(std::vector<ArrayType>{full, empty}));
}

}  // namespace
}  // namespace capibara
