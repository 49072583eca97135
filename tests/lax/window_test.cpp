// Sliding windows and cumulative operations: values, padding, dilation, derivatives, lowering and errors.
#include <capibara/capibara.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/reference/kernels.h"
#include "program/trace/stage.h"
#include "program/trace/trace.h"

namespace capibara {
namespace {

namespace lax = jax::lax;
constexpr float inf = std::numeric_limits<float>::infinity();

std::vector<float> floats(const Array& x) { return x.to_vector<float>(); }

Array lowered(const std::function<Array(const Array&)>& function, const Array& x) {
  FlatFunction flat = [&](std::span<const Array> xs) { return Arrays{function(xs[0])}; };
  Program program = lower(stage(flat, std::vector<ArrayType>{x.type()}, "f").program);
  return reference::interpret(program, std::vector<Array>{x})[0];
}

TEST(Window, SumsEachPlace) {
  Array x = array<float>({1, 2, 3, 4});
  EXPECT_EQ(floats(lax::reduce_window_sum(x, {2})), (std::vector<float>{3, 5, 7}));
  EXPECT_EQ(floats(lax::reduce_window_sum(x, {2}, {.strides = {2}, .padding_mode = "SAME"})),
            (std::vector<float>{3, 7}));
  EXPECT_EQ(floats(lax::reduce_window_sum(x, {2}, {.window_dilation = {2}})), (std::vector<float>{4, 6}));
  EXPECT_EQ(floats(lax::reduce_window_sum(x, {2}, {.base_dilation = {2}})), (std::vector<float>{1, 2, 2, 3, 3, 4}));
}

TEST(Window, PaddingIsNotPartOfTheFold) {
  Array ones = array<float>({1, 1, 1});
  auto add = [](const Array& a, const Array& b) { return lax::add(a, b); };
  EXPECT_EQ(floats(lax::reduce_window(ones, 1.f, add, {3}, {.padding_mode = "SAME"})), (std::vector<float>{3, 4, 3}));
}

TEST(Window, AnyRegionFolds) {
  Array x = array<float>({1, 2, 3, 4});
  auto last = [](const Array& a, const Array& b) { return lax::add(lax::mul(a, lax::full_like(a, 0.5f)), b); };
  EXPECT_EQ(floats(lax::reduce_window(x, 0.f, last, {2})), (std::vector<float>{2.5, 4, 5.5}));
}

TEST(Window, LowersToTheGeneralForm) {
  Array x = array<float>({3, 1, 2, 5, 4, 9}, Shape{2, 3});
  auto pool = [](const Array& a) { return lax::reduce_window_max(a, {1, 2}, {.padding_mode = "SAME"}); };
  EXPECT_EQ(floats(lowered(pool, x)), floats(pool(x)));
  auto gradient = [&](const Array& a) {
    return jax::grad([&](Array y) { return lax::reduce_sum(pool(y), {{0, 1}}); })(a);
  };
  EXPECT_EQ(floats(lowered(gradient, x)), floats(gradient(x)));
}

TEST(WindowGrad, GoesToTheFirstGreatestElement) {
  auto f = [](Array x) { return lax::reduce_sum(lax::reduce_window_max(x, {2}), {{0}}); };
  EXPECT_EQ(floats(jax::grad(f)(array<float>({1, 5, 5, 2}))), (std::vector<float>{0, 2, 1, 0}));
}

TEST(WindowGrad, OfSumCountsThePlaces) {
  auto f = [](Array x) {
    return lax::reduce_sum(lax::reduce_window_sum(x, {2}, {.strides = {2}, .padding_mode = "SAME"}), {{0}});
  };
  EXPECT_EQ(floats(jax::grad(f)(array<float>({1, 2, 3}))), (std::vector<float>{1, 1, 1}));
}

TEST(WindowErrors, SayWhatWasExpected) {
  Array x = array<float>({1, 2, 3});
  EXPECT_THROW(lax::reduce_window_sum(x, {1, 2}), TypeError);
  EXPECT_THROW(lax::reduce_window_sum(x, {0}), TypeError);
  EXPECT_THROW(lax::reduce_window_sum(x, {2}, {.strides = {0}, .padding_mode = "VALID"}), Error);
  EXPECT_THROW(lax::reduce_window_sum(x, {2}, {.padding_mode = "FULL"}), RuntimeError);
}

TEST(Cumulative, RunsBothWays) {
  Array x = array<float>({1, 2, 3, 4});
  EXPECT_EQ(floats(lax::cumsum(x)), (std::vector<float>{1, 3, 6, 10}));
  EXPECT_EQ(floats(lax::cumsum(x, {.reverse = true})), (std::vector<float>{10, 9, 7, 4}));
  EXPECT_EQ(floats(lax::cumprod(x)), (std::vector<float>{1, 2, 6, 24}));
  EXPECT_EQ(floats(lax::cummax(array<float>({1, 3, 2, 4}))), (std::vector<float>{1, 3, 3, 4}));
  EXPECT_EQ(floats(lax::cummin(array<float>({3, 1, 2, 0}), {.reverse = true})), (std::vector<float>{0, 0, 0, 0}));
}

TEST(Cumulative, LogSumExpDoesNotOverflow) {
  std::vector<float> out = floats(lax::cumlogsumexp(array<float>({-inf, 1000, 1000})));
  EXPECT_EQ(out[0], -inf);
  EXPECT_EQ(out[1], 1000);
  EXPECT_NEAR(out[2], 1000.693f, 1e-3);
}

TEST(Cumulative, LowersToAWindowInLinearTime) {
  Array x = lax::iota(DType::int32, 200000);
  auto f = [](const Array& a) { return lax::cumsum(a); };
  EXPECT_EQ(lowered(f, x).to_vector<int>(), f(x).to_vector<int>());
  Array y = lax::mul(lax::convert_element_type(lax::iota(DType::int32, 1000), DType::float32),
                     lax::full({1000}, Array(0.01f)));
  std::vector<float> direct = floats(lax::cumlogsumexp(y, {.reverse = true}));
  std::vector<float> other = floats(lowered([](const Array& a) { return lax::cumlogsumexp(a, {.reverse = true}); }, y));
  for (std::size_t i = 0; i < direct.size(); ++i) EXPECT_NEAR(direct[i], other[i], 1e-4);
}

TEST(CumulativeGrad, OfSumIsTheReverseSum) {
  auto f = [](Array x) { return lax::reduce_sum(lax::cumsum(x), {{0}}); };
  EXPECT_EQ(floats(jax::grad(f)(array<float>({5, 6, 7}))), (std::vector<float>{3, 2, 1}));
}

TEST(CumulativeGrad, OfProductAtAZero) {
  auto f = [](Array x) { return lax::reduce_sum(lax::cumprod(x), {{0}}); };
  EXPECT_EQ(floats(jax::grad(f)(array<float>({2, 0, 3}))), (std::vector<float>{1, 8, 0}));
}

TEST(CumulativeGrad, OfLogSumExpIsFiniteAtMinusInfinity) {
  auto f = [](Array x) { return lax::reduce_sum(lax::slice(lax::cumlogsumexp(x), {1}, {2}), {{0}}); };
  EXPECT_EQ(floats(jax::grad(f)(array<float>({-inf, 0}))), (std::vector<float>{0, 1}));
}

TEST(CumulativeErrors, RefuseNegativeAxesAndBooleans) {
  EXPECT_THROW(lax::cumsum(array<float>({1}), {.axis = -1}), ValueError);
  EXPECT_THROW(lax::cumsum(array<float>({1}), {.axis = 1}), ValueError);
  EXPECT_THROW(lax::cummax(array<bool>({true})), TypeError);
  EXPECT_THROW(lax::cumlogsumexp(array<int>({1})), TypeError);
}

}  // namespace
}  // namespace capibara
