// Reductions: values at hard points, derivatives at ties, batching, lowering and errors.
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
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float inf = std::numeric_limits<float>::infinity();

std::vector<float> floats(const Array& x) { return x.to_vector<float>(); }
std::vector<int> ints(const Array& x) { return x.to_vector<int>(); }

// The value computed by primitives that StableHLO has.
Array lowered(const std::function<Array(const Array&)>& function, const Array& x) {
  FlatFunction flat = [&](std::span<const Array> xs) { return Arrays{function(xs[0])}; };
  Program program = lower(stage(flat, std::vector<ArrayType>{x.type()}, "f").program);
  for (const Equation& equation : program.equations()) EXPECT_FALSE(equation.primitive->stablehlo.empty());
  return reference::interpret(program, std::vector<Array>{x})[0];
}

TEST(Reduce, SumsOverAnyAxes) {
  Array x = array<float>({1, 2, 3, 4, 5, 6}, Shape{2, 3});
  EXPECT_EQ(floats(lax::reduce_sum(x, {{1}})), (std::vector<float>{6, 15}));
  EXPECT_EQ(floats(lax::reduce_sum(x, {{0}})), (std::vector<float>{5, 7, 9}));
  EXPECT_EQ(floats(lax::reduce_sum(x, {{0, 1}})), (std::vector<float>{21}));
  EXPECT_EQ(floats(lax::reduce_sum(x, {{}})), floats(x));
}

TEST(Reduce, OfNothingIsTheIdentity) {
  Array none = array<float>({}, Shape{0, 2});
  EXPECT_EQ(floats(lax::reduce_sum(none, {{0}})), (std::vector<float>{0, 0}));
  EXPECT_EQ(floats(lax::reduce_prod(none, {{0}})), (std::vector<float>{1, 1}));
  EXPECT_EQ(floats(lax::reduce_max(none, {{0}})), (std::vector<float>{-inf, -inf}));
  EXPECT_EQ(ints(lax::reduce_min(array<int>(std::vector<int>{}), {{0}})),
            (std::vector<int>{std::numeric_limits<int>::max()}));
}

TEST(Reduce, NarrowFloatsAreRoundedOnce) {
  Array x = lax::full({1000}, Array(1.1f), DType::bfloat16);  // 1.1015625 each, 1101.5625 in all
  EXPECT_EQ(floats(lax::reduce_sum(x, {{0}})), (std::vector<float>{1104}));
}

TEST(Reduce, IntegersWrapAround) {
  Array x = lax::full({3}, Array(100), DType::int8);
  EXPECT_EQ(ints(lax::reduce_sum(x, {{0}})), (std::vector<int>{44}));
}

TEST(Reduce, MaxAndArgmaxTakeNaN) {
  Array x = array<float>({1, nan, 3, nan});
  EXPECT_TRUE(std::isnan(lax::reduce_max(x, {{0}}).item<float>()));
  EXPECT_EQ(lax::argmax(x, 0).item<int>(), 1);
  EXPECT_EQ(lax::argmin(x, 0).item<int>(), 1);
}

TEST(Reduce, ArgmaxTakesTheFirstOfEquals) {
  EXPECT_EQ(lax::argmax(array<int>({3, 7, 7, 1}), 0).item<int>(), 1);
  EXPECT_EQ(lax::argmin(array<float>({inf, inf}), 0).item<int>(), 0);
  EXPECT_EQ(lax::argmax(array<float>({-inf, -inf}), 0, DType::uint8).dtype(), DType::uint8);
}

TEST(Reduce, BitwiseFolds) {
  Array x = array<int>({6, 3, 2});
  EXPECT_EQ(lax::reduce_and(x, {{0}}).item<int>(), 2);
  EXPECT_EQ(lax::reduce_or(x, {{0}}).item<int>(), 7);
  EXPECT_EQ(lax::reduce_xor(x, {{0}}).item<int>(), 7);
  EXPECT_TRUE(lax::reduce_or(array<bool>({false, true}), {{0}}).item<bool>());
}

TEST(Reduce, ComplexMaximumIsLexicographic) {
  Array x = array<std::complex<float>>(std::vector<std::complex<float>>{{1, 2}, {1, 3}, {0, 9}});
  EXPECT_EQ(lax::reduce_max(x, {{0}}).item<std::complex<float>>(), (std::complex<float>{1, 3}));
}

TEST(Reduce, WeakTypePassesThrough) {
  Array weak = lax::full({3}, Array(2));
  EXPECT_TRUE(lax::reduce_sum(weak, {{0}}).weak_type());
  EXPECT_FALSE(lax::argmax(weak, 0).weak_type());
}

TEST(Reduce, GeneralFoldGoesFromLeftToRight) {
  Array x = array<float>({1, 2, 3});
  Array out = lax::reduce(x, 0.f, [](const Array& a, const Array& b) { return lax::add(lax::sin(a), b); }, {0});
  EXPECT_NEAR(out.item<float>(), std::sin(std::sin(std::sin(0.f) + 1) + 2) + 3, 1e-6);
}

TEST(Reduce, GeneralFoldOfPairs) {
  Array values = array<float>({3, 1, 2, 5, 5, 4}, Shape{2, 3});
  Array places = lax::broadcasted_iota(DType::int32, {2, 3}, 1);
  Arrays out = lax::reduce(Arrays{values, places}, Arrays{-inf, 0},
                           [](const Arrays& a, const Arrays& b) {
                             Array keep = lax::ge(a[0], b[0]);
                             return Arrays{lax::select(keep, a[0], b[0]), lax::select(keep, a[1], b[1])};
                           },
                           {1});
  EXPECT_EQ(floats(out[0]), (std::vector<float>{3, 5}));
  EXPECT_EQ(ints(out[1]), (std::vector<int>{0, 0}));
}

TEST(Reduce, NamedFunctionsWithTheirIdentityAreNamedReductions) {
  auto text = [](auto function) { return jax::make_jaxpr(function)(array<float>({1, 2})).to_string(); };
  EXPECT_NE(text([](Array x) { return lax::reduce(x, 0.f, lax::add, {0}); }).find("reduce_sum["), std::string::npos);
  EXPECT_NE(text([](Array x) { return lax::reduce(x, 1.f, lax::add, {0}); }).find("reduce["), std::string::npos);
}

TEST(Reduce, LowersToTheGeneralFold) {
  Array x = array<float>({4, nan, 1, 9, 2, 2}, Shape{2, 3});
  for (auto f : {+[](const Array& a) { return lax::reduce_sum(a, {{1}}); },
                 +[](const Array& a) { return lax::reduce_min(a, {{0}}); }}) {
    Array direct = f(x), other = lowered(f, x);
    for (std::size_t i = 0; i < floats(direct).size(); ++i) {
      float a = floats(direct)[i], b = floats(other)[i];
      EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b)));
    }
  }
  EXPECT_EQ(ints(lowered([](const Array& a) { return lax::argmax(a, 1); }, x)), (std::vector<int>{1, 0}));
}

TEST(Reduce, LongGeneralFoldsAgreeWithShortOnes) {
  Array x = lax::iota(DType::int32, 50001);
  Array out = lowered([](const Array& a) { return lax::argmax(a, 0); }, x);
  EXPECT_EQ(out.item<int>(), 50000);
}

TEST(ReduceGrad, OfMaxSplitsTiesEvenly) {
  auto f = [](Array x) { return lax::reduce_max(x, {{0}}); };
  EXPECT_EQ(floats(jax::grad(f)(array<float>({2, 5, 5, 1}))), (std::vector<float>{0, 0.5, 0.5, 0}));
}

TEST(ReduceGrad, OfProductSurvivesZeros) {
  auto f = [](Array x) { return lax::reduce_prod(x, {{0}}); };
  EXPECT_EQ(floats(jax::grad(f)(array<float>({2, 0, 3}))), (std::vector<float>{0, 6, 0}));
  EXPECT_EQ(floats(jax::grad(f)(array<float>({2, 0, 0}))), (std::vector<float>{0, 0, 0}));
}

TEST(ReduceVmap, KeepsOneEquationAtAnyAxis) {
  Array x = array<float>({1, 2, 3, 4, 5, 6}, Shape{2, 3});
  auto sum = [](Array row) { return lax::reduce_sum(row, {{0}}); };
  EXPECT_EQ(floats(jax::vmap(sum)(x)), (std::vector<float>{6, 15}));
  EXPECT_EQ(floats(jax::vmap(sum, {.in_axes = 1})(x)), (std::vector<float>{5, 7, 9}));
}

TEST(ReduceErrors, NameOperationAndArgument) {
  Array x = array<float>({1, 2, 3});
  EXPECT_THROW(lax::reduce_sum(x, {{1}}), ValueError);
  EXPECT_THROW(lax::reduce_sum(x, {{0, 0}}), ValueError);
  EXPECT_THROW(lax::reduce_sum(array<bool>({true}), {{0}}), TypeError);
  EXPECT_THROW(lax::reduce_and(x, {{0}}), TypeError);
  EXPECT_THROW(lax::argmax(array<float>(std::vector<float>{}), 0), ValueError);
  EXPECT_THROW(lax::argmax(array<std::complex<float>>(std::vector<std::complex<float>>{{1, 2}}), 0), TypeError);
  try {
    lax::reduce_sum(x, {{4}});
    FAIL();
  } catch (const ValueError& error) {
    EXPECT_EQ(std::string(error.what()).rfind("reduce_sum: axis 4 is out of range for float32[3] (argument 'axes')", 0),
              0u);
  }
}

TEST(BatchNorm, NormalisesEachFeature) {
  Array x = array<float>({1, 10, 3, 30}, Shape{2, 2});
  Array ones = array<float>({1, 1}), zeros = array<float>({0, 0});
  Arrays out = bind(primitive("batch_norm_training"), std::vector<Array>{x, ones, zeros},
                    {{"epsilon", 0.0}, {"feature_index", 1}});
  EXPECT_EQ(floats(out[0]), (std::vector<float>{-1, -1, 1, 1}));
  EXPECT_EQ(floats(out[1]), (std::vector<float>{2, 20}));
  EXPECT_EQ(floats(out[2]), (std::vector<float>{1, 100}));
}

}  // namespace
}  // namespace capibara
