// One mesh over the devices of all processes: capibara launch -n 4 --devices 2 -- 15_mesh_of_processes
#include <capibara/capibara.h>

#include <cstdio>

using capibara::Array;
using capibara::Arrays;
using capibara::PartitionSpec;
namespace jax = capibara::jax;
namespace jnp = capibara::jax::numpy;
namespace lax = capibara::jax::lax;

Arrays step(const Arrays& in) {
  auto loss = [&](const Array& up, const Array& down) {
    const Array out = lax::psum(jnp::matmul(jnp::tanh(jnp::matmul(in[2], up)), down), {"model"});
    return lax::pmean(jnp::mean(jnp::square(out - in[3])), {"data"});
  };
  const auto [value, grads] = jax::value_and_grad<0, 1>(loss)(in[0], in[1]);
  return {value, in[0] - 0.5f * std::get<0>(grads), in[1] - 0.5f * std::get<1>(grads)};
}

int main() {
  try {
    jax::distributed::initialize();
  } catch (const capibara::ValueError&) {
    jax::config::update("jax_num_cpu_devices", 8);  // not started by capibara launch: this process has all devices
  }
  const capibara::Mesh mesh{{"data", "model"}, {4, 2}, {}};
  const Array keys = jax::random::split(jax::random::key(5), 4);
  const Array x = jax::random::normal(keys(0), {.shape = {32, 16}});
  const Array y = jnp::tanh(jnp::matmul(x, jax::random::normal(keys(1), {.shape = {16, 4}})));
  const Array up = jax::random::normal(keys(2), {.shape = {16, 32}}) / 4.0f;
  const Array down = jax::random::normal(keys(3), {.shape = {32, 4}}) / 6.0f;

  const std::vector<PartitionSpec> specs = {{{{}, {"model"}}}, {{{"model"}}}, {{{"data"}}}, {{{"data"}}}};
  auto mapped = jax::shard_map(
      step, {.mesh = jax::make_sharding(mesh, {}), .in_specs = specs, .out_specs = {{}, specs[0], specs[1]}});
  auto train = jax::jit([mapped](const Arrays& in) { return mapped(in); });
  Arrays in = {up, down, x, y};
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = jax::device_put(in[i], jax::make_sharding(mesh, specs[i]));
  for (int i = 0; i < 5; ++i) {
    const Arrays out = train(in);  // every process runs every step
    in[0] = out[1], in[1] = out[2];
    if (jax::process_index() == 0) std::printf("step %d: loss %.6f\n", i, out[0].item<float>());
  }
  if (jax::process_index() == 0) std::printf("%d devices\n", int(mesh.size()));
  if (jax::process_count() > 1) jax::distributed::shutdown();
}
