// Fully sharded training: each device keeps a part of every parameter and all-gathers a layer's when it needs them.
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

Array loss(const Arrays& layers, Array x, const Array& y, const std::function<Array(const Array&)>& gathered) {
  for (const Array& w : layers) x = x + jnp::tanh(jnp::matmul(x, gathered(w)));
  return jnp::mean(jnp::square(x - y));
}

Arrays step(const Arrays& in) {
  const Arrays layers(in.begin(), in.end() - 2);
  const Array &x = in[in.size() - 2], &y = in.back();
  // The transpose of all_gather is psum_scatter: each device receives only the gradient of its own part. Recomputing
  // the all_gather in the backward pass keeps at most one layer unsharded.
  auto gathered = jax::checkpoint([](const Array& w) { return lax::all_gather(w, "data", {.tiled = true}); });
  auto of_all = [&](const Arrays& ws) { return lax::pmean(loss(ws, x, y, gathered), {"data"}); };
  const auto [value, grads] = jax::value_and_grad(of_all)(layers);
  Arrays out{value};
  for (std::size_t i = 0; i < layers.size(); ++i) out.push_back(layers[i] - 0.5f * grads[i]);
  return out;
}

int main() {
  jax::config::update("jax_num_cpu_devices", 8);
  const Array keys = jax::random::split(jax::random::key(1), 5);
  const Array x = jax::random::normal(keys(0), {.shape = {64, 16}});
  const Array y = jnp::sin(jnp::matmul(x, jax::random::normal(keys(1), {.shape = {16, 16}})));
  const capibara::Mesh mesh{{"data"}, {8}, {}};
  const PartitionSpec whole, rows{{{"data"}}};
  Arrays layers;
  for (int i = 2; i < 5; ++i) {
    const Array w = jax::random::normal(keys(i), {.shape = {16, 16}}) / 4.0f;
    layers.push_back(jax::device_put(w, jax::make_sharding(mesh, rows)));
  }
  auto mapped = jax::shard_map(step, {.mesh = jax::make_sharding(mesh, {}),
                                      .in_specs = {rows, rows, rows, rows, rows},
                                      .out_specs = {whole, rows, rows, rows}});
  auto train = jax::jit([mapped](const Arrays& in) { return mapped(in); });
  std::printf("a layer of %d numbers, %d on each device\n", int(layers[0].size()),
              int(jax::addressable_shards(layers[0])[0].size()));

  float worst = 0;
  for (int i = 0; i < 5; ++i) {
    const float expected = loss(layers, x, y, [](const Array& w) { return w; }).item<float>();
    Arrays in = layers;
    in.insert(in.end(), {x, y});
    const Arrays out = train(in);
    layers.assign(out.begin() + 1, out.end());
    worst = std::max(worst, std::abs(out[0].item<float>() - expected));
    std::printf("step %d: loss %.4f\n", i, out[0].item<float>());
  }
  std::printf("8 devices have the loss of one: %s\n", worst < 1e-5f ? "yes" : "no");
}
