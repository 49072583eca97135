// Custom derivatives, and a small network trained with them: a step function learns by a straight-through gradient.
#include <capibara/capibara.h>
#include <capibara/nn.h>
#include <capibara/numpy/contraction.h>
#include <capibara/numpy/creation.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/reductions.h>

#include <iostream>
#include <tuple>

using capibara::Array;
namespace jax = capibara::jax;
namespace jnp = capibara::jax::numpy;

struct Network {
  Array inner, bias, outer;
};
CAPIBARA_TREE(Network, inner, bias, outer)

int main() {
  // The plain derivative of log(1 + exp(x)) overflows; the rule avoids exp(x) in a numerator.
  auto soft = jax::custom_jvp([](Array x) { return jnp::log(1.0f + jnp::exp(x)); }, "soft");
  soft.defjvp([&soft](const std::tuple<Array>& primals, const std::tuple<Array>& tangents) {
    Array x = std::get<0>(primals);
    return std::tuple(soft(x), (1.0f - 1.0f / (1.0f + jnp::exp(x))) * std::get<0>(tangents));
  });
  auto plain = [](Array x) { return jnp::log(1.0f + jnp::exp(x)); };
  std::cout << "slope at 100: own " << jax::grad([&](Array x) { return soft(x); })(Array(100.0f)) << " plain "
            << jax::grad(plain)(Array(100.0f)) << "\n";

  // The identity, whose cotangent is clipped in the backward pass.
  auto clipped = jax::custom_vjp([](Array x) { return x; }, "clipped");
  clipped.defvjp(
      [](Array x) { return std::pair(x, std::monostate{}); },
      [](std::monostate, Array cotangent) { return std::tuple(jnp::clip(cotangent, {.min = -1.0f, .max = 1.0f})); });
  Array x = capibara::array<float>({0.1f, 2.0f});
  std::cout << "clipped " << jax::grad([&](Array v) { return jnp::sum(jnp::square(clipped(v))); })(x) << "\n";

  // The derivative of a step is zero everywhere; the straight-through rule uses the sigmoid's derivative instead.
  auto step = jax::custom_jvp([](Array v) { return (v > 0.0f).astype(capibara::DType::float32); }, "step");
  step.defjvp([&step](const std::tuple<Array>& primals, const std::tuple<Array>& tangents) {
    Array s = jax::nn::sigmoid(std::get<0>(primals));
    return std::tuple(step(std::get<0>(primals)), s * (1.0f - s) * std::get<0>(tangents));
  });

  Array inputs = capibara::array<float>({{0, 0}, {0, 1}, {1, 0}, {1, 1}}),
        targets = capibara::array<float>({0, 1, 1, 0});
  auto predict = [step](const Network& net, const Array& in) {
    return jnp::matmul(step(jnp::matmul(in, net.inner) + net.bias), net.outer);
  };
  auto loss = [=](Network net) { return jnp::mean(jnp::square(predict(net, inputs) - targets)); };
  auto update = jax::jit([=](Network net) {
    auto [value, gradient] = jax::value_and_grad(loss)(net);
    return std::tuple(value, jax::tree::map([](Array p, Array g) { return p - 0.1f * g; }, net, gradient));
  });
  Array keys = jax::random::split(jax::random::key(1), 2);
  Network net{jax::random::normal(keys(0), {.shape = {2, 16}}), jnp::full({16}, -0.5f),
              0.25f * jax::random::normal(keys(1), {.shape = {16}})};
  for (int iteration = 0; iteration <= 60; ++iteration) {
    Array value;
    std::tie(value, net) = update(net);
    if (iteration % 15 == 0)
      std::cout << "iteration " << iteration << " loss " << jnp::round(value, {.decimals = 4}) << "\n";
  }
  std::cout << "exclusive or " << jnp::round(predict(net, inputs), {.decimals = 2}) << "\n";
}
