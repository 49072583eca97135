// Tensor-parallel training on a mesh of two axes: one splits the batch, the other each layer's hidden units.
#include <capibara/capibara.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

using capibara::Array;
using capibara::Arrays;
using capibara::PartitionSpec;
namespace jax = capibara::jax;
namespace jnp = capibara::jax::numpy;
namespace lax = capibara::jax::lax;

Array loss(const Arrays& params, Array x, const Array& y, const std::function<Array(const Array&)>& summed) {
  for (std::size_t i = 0; i < params.size(); i += 2) {
    // Each device has some columns of the first matrix and the same rows of the second: one psum per layer.
    const Array hidden = jnp::tanh(jnp::matmul(x, params[i]));
    x = x + summed(jnp::matmul(hidden, params[i + 1]));
  }
  return jnp::mean(jnp::square(x - y));
}

Arrays step(const Arrays& in) {
  const Arrays params(in.begin(), in.end() - 2);
  const Array &x = in[in.size() - 2], &y = in.back();
  auto of_all = [&](const Arrays& p) {
    return lax::pmean(loss(p, x, y, [](const Array& h) { return lax::psum(h, {"model"}); }), {"data"});
  };
  const auto [value, grads] = jax::value_and_grad(of_all)(params);
  Arrays out{value};
  for (std::size_t i = 0; i < params.size(); ++i) out.push_back(params[i] - 0.5f * grads[i]);
  return out;
}

int main() {
  jax::config::update("jax_num_cpu_devices", 8);
  const Array keys = jax::random::split(jax::random::key(2), 6);
  const Array x = jax::random::normal(keys(0), {.shape = {32, 16}});
  const Array y = jnp::sin(jnp::matmul(x, jax::random::normal(keys(1), {.shape = {16, 16}})));
  Arrays params;
  for (int i = 2; i < 6; i += 2) {
    params.push_back(jax::random::normal(keys(i), {.shape = {16, 32}}) / 4.0f);
    params.push_back(jax::random::normal(keys(i + 1), {.shape = {32, 16}}) / 8.0f);
  }
  const PartitionSpec whole, batch{{{"data"}}}, up{{{}, {"model"}}}, down{{{"model"}}};
  auto mapped = jax::shard_map(step, {.mesh = jax::make_sharding({{"data", "model"}, {4, 2}, {}}, {}),
                                      .in_specs = {up, down, up, down, batch, batch},
                                      .out_specs = {whole, up, down, up, down}});
  auto train = jax::jit([mapped](const Arrays& in) { return mapped(in); });

  float worst = 0;
  for (int i = 0; i < 5; ++i) {
    const float expected = loss(params, x, y, [](const Array& h) { return h; }).item<float>();
    Arrays in = params;
    in.insert(in.end(), {x, y});
    const Arrays out = train(in);
    params.assign(out.begin() + 1, out.end());
    worst = std::max(worst, std::abs(out[0].item<float>() - expected));
    std::printf("step %d: loss %.4f\n", i, out[0].item<float>());
  }
  const Array shard = jax::addressable_shards(params[0])[0];
  std::printf("each device has %d x %d of %d x %d\n", int(shard.shape(0)), int(shard.shape(1)), int(params[0].shape(0)),
              int(params[0].shape(1)));
  std::printf("8 devices have the loss of one: %s\n", worst < 1e-5f ? "yes" : "no");
}
