// Sorting: order of NaNs and zeros, stability, several keys, comparator regions, top-k, errors.
#include <capibara/capibara.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/reference/kernels.h"
#include "lax/reduce/monoid.h"
#include "lax/sort/sort.h"

namespace capibara {
namespace {

namespace lax = jax::lax;
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float inf = std::numeric_limits<float>::infinity();

std::vector<float> floats(const Array& x) { return x.to_vector<float>(); }
std::vector<int> ints(const Array& x) { return x.to_vector<int>(); }

Arrays sort_with(const Arrays& operands, const ScalarFunction& less) {
  Types types;
  for (const Array& x : operands) types.insert(types.end(), 2, scalar_type(x.dtype()));
  return bind(
      primitive("sort_general"), operands,
      {{"comparator", stage_region("sort", less, types)}, {"dimension", operands[0].ndim() - 1}, {"is_stable", true}});
}

TEST(Sort, PutsNaNLastAndHoldsZerosEqual) {
  Array x = array<float>({0.f, -0.f, nan, 1, -inf, -0.f});
  Arrays sorted = lax::sort(Arrays{x, lax::iota(DType::int32, 6)});
  EXPECT_EQ(ints(sorted[1]), (std::vector<int>{4, 0, 1, 5, 3, 2}));
  EXPECT_TRUE(std::isnan(floats(sorted[0])[5]));
}

TEST(Sort, LeavesArraysWithoutElementsEmpty) {
  for (const Shape& shape : {Shape{3, 0}, Shape{0, 3}, Shape{2, 0, 3}}) {
    const auto along = [&](int64_t axis) {
      return [=](const Array& x) { return lax::cumsum(lax::sort(x, {.dimension = axis}), {.axis = axis}); };
    };
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const Array x = lax::full(shape, 1.0f);
      EXPECT_EQ(along(static_cast<int64_t>(axis))(x).shape(), shape);
      EXPECT_EQ(jax::jit(along(static_cast<int64_t>(axis)))(x).shape(), shape);
    }
  }
}

TEST(Sort, TakesSeveralKeysAndAnyDimension) {
  Array first = array<int>({1, 0, 1, 0}), second = array<float>({2, 1, 1, 0}), rest = array<int>({10, 11, 12, 13});
  Arrays sorted = lax::sort(Arrays{first, second, rest}, {.num_keys = 2});
  EXPECT_EQ(ints(sorted[2]), (std::vector<int>{13, 11, 12, 10}));
  Array x = array<int>({3, 1, 2, 4}, Shape{2, 2});
  EXPECT_EQ(ints(lax::sort(x, {.dimension = 0})), (std::vector<int>{2, 1, 3, 4}));
}

TEST(Sort, OrdersComplexNumbersByRealThenImaginary) {
  Array x = array<std::complex<float>>(std::vector<std::complex<float>>{{1, 2}, {1, -1}, {0, 5}});
  auto out = lax::sort(x).to_vector<std::complex<float>>();
  EXPECT_EQ(out, (std::vector<std::complex<float>>{{0, 5}, {1, -1}, {1, 2}}));
}

TEST(SortGeneral, FollowsAPlainComparison) {
  Array x = array<float>({3, 1, 2, 1});
  Arrays sorted =
      sort_with({x, lax::iota(DType::int32, 4)}, [](std::span<const Array> a) { return Arrays{lax::gt(a[0], a[1])}; });
  EXPECT_EQ(floats(sorted[0]), (std::vector<float>{3, 2, 1, 1}));
  EXPECT_EQ(ints(sorted[1]), (std::vector<int>{0, 2, 1, 3}));
}

TEST(SortGeneral, FollowsAnyComparatorStably) {
  // By distance from 50: a comparator that is not recognised as a key.
  std::vector<int> values;
  for (int i = 0; i < 100; ++i) values.push_back((i * 37) % 101);
  Array x = array<int>(values);
  auto nearer = [](std::span<const Array> a) {
    auto distance = [](const Array& v) { return lax::abs(lax::sub(v, lax::full_like(v, 50))); };
    return Arrays{lax::lt(distance(a[0]), distance(a[1]))};
  };
  std::vector<int> expected = values;
  std::stable_sort(expected.begin(), expected.end(), [](int a, int b) { return std::abs(a - 50) < std::abs(b - 50); });
  EXPECT_EQ(ints(sort_with({x}, nearer)[0]), expected);
}

TEST(SortGeneral, OfSortsOwnComparatorIsSort) {
  for (int64_t length : {5, 500}) {  // below and above the length at which the comparator is recognised
    std::vector<float> keys, more;
    for (int64_t i = 0; i < length; ++i) {
      keys.push_back(i % 7 == 3 ? nan : static_cast<float>((i * 31) % 5));
      more.push_back(static_cast<float>((i * 17) % 11));
    }
    Arrays operands = {array<float>(keys), array<float>(more), lax::iota(DType::int32, length)};
    Types types = {operands[0].type(), operands[1].type(), operands[2].type()};
    Arrays general = bind(primitive("sort_general"), operands,
                          {{"comparator", sort_comparator(types, 2)}, {"dimension", 0}, {"is_stable", true}});
    EXPECT_EQ(ints(general[2]), ints(lax::sort(operands, {.num_keys = 2})[2]));
  }
}

TEST(TopK, BreaksTiesByPosition) {
  auto [values, positions] = lax::top_k(array<int>({1, 5, 3, 5}), 3);
  EXPECT_EQ(ints(values), (std::vector<int>{5, 5, 3}));
  EXPECT_EQ(ints(positions), (std::vector<int>{1, 3, 2}));
}

TEST(TopK, UsesTheTotalOrder) {
  auto [values, positions] = lax::top_k(array<float>({1, nan, -0.f, 0.f}), 4);
  EXPECT_EQ(ints(positions), (std::vector<int>{1, 0, 3, 2}));
}

TEST(TopK, WorksAlongAnyAxis) {
  Array x = array<int>({1, 4, 3, 2}, Shape{2, 2});
  EXPECT_EQ(ints(lax::top_k(x, 1, 0).first), (std::vector<int>{3, 4}));
}

TEST(TopK, ApproximateOneIsExactHere) {
  EXPECT_EQ(floats(lax::approx_min_k(array<float>({4, 1, 3, 2}), 2).first), (std::vector<float>{1, 2}));
  EXPECT_EQ(ints(lax::approx_max_k(array<float>({4, 1, 3, 2}), 2).second), (std::vector<int>{0, 2}));
}

TEST(SortGrad, FollowsTheElements) {
  Array weights = array<float>({1, 10, 100});
  auto f = [&](Array x) { return lax::reduce_sum(lax::mul(lax::sort(x), weights), {{0}}); };
  EXPECT_EQ(floats(jax::grad(f)(array<float>({3, 1, 2}))), (std::vector<float>{100, 1, 10}));
  auto best = [](Array x) { return lax::reduce_sum(lax::top_k(x, 2).first, {{0}}); };
  EXPECT_EQ(floats(jax::grad(best)(array<float>({3, 1, 2}))), (std::vector<float>{1, 0, 1}));
}

TEST(SortErrors, NameTheArgument) {
  Array x = array<float>({1, 2, 3});
  EXPECT_THROW(lax::sort(Arrays{}), TypeError);
  EXPECT_THROW(lax::sort(Arrays{x, array<float>({1})}), TypeError);
  EXPECT_THROW(lax::sort(x, {.dimension = 1}), ValueError);
  EXPECT_THROW(lax::sort(Arrays{x}, {.num_keys = 2}), ValueError);
  EXPECT_THROW(lax::top_k(x, 4), ValueError);
  EXPECT_THROW(lax::top_k(x, -1), ValueError);
  EXPECT_THROW(lax::top_k(Array(1.f), 1), TypeError);
  EXPECT_THROW(lax::approx_max_k(array<int>({1}), 1), ValueError);
}

}  // namespace
}  // namespace capibara
