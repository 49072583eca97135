// RMS norm, softmax and cross-entropy: their values, derivatives and batches against plain compositions.
#include <capibara/capibara.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/pjrt/prepare.h"
#include "kernels/checks.h"

namespace capibara::kernels {
namespace {

namespace jnp = jax::numpy;

void expect_close(const Array& got, const Array& want, double tolerance) {
  ASSERT_EQ(to_string(got.type()), to_string(want.type()));
  const auto a = got.to_vector<double>(), b = want.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance) << "element " << i;
}

Array plain_rms(const Array& x, const Array& scale) {
  return x / jnp::sqrt(jnp::mean(x * x, {.axis = -1, .keepdims = true}) + 1e-6) * scale;
}

Array plain_loss(const Array& logits, const Array& labels) {
  const Array logs = jax::nn::log_softmax(logits);
  return -jnp::squeeze(jnp::take_along_axis(logs, jnp::expand_dims(labels, -1), {.axis = -1}), -1);
}

// Short rows, odd rows, and rows that the GPU kernel splits into one, two and four pieces per thread.
TEST(RmsNorm, HasTheValuesAndGradientsOfItsDefinition) {
  for (const Shape& shape : {Shape{2, 3, 9}, Shape{3, 64}, Shape{70, 1028}, Shape{2, 4096}, Shape{3, 8192}}) {
    const Array x = drawn(0, shape), scale = drawn(1, {shape.back()}), weights = drawn(2, shape);
    expect_close(rms_norm(x, scale), plain_rms(x, scale), 1e-5);
    expect_close(jax::jit([](const Array& a, const Array& s) { return rms_norm(a, s); })(x, scale), plain_rms(x, scale),
                 1e-5);
    auto loss = [&](auto norm) {
      return jax::grad<0, 1>(
          [norm, weights](const Array& a, const Array& s) { return jnp::sum(norm(a, s) * weights); });
    };
    const auto got = loss([](const Array& a, const Array& s) { return rms_norm(a, s); })(x, scale);
    const auto want = loss(plain_rms)(x, scale);
    expect_close(std::get<0>(got), std::get<0>(want), 1e-4);
    expect_close(std::get<1>(got), std::get<1>(want), 1e-4);
  }
}

TEST(Softmax, IsJaxsAlongAnyAxis) {
  const Array x = drawn(0, {4, 5, 6});
  for (int64_t axis : {0, 1, 2, -1, -3})
    expect_close(softmax(x, {.axis = axis}), jax::nn::softmax(x, {.axis = axis}), 1e-6);
  const Array weights = drawn(1, {4, 5, 6});
  auto gradient = [&](auto function) {
    return jax::grad<0>([function, weights](const Array& a) { return jnp::sum(function(a) * weights); })(x);
  };
  expect_close(gradient([](const Array& a) { return softmax(a); }),
               gradient([](const Array& a) { return jax::nn::softmax(a); }), 1e-5);
}

// Rows that the GPU kernel keeps in registers, and longer ones, which it reads twice; masked elements.
TEST(Softmax, TakesRowsOfAnyLength) {
  for (int64_t columns : {1, 33, 1000, 8192, 10001}) {
    Array x = drawn(columns, {3, columns});
    if (columns > 1) x = jnp::where(x < -1, Array(-std::numeric_limits<float>::infinity()), x);
    expect_close(softmax(x), jax::nn::softmax(x), 1e-6);
    expect_close(softmax(x.astype(DType::bfloat16)).astype(DType::float32), jax::nn::softmax(x), 1e-2);
  }
}

TEST(CrossEntropy, HasTheValuesAndGradientsOfItsDefinition) {
  const Array logits = drawn(0, {4, 7}), labels = array<int32_t>({0, 6, 3, 3});
  expect_close(cross_entropy(logits, labels), plain_loss(logits, labels), 1e-5);
  auto gradient = [&](auto function) {
    return jax::grad<0>([function, labels](const Array& x) { return jnp::sum(function(x, labels) * 2.0f); })(logits);
  };
  expect_close(gradient([](const Array& x, const Array& l) { return cross_entropy(x, l); }), gradient(plain_loss),
               1e-5);
  const Array batched =
      jax::vmap([&](const Array& row, const Array& l) { return cross_entropy(row, l); })(logits, labels);
  expect_close(batched, plain_loss(logits, labels), 1e-5);
}

TEST(CrossEntropy, IgnoresOneLabelAndMarksThoseBeyondTheClasses) {
  const Array logits = drawn(0, {4, 3}), labels = array<int32_t>({1, 5, -1, -100});
  const auto losses = cross_entropy(logits, labels).to_vector<double>();
  EXPECT_FALSE(std::isnan(losses[0]));
  EXPECT_TRUE(std::isnan(losses[1]));
  EXPECT_TRUE(std::isnan(losses[2]));
  EXPECT_EQ(losses[3], 0);
  EXPECT_EQ(cross_entropy(logits, labels, {.ignore_index = 5}).to_vector<double>()[1], 0);
}

TEST(CrossEntropy, StaysOneEquationForwardsAndBackwards) {
  const Array logits = jnp::ones({4, 7}), labels = jnp::zeros({4}, {.dtype = DType::int32});
  auto loss = [labels](const Array& x) { return jnp::sum(cross_entropy(x, labels)); };
  const std::string text = jax::make_jaxpr(jax::grad<0>(jax::jit(loss)))(logits).to_string();
  EXPECT_NE(text.find("= cross_entropy["), std::string::npos) << text;
  EXPECT_NE(text.find("= cross_entropy_grad["), std::string::npos) << text;
  EXPECT_EQ(text.find(" exp "), std::string::npos) << text;
}

TEST(FastLayerNorm, HasOptionalWeights) {
  const Array x = drawn(0, {3, 8}), weight = drawn(1, {8}), bias = drawn(2, {8});
  expect_close(fast_layer_norm(x), layer_norm(x, jnp::ones({8}), jnp::zeros({8})), 1e-6);
  expect_close(fast_layer_norm(x, {.weight = weight, .bias = bias, .memory_efficient = true}),
               layer_norm(x, weight, bias), 1e-6);
}

// ---- CUDA --------------------------------------------------------------------------------------------------------

std::string cuda_text(const auto& function, const Arrays& inputs) {
  const Program program = jax::make_jaxpr(function)(inputs);
  return pjrt::prepare(program, {}, {.cuda_kernels = true, .cusolver = {}}).text;
}

bool calls(const std::string& text, const std::string& target) {
  return text.find("@capibara_" + target + "(") != std::string::npos;
}

TEST(NormsCuda, GoOutAsCallsOfTheirKernels) {
  auto rms = [](const Arrays& in) {
    return jax::grad<0>([&](const Array& x) { return jnp::sum(rms_norm(x, in[1])); })(in[0]);
  };
  auto shares = [](const Arrays& in) {
    return jax::grad<0>([](const Array& x) { return jnp::sum(softmax(x) * x); })(in[0]);
  };
  for (DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    const Arrays inputs = {jnp::ones({5, 24}, {.dtype = dtype}), jnp::ones({24}, {.dtype = dtype})};
    for (const char* target : {"rms_norm", "rms_norm_grad"})
      EXPECT_TRUE(calls(cuda_text(rms, inputs), target)) << target << to_string(dtype);
    for (const char* target : {"softmax", "softmax_grad"})
      EXPECT_TRUE(calls(cuda_text(shares, inputs), target)) << target << to_string(dtype);
  }
  // Softmax takes rows of any length, RMS norm rows of multiples of 16 bytes.
  const Arrays odd = {jnp::ones({5, 7}), jnp::ones({7})};
  EXPECT_TRUE(calls(cuda_text(shares, odd), "softmax"));
  EXPECT_FALSE(calls(cuda_text(rms, odd), "rms_norm"));
  EXPECT_FALSE(calls(cuda_text(shares, {jnp::ones({0, 8})}), "softmax"));
}

TEST(CrossEntropyCuda, GoesOutAsCallsOfItsKernels) {
  auto loss = [](const Arrays& in) {
    return jax::grad<0>([&](const Array& x) {
      return jnp::sum(cross_entropy(x, in[1], {.label_smoothing = 0.25, .ignore_index = 2}));
    })(in[0]);
  };
  const Array logits = jnp::ones({4, 7});
  const std::string text = cuda_text(loss, {logits, jnp::zeros({4}, {.dtype = DType::int32})});
  EXPECT_TRUE(calls(text, "cross_entropy")) << text;
  EXPECT_TRUE(calls(text, "cross_entropy_grad")) << text;
  EXPECT_NE(text.find("label_smoothing = 2.5"), std::string::npos) << text;
  EXPECT_NE(text.find("ignore_index = 2 : i64"), std::string::npos) << text;
  EXPECT_FALSE(calls(cuda_text(loss, {logits, jnp::zeros({4}, {.dtype = DType::int16})}), "cross_entropy"));
}

}  // namespace
}  // namespace capibara::kernels
