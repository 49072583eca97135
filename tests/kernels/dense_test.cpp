// Dense operations: matmuls, einsum with a memory limit, GELU with dropout, Adam, operations on lists.
#include <capibara/capibara.h>

#include <gtest/gtest.h>

#include <cmath>

#include "backends/kernel_cases.h"
#include "backends/pjrt/prepare.h"

namespace capibara::kernels {
namespace {

namespace jnp = jax::numpy;

void expect_same(const Array& got, const Array& want, double tolerance) {
  ASSERT_EQ(to_string(got.type()), to_string(want.type()));
  const auto a = got.to_vector<double>(), b = want.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance) << "element " << i;
}

Array random_array(int64_t seed, Shape shape) {
  return jax::random::normal(jax::random::key(seed), {.shape = std::move(shape)});
}

TEST(AdaptiveMatmul, IsMatmulUnderEveryStrategy) {
  const Array a = random_array(0, {3, 5, 24}), b = random_array(1, {24, 6});
  for (const char* strategy : {"auto", "local", "split_k", "collective"})
    expect_same(adaptive_matmul(a, b, {.tpu_strategy = strategy}), jnp::matmul(a, b), 1e-4);
  EXPECT_THROW(adaptive_matmul(a, b, {.tpu_strategy = "none"}), ValueError);
  EXPECT_THROW(adaptive_matmul(a, a), TypeError);
}

TEST(OptimizedMatmul, TransposesWithoutCopies) {
  const Array a = random_array(0, {24, 5}), b = random_array(1, {6, 24});
  const OptimizedMatmulOptions both{.transpose_a = true, .transpose_b = true};
  expect_same(optimized_matmul(a, b, both), jnp::matmul(a.T(), b.T()), 1e-4);
  const std::string text =
      jax::make_jaxpr([&](const Array& x, const Array& y) { return optimized_matmul(x, y, both); })(a, b).to_string();
  EXPECT_NE(text.find("dot_general"), std::string::npos) << text;
}

TEST(EinsumOptimize, KeepsIntermediatesBelowItsLimit) {
  const Arrays operands = {random_array(0, {12, 4}), random_array(1, {12, 5}), random_array(2, {12, 6})};
  const Array want = jnp::einsum("ia,ib,ic->abc", operands);
  for (int64_t limit : {1000, 60, 5, 1})
    expect_same(einsum_optimize("ia,ib,ic->abc", operands, {.memory_efficient = true, .memory_limit = limit}), want,
                1e-4);
  const std::string plan =
      einsum_plan("ia,ib,ic->abc", {{12, 4}, {12, 5}, {12, 6}}, {.memory_efficient = true, .memory_limit = 60});
  EXPECT_EQ(plan.find("largest intermediate 60 elements\nsliced along "), 0u) << plan;
}

TEST(GeluDropout, DropsByKeyAndPosition) {
  const Array x = random_array(0, {100, 37}), key = jax::random::key(7);
  const Array kept = fused_gelu_dropout(x, {.rate = 0.25, .key = key}), gelu = jax::nn::gelu(x);
  const auto got = kept.to_vector<double>(), want = gelu.to_vector<double>();
  int64_t zeros = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == 0)
      ++zeros;
    else
      EXPECT_NEAR(got[i], want[i] / 0.75, 1e-5);
  }
  EXPECT_NEAR(static_cast<double>(zeros) / static_cast<double>(got.size()), 0.25, 0.04);
  expect_same(jax::jit([key](const Array& a) { return fused_gelu_dropout(a, {.rate = 0.25, .key = key}); })(x), kept,
              1e-6);
  expect_same(fused_gelu_dropout(x, {.training = false}), gelu, 1e-6);
  EXPECT_THROW(fused_gelu_dropout(x, {.rate = 0.25}), ValueError);
}

TEST(GeluDropout, InPlaceDeletesItsArgumentOrIsRefused) {
  const Array key = jax::random::key(7), x = random_array(0, {64, 64});
  const Array want = fused_gelu_dropout(x, {.rate = 0.5, .key = key});
  Array given = x + 0.0f;
  given.block_until_ready();
  expect_same(fused_gelu_dropout(given, {.rate = 0.5, .key = key, .inplace = true}), want, 1e-6);
  EXPECT_TRUE(given.is_deleted());
  EXPECT_THROW(jax::jit([key](const Array& a) { return fused_gelu_dropout(a, {.key = key, .inplace = true}); })(x),
               ValueError);
}

// The key is two arbitrary words; sizes of less than one vector, one vector, and several threads' shares.
using GeluDropoutKernel = cpu::KernelTest;

TEST_F(GeluDropoutKernel, IsTheComposition) {
  const ArrayType key = cpu::type_of(DType::uint32, {2});
  std::vector<DType> dtypes = {DType::float32, DType::bfloat16};
#if defined(__aarch64__)
  dtypes.push_back(DType::float16);
#endif
  for (DType dtype : dtypes) {
    const double unit = cpu::epsilon_of(dtype);
    const cpu::Tolerance tolerance{1e-6 + 2 * unit, 1e-6 + 2 * unit};
    for (const Shape& shape : {Shape{1}, Shape{3, 5}, Shape{64}, Shape{65}, Shape{7, 300}, Shape{40, 1000}}) {
      const ArrayType x = cpu::type_of(dtype, shape);
      for (double rate : {0.0, 0.1, 0.5, 1.0}) {
        const Attrs attrs = {{"rate", rate}, {"approximate", true}};
        check_kernel({"gelu_dropout", {x, key}, attrs, {}, tolerance});
        check_kernel({"gelu_dropout_grad", {x, x, key}, attrs, {}, tolerance});
      }
    }
    const ArrayType x = cpu::type_of(dtype, {7, 30});
    check_kernel({"gelu_dropout", {x, key}, {{"rate", 0.0}, {"approximate", true}}, {cpu::Values::awkward}, tolerance});
  }
}

std::string dropout_text(DType dtype, bool approximate, bool cuda_kernels) {
  const Array x = jnp::ones({5, 13}, {.dtype = dtype}), key = jax::random::key(0);
  const Program program = jax::make_jaxpr([&](const Array& a, const Array& k) {
    return jax::grad<0>(
        [&](const Array& v) { return jnp::sum(fused_gelu_dropout(v, {.key = k, .approximate = approximate}) * v); })(a);
  })(x, key);
  return pjrt::prepare(program, {}, {.cuda_kernels = cuda_kernels, .cusolver = {}}).text;
}

TEST(GeluDropoutCuda, GoesOutAsCallsOfItsKernels) {
  for (DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    const std::string text = dropout_text(dtype, true, true);
    EXPECT_NE(text.find("@capibara_gelu_dropout("), std::string::npos) << text;
    EXPECT_NE(text.find("@capibara_gelu_dropout_grad("), std::string::npos) << text;
    EXPECT_NE(text.find("kept = 5.8982"), std::string::npos) << text;  // out of 65536, for a rate of 0.1
  }
  EXPECT_EQ(dropout_text(DType::float32, false, true).find("@capibara_"), std::string::npos);
  EXPECT_EQ(dropout_text(DType::float32, true, false).find("@capibara_"), std::string::npos);
}

TEST(AdamUpdate, IsAdam) {
  const Array p = random_array(0, {5}), g = random_array(1, {5}), zero = jnp::zeros({5});
  const AdamState state = adam_update({p}, {g}, {zero}, {zero}, 1, {.learning_rate = 0.1});
  // The first step is the learning rate times the gradient's sign.
  const auto next = state.parameters[0].to_vector<double>(), from = p.to_vector<double>(),
             slope = g.to_vector<double>();
  for (std::size_t i = 0; i < next.size(); ++i) EXPECT_NEAR(next[i], from[i] - 0.1 * (slope[i] > 0 ? 1 : -1), 1e-5);
  expect_same(state.means[0], g * 0.1f, 1e-6);
  EXPECT_THROW(adam_update({p}, {}, {zero}, {zero}, 1), ValueError);
}

TEST(BatchOperations, RunEachInput) {
  const Arrays inputs = {random_array(0, {3, 8}), random_array(1, {8}), random_array(2, {2, 2, 8})};
  for (bool parallel : {true, false}) {
    const Arrays results = batch_operations("softmax", inputs, {.parallel_execution = parallel});
    for (std::size_t i = 0; i < inputs.size(); ++i) expect_same(results[i], jax::nn::softmax(inputs[i]), 1e-6);
  }
  EXPECT_THROW(batch_operations("conv", inputs), ValueError);
}

}  // namespace
}  // namespace capibara::kernels
