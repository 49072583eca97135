// Layer norm: its values, its derivative, its batches, and the text of its CUDA kernel's calls.
#include <capibara/capibara.h>
#include <capibara/kernels.h>

#include <gtest/gtest.h>

#include "backends/pjrt/prepare.h"

namespace capibara::kernels {
namespace {

namespace jnp = jax::numpy;
namespace lax = jax::lax;

Array plain(const Array& x, const Array& scale, const Array& bias) {
  const Array centered = x - jnp::mean(x, {.axis = -1, .keepdims = true});
  return centered * lax::rsqrt(jnp::mean(centered * centered, {.axis = -1, .keepdims = true}) + 1e-5) * scale + bias;
}

void expect_near(const Array& got, const Array& want, double tolerance) {
  ASSERT_EQ(to_string(got.type()), to_string(want.type()));
  const auto a = got.to_vector<double>(), b = want.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance) << "element " << i;
}

Array drawn(int64_t seed, Shape shape) { return jax::random::normal(jax::random::key(seed), {.shape = std::move(shape)}); }

TEST(LayerNorm, HasTheValuesOfItsDefinition) {
  const Array x = drawn(0, {4, 8}), scale = drawn(1, {8}), bias = drawn(2, {8});
  expect_near(layer_norm(x, scale, bias), plain(x, scale, bias), 1e-5);
  expect_near(jax::jit([](const Array& a, const Array& b, const Array& c) { return layer_norm(a, b, c); })(x, scale, bias), plain(x, scale, bias), 1e-5);
}

TEST(LayerNorm, HasTheGradientOfItsDefinition) {
  const Array x = drawn(0, {2, 3, 8}), scale = drawn(1, {8}), bias = drawn(2, {8}), weights = drawn(3, {2, 3, 8});
  const auto got = jax::grad<0, 1, 2>([&](const Array& a, const Array& b, const Array& c) { return jnp::sum(layer_norm(a, b, c) * weights); })(x, scale, bias);
  const auto want = jax::grad<0, 1, 2>([&](const Array& a, const Array& b, const Array& c) { return jnp::sum(plain(a, b, c) * weights); })(x, scale, bias);
  expect_near(std::get<0>(got), std::get<0>(want), 1e-4);
  expect_near(std::get<1>(got), std::get<1>(want), 1e-4);
  expect_near(std::get<2>(got), std::get<2>(want), 1e-4);
}

TEST(LayerNorm, MapsOverRowsAndOverScales) {
  const Array x = drawn(0, {5, 4, 8}), scale = drawn(1, {8}), scales = drawn(2, {5, 8}), bias = drawn(3, {8});
  expect_near(jax::vmap([&](const Array& a) { return layer_norm(a, scale, bias); })(x), plain(x, scale, bias), 1e-5);
  expect_near(jax::vmap([&](const Array& a, const Array& s) { return layer_norm(a, s, bias); })(x, scales),
              plain(x, jnp::expand_dims(scales, 1), bias), 1e-5);
}

TEST(LayerNorm, RefusesOtherSizesByName) {
  try {
    layer_norm(jnp::ones({2, 3}), jnp::ones({4}), jnp::ones({3}));
    FAIL() << "nothing was raised";
  } catch (const TypeError& error) {
    EXPECT_NE(std::string(error.what()).find("argument 'scale'"), std::string::npos) << error.what();
  }
}

TEST(LayerNorm, GoesOutAsCallsOfItsKernels) {
  const Program program = jax::make_jaxpr([](const Array& x, const Array& s, const Array& b) {
    return jax::grad<0, 1, 2>([](const Array& p, const Array& q, const Array& r) { return jnp::sum(layer_norm(p, q, r)); })(x, s, b);
  })(jnp::ones({64, 16}), jnp::ones({16}), jnp::ones({16}));
  const std::string with = pjrt::prepare(program, {}, {.cuda_kernels = true, .cusolver = {}}).text, without = pjrt::prepare(program, {}).text;
  EXPECT_NE(with.find("@capibara_layer_norm("), std::string::npos) << with;
  EXPECT_NE(with.find("@capibara_layer_norm_grad("), std::string::npos) << with;
  EXPECT_EQ(without.find("@capibara_"), std::string::npos);
}

}  // namespace
}  // namespace capibara::kernels
