// Data-parallel training: each device has all parameters and its part of the batch, and gradients are averaged.
#include <capibara/capibara.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

using capibara::Array;
using capibara::Arrays;
using capibara::PartitionSpec;
namespace jax = capibara::jax;
namespace jnp = capibara::jax::numpy;
namespace lax = capibara::jax::lax;

Array loss(const Array& up, const Array& down, const Array& x, const Array& y) {
  return jnp::mean(jnp::square(jnp::matmul(jnp::tanh(jnp::matmul(x, up)), down) - y));
}

Arrays step(const Arrays& in) {
  const Array &up = in[0], &down = in[1], &x = in[2], &y = in[3];
  // pmean gives the loss of the whole batch; differentiating it inserts the sum of gradients over the devices.
  auto of_all = [&](const Array& u, const Array& d) { return lax::pmean(loss(u, d, x, y), {"data"}); };
  const auto [value, grads] = jax::value_and_grad<0, 1>(of_all)(up, down);
  return {value, up - 0.5f * std::get<0>(grads), down - 0.5f * std::get<1>(grads)};
}

int main() {
  jax::config::update("jax_num_cpu_devices", 8);
  const Array keys = jax::random::split(jax::random::key(0), 4);
  const Array x = jax::random::normal(keys(0), {.shape = {64, 16}});
  const Array y = jnp::tanh(jnp::matmul(x, jax::random::normal(keys(1), {.shape = {16, 4}})));
  Array up = jax::random::normal(keys(2), {.shape = {16, 32}}) / 4.0f;
  Array down = jax::random::normal(keys(3), {.shape = {32, 4}}) / 6.0f;

  const PartitionSpec whole, rows{{{"data"}}};
  auto mapped = jax::shard_map(step, {.mesh = jax::make_sharding({{"data"}, {8}, {}}, {}),
                                      .in_specs = {whole, whole, rows, rows},
                                      .out_specs = {whole, whole, whole}});
  auto train = jax::jit([mapped](const Arrays& in) { return mapped(in); });
  auto alone = jax::jit(loss);

  float worst = 0;
  for (int i = 0; i < 5; ++i) {
    const float expected = alone(up, down, x, y).item<float>();
    const Arrays out = train(Arrays{up, down, x, y});
    const float value = out[0].item<float>();
    up = out[1], down = out[2];
    worst = std::max(worst, std::abs(value - expected));
    std::printf("step %d: loss %.4f\n", i, value);
  }
  std::printf("8 devices have the loss of one: %s\n", worst < 1e-6f ? "yes" : "no");
}
