// Kernels measured in C++: values of their compositions, figures of the last call, options that have an effect.
#include <capibara/lax.h>
#include <capibara/random.h>
#include <capibara/tpu.h>
#include <capibara/transforms.h>
#include <gtest/gtest.h>

namespace capibara::tpu {
namespace {

Array drawn_at(int number, const Shape& shape) {
  return jax::random::normal(jax::random::key(number), {.shape = shape});
}

double max_difference(const Array& got, const Array& want) {
  const std::vector<double> a = got.to_vector<double>(), b = want.to_vector<double>();
  double most = a.size() == b.size() ? 0 : 1e30;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

// a b^T in float64, by plain loops.
std::vector<double> exact_product(const Array& a, const Array& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  const auto rows = static_cast<std::size_t>(a.shape(0)), columns = static_cast<std::size_t>(b.shape(0)),
             inner = static_cast<std::size_t>(a.shape(1));
  std::vector<double> result(rows * columns);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      for (std::size_t k = 0; k < inner; ++k) result[i * columns + j] += x[i * inner + k] * y[j * inner + k];
    }
  }
  return result;
}

TEST(MeasuredKernels, OptionsDoWhatTheySay) {
  const Array a = drawn_at(0, {64, 300}), b = drawn_at(1, {64, 300});
  const std::vector<double> exact = exact_product(a, b);
  auto error = [&](KernelOptions options) {
    const std::vector<double> got =
        TPUv4Kernels(options).optimized_matmul(a, b, {.transpose_b = true, .precision = ""}).to_vector<double>();
    double most = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) most = std::max(most, std::abs(got[i] - exact[i]));
    return most;
  };
  EXPECT_LT(error({}), 1e-3);
  EXPECT_GT(error({.precision = "bfloat16"}), 1e-3);
  EXPECT_LT(error({.enable_xla_fusion = false}), 1e-3);
  EXPECT_LT(error({.memory_layout_optimization = false}), 1e-3);
  EXPECT_THROW(TPUv4Kernels({.precision = "float8"}), ValueError);
  EXPECT_THROW(TPUv4Kernels({.optimization_level = "max"}), ValueError);
}

TEST(MeasuredKernels, FiguresAreOfTheLastCall) {
  TPUv4Kernels own;
  EXPECT_THROW(own.get_tflops(), ValueError);
  const Array large = drawn_at(0, {256, 256}), small = drawn_at(1, {8, 8});
  own.optimized_matmul(large, large);
  EXPECT_EQ(own.meter().last("test").operations, 2.0 * 256 * 256 * 256);
  EXPECT_GE(own.meter().last("test").held, 2 * 256 * 256 * 4);
  EXPECT_GT(own.get_tflops(), 0);
  own.optimized_matmul(small, small);
  const KernelMeasurement measured = own.meter().last("test");
  EXPECT_LE(measured.held, 3 * 8 * 8 * 4);
  jax::jit([&](const Array& x) { return own.optimized_matmul(x, x); })(large);  // inside a program: not measured
  EXPECT_EQ(own.meter().last("test").seconds, measured.seconds);
}

TEST(MeasuredKernels, ValuesAreThoseOfTheKernels) {
  const Array q = drawn_at(0, {1, 2, 32, 16}), k = drawn_at(1, {1, 2, 32, 16}), v = drawn_at(2, {1, 2, 32, 16});
  TPUv4Kernels own;
  EXPECT_LT(max_difference(own.flash_attention(q, k, v, {.causal = true}),
                           kernels::flash_attention(q, k, v, {.causal = true})),
            1e-5);
  const Array x = drawn_at(3, {8, 64}), weight = drawn_at(4, {64});
  EXPECT_LT(max_difference(own.fast_layer_norm(x, {.weight = weight}), kernels::fast_layer_norm(x, {.weight = weight})),
            1e-5);
  const Array key = jax::random::key(7);
  EXPECT_LT(max_difference(own.fused_gelu_dropout(x, {.rate = 0.5, .key = key}),
                           kernels::fused_gelu_dropout(x, {.rate = 0.5, .key = key})),
            2e-6);
  EXPECT_GT(max_difference(own.fused_gelu_dropout(x, {.rate = 0.5}), own.fused_gelu_dropout(x, {.rate = 0.5})), 0);
  const kernels::MoeRouting routing = own.moe_routing_kernel(drawn_at(5, {64, 8}), 8, 2);
  const std::vector<int64_t> load = routing.load.to_vector<int64_t>();
  int64_t sum = 0;
  for (const int64_t one : load) sum += one;
  EXPECT_EQ(sum, 128);
  const Arrays normed = own.batch_operations("softmax", {drawn_at(6, {4, 16}), drawn_at(7, {2, 8})});
  ASSERT_EQ(normed.size(), 2U);
  for (const double total : jax::lax::reduce_sum(normed[1], {.axes = {1}}).to_vector<double>())
    EXPECT_NEAR(total, 1, 1e-6);
}

TEST(MeasuredKernels, AnOperandGivesItsMemoryAndDropoutInJitNeedsAKey) {
  TPUv4Kernels own;
  const Array x = drawn_at(0, {64, 64});
  own.fused_gelu_dropout(x, {.rate = 0.1, .inplace = true});
  EXPECT_TRUE(x.is_deleted());
  auto inside = [&](const Array& y) { return own.fused_gelu_dropout(y, {.rate = 0.1}); };
  EXPECT_THROW(jax::jit(inside)(drawn_at(1, {4, 4})), ValueError);
}

TEST(MeasuredKernels, WhatIsKeptOfACallHoldsNoneOfItsArrays) {
  TPUv4Kernels own;
  Array x = drawn_at(0, {8, 64}), weight = drawn_at(1, {64});
  const std::weak_ptr<const ArrayBody> operand = x.body(), option = weight.body();
  own.fast_layer_norm(x, {.weight = weight});
  own.batch_operations("layer_norm", {x}, {.parameters = {{"weight", weight}, {"bias", weight}}});
  x = weight = Array();
  EXPECT_TRUE(operand.expired());
  EXPECT_TRUE(option.expired());
}

TEST(MeasuredKernels, ABenchmarkTimesProblemsOfKnownSize) {
  TPUv4Kernels own;
  const std::vector<KernelFigures> found = own.benchmark_kernels({"optimized_matmul", "fast_layer_norm"}, 0.02);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].problem, "1024 x 1024 x 1024");
  EXPECT_NEAR(found[0].throughput * 1e12 * found[0].latency_ms / 1e3 / (2.0 * 1024 * 1024 * 1024), 1, 0.01);
  EXPECT_GT(*found[1].memory_efficiency, 0);
  EXPECT_LE(*found[1].memory_efficiency, 1);
  EXPECT_EQ(TPUv4Kernels::benchmarked_kernels().size(), 12U);
  EXPECT_THROW(own.benchmark_kernels({"magic"}), ValueError);
}

}  // namespace
}  // namespace capibara::tpu
