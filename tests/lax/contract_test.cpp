// Dot products and convolutions: values, dtypes, groups, derivatives, batching, lowering and errors.
#include <capibara/capibara.h>

#include <gtest/gtest.h>

#include "backends/reference/kernels.h"
#include "program/trace/stage.h"
#include "program/trace/trace.h"

namespace capibara {
namespace {

namespace lax = jax::lax;

std::vector<float> floats(const Array& x) { return x.to_vector<float>(); }

Array counting(Shape shape) {
  int64_t size = element_count(shape);
  return lax::reshape(lax::convert_element_type(lax::iota(DType::int32, size), DType::float32), shape);
}

TEST(Dot, MultipliesMatricesAndVectors) {
  Array a = array<float>({1, 2, 3, 4}, Shape{2, 2}), v = array<float>({10, 1});
  EXPECT_EQ(floats(lax::dot(a, a)), (std::vector<float>{7, 10, 15, 22}));
  EXPECT_EQ(floats(lax::dot(a, v)), (std::vector<float>{12, 34}));
  EXPECT_EQ(lax::dot(v, v).item<float>(), 101);
}

TEST(Dot, OrdersBatchThenFreeDimensions) {
  Array x = counting({2, 3, 4}), y = counting({4, 5, 2});
  Array out = lax::dot_general(x, y, {{2}, {0}, {0}, {2}});
  EXPECT_EQ(out.shape(), (Shape{2, 3, 5}));
  EXPECT_EQ(floats(out)[0], 0 * 0 + 1 * 10 + 2 * 20 + 3 * 30);
}

TEST(Dot, ResultDtypeIsTheWiderOrThePreferredOne) {
  auto dtype = [](DType a, DType b, std::optional<DType> preferred = {}) {
    Array x = lax::full({2}, Array(1), a), y = lax::full({2}, Array(1), b);
    return lax::dot_general(x, y, {{0}, {0}, {}, {}}, {.preferred_element_type = preferred}).dtype();
  };
  EXPECT_EQ(dtype(DType::int8, DType::int8, DType::int32), DType::int32);
  EXPECT_EQ(dtype(DType::bfloat16, DType::int32), DType::bfloat16);
  EXPECT_EQ(dtype(DType::float16, DType::complex64), DType::complex64);
  EXPECT_EQ(dtype(DType::bfloat16, DType::bfloat16, DType::float32), DType::float32);
  EXPECT_THROW(dtype(DType::int32, DType::int32, DType::int8), TypeError);
}

TEST(Dot, IntegersWrapAndBooleansAreLogic) {
  Array x = lax::full({2}, Array(100), DType::int8);
  EXPECT_EQ(lax::dot(x, x).item<int>(), static_cast<int8_t>(20000));
  EXPECT_TRUE(lax::dot(array<bool>({true, false}), array<bool>({true, true})).item<bool>());
}

TEST(Dot, AlgorithmsRoundTheirOperands) {
  Array x = array<float>({1.001f});
  EXPECT_EQ(lax::dot_general(x, x, {{0}, {0}, {}, {}}, {.precision = "BF16_BF16_F32"}).item<float>(), 1);
  EXPECT_THROW(lax::dot_general(x, x, {{0}, {0}, {}, {}}, {.precision = "good"}), ValueError);
}

TEST(DotGrad, KeepsEachOperandsShape) {
  Array x = counting({3, 2, 5}), y = counting({5, 4, 3});
  auto f = [](Array a, Array b) { return lax::reduce_sum(lax::dot_general(a, b, {{2}, {0}, {0}, {2}}), {{0, 1, 2}}); };
  auto [dx, dy] = jax::grad<0, 1>(f)(x, y);
  EXPECT_EQ(dx.shape(), x.shape());
  EXPECT_EQ(dy.shape(), y.shape());
  EXPECT_EQ(floats(dx)[0], 0 + 3 + 6 + 9);  // sum of y[0, :, 0]
}

TEST(DotVmap, MakesOneDotOfMany) {
  Array x = counting({6, 2, 3}), y = counting({3, 4});
  auto text = jax::make_jaxpr([&](Array a, Array b) {
    return jax::vmap([](Array p, Array q) { return lax::dot(p, q); }, {.in_axes = {0, std::nullopt}})(a, b);
  })(x, y);
  EXPECT_EQ(text.equations().size(), 1u);
}

TEST(Dot, MixedDtypesLowerToOneDtype) {
  Array x = lax::full({2, 3}, Array(2), DType::bfloat16), y = lax::full({3, 2}, Array(3), DType::int8);
  FlatFunction f = [](std::span<const Array> a) { return Arrays{lax::dot(a[0], a[1])}; };
  Program program = lower(stage(f, std::vector<ArrayType>{x.type(), y.type()}, "f").program);
  const Equation& last = program.equations().back();
  EXPECT_EQ(program.type(last.inputs[0]).dtype, program.type(last.inputs[1]).dtype);
  EXPECT_EQ(floats(reference::interpret(program, std::vector<Array>{x, y})[0]), (std::vector<float>{18, 18, 18, 18}));
}

TEST(RaggedDot, UsesEachGroupsMatrixAndLeavesTheRestZero) {
  Array x = array<float>({1, 1, 1, 1}, Shape{4, 1}), w = array<float>({2, 3}, Shape{2, 1, 1});
  EXPECT_EQ(floats(lax::ragged_dot(x, w, array<int>({1, 2}))), (std::vector<float>{2, 3, 3, 0}));
  auto f = [&](Array weights) { return lax::reduce_sum(lax::ragged_dot(x, weights, array<int>({1, 2})), {{0, 1}}); };
  EXPECT_EQ(floats(jax::grad(f)(w)), (std::vector<float>{1, 2}));
}

TEST(DotErrors, SayWhichDimensionsDisagree) {
  Array x = counting({2, 3});
  EXPECT_THROW(lax::dot(x, x), ValueError);
  EXPECT_THROW(lax::dot_general(x, x, {{1}, {0}, {}, {}}), TypeError);
  EXPECT_THROW(lax::dot_general(x, x, {{2}, {0}, {}, {}}), TypeError);
  EXPECT_THROW(lax::dot_general(x, x, {{1}, {1}, {1}, {1}}), TypeError);
  EXPECT_THROW(lax::batch_matmul(x, counting({1, 3, 2})), ValueError);
}

TEST(Conv, SlidesTheKernel) {
  Array x = array<float>({1, 2, 3, 4}, Shape{1, 1, 4}), k = array<float>({1, 10}, Shape{1, 1, 2});
  EXPECT_EQ(floats(lax::conv(x, k, {1}, "VALID")), (std::vector<float>{21, 32, 43}));
  EXPECT_EQ(floats(lax::conv(x, k, {2}, "SAME")), (std::vector<float>{21, 43}));
  EXPECT_EQ(floats(lax::conv_general_dilated(x, k, {.rhs_dilation = {2}})), (std::vector<float>{31, 42}));
  EXPECT_EQ(floats(lax::conv_general_dilated(x, k, {.padding = lax::Padding{{0, 0}}, .lhs_dilation = {2}})),
            (std::vector<float>{1, 20, 2, 30, 3, 40}));
}

TEST(Conv, GroupsSplitFeaturesOrBatch) {
  Array x = array<float>({1, 2}, Shape{1, 2, 1}), k = array<float>({10, 100}, Shape{2, 1, 1});
  EXPECT_EQ(floats(lax::conv_general_dilated(x, k, {.feature_group_count = 2})), (std::vector<float>{10, 200}));
  Array b = array<float>({1, 2}, Shape{2, 1, 1});
  EXPECT_EQ(floats(lax::conv_general_dilated(b, k, {.batch_group_count = 2})), (std::vector<float>{10, 200}));
}

TEST(Conv, DimensionNumbersComeFromLetters) {
  ConvDimensionNumbers numbers = lax::conv_dimension_numbers("NHWC", "HWIO", "NHWC");
  EXPECT_EQ(numbers.lhs_spec, (Ints{0, 3, 1, 2}));
  EXPECT_EQ(numbers.rhs_spec, (Ints{3, 2, 0, 1}));
  EXPECT_THROW(lax::conv_dimension_numbers("NHWC", "HWOO", "NHWC"), TypeError);
  EXPECT_THROW(lax::conv_dimension_numbers("NHC", "HWIO", "NHWC"), TypeError);
}

TEST(ConvGrad, OfTheKernelSumsItsInputs) {
  Array x = array<float>({1, 2, 3, 4}, Shape{1, 1, 4}), k = array<float>({1, 10}, Shape{1, 1, 2});
  auto f = [](Array a, Array b) { return lax::reduce_sum(lax::conv(a, b, {1}, "VALID"), {{0, 1, 2}}); };
  auto [dx, dk] = jax::grad<0, 1>(f)(x, k);
  EXPECT_EQ(floats(dk), (std::vector<float>{6, 9}));
  EXPECT_EQ(floats(dx), (std::vector<float>{1, 11, 11, 10}));
}

TEST(ConvVmap, OverEitherOperandAgreesWithALoop) {
  Array x = counting({3, 2, 2, 5}), k = counting({3, 4, 2, 2});
  auto conv = [](Array a, Array b) { return lax::conv(a, b, {1}, "SAME"); };
  Array both = jax::vmap(conv)(x, k);
  for (int64_t i = 0; i < 3; ++i) {
    Array one = conv(lax::index_in_dim(x, i, 0, false), lax::index_in_dim(k, i, 0, false));
    EXPECT_EQ(floats(lax::index_in_dim(both, i, 0, false)), floats(one));
  }
}

TEST(ConvErrors, NameTheArgument) {
  Array x = counting({1, 4, 5}), k = counting({6, 2, 2});
  EXPECT_THROW(lax::conv(x, k, {1}, "VALID"), ValueError);
  EXPECT_THROW(lax::conv_general_dilated(x, k, {.feature_group_count = 3}), ValueError);
  EXPECT_THROW(lax::conv_general_dilated(x, counting({6, 4}), {}), TypeError);
  EXPECT_THROW(lax::conv_general_dilated(x, k, {.padding_mode = "SAME", .lhs_dilation = {2}, .feature_group_count = 2}),
               ValueError);
}

}  // namespace
}  // namespace capibara
