// Several processes train one model, each on its own share of the data: capibara launch -n 4 -- 09_processes
#include <capibara/capibara.h>
#include <capibara/distributed.h>
#include <capibara/numpy/creation.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/reductions.h>

#include <cstdio>

using capibara::Array;
namespace jax = capibara::jax;
namespace jnp = capibara::jax::numpy;

Array mean_over_processes(const Array& value) {
  return jnp::mean(jax::multihost_utils::process_allgather(value), {.axis = 0});
}

int main() {
  try {
    jax::distributed::initialize();
  } catch (const capibara::ValueError&) {
    // not started by capibara launch: this is the only process
  }

  const int rows = 64 / jax::process_count(), first = rows * jax::process_index();
  const Array data = jnp::reshape(jnp::arange(128.0f), {64, 2});
  const Array x = data(capibara::slice(first, first + rows)) / 128.0f;
  const Array y = jnp::matmul(x, capibara::array<float>({3.0f, -2.0f})) + 0.5f;
  auto loss = [&](const Array& w, const Array& b) { return jnp::mean(jnp::square(jnp::matmul(x, w) + b - y)); };

  Array w = jnp::zeros({2}), b = capibara::array<float>({0.0f}).reshape({});
  auto step = jax::jit(jax::value_and_grad<0, 1>(loss));
  for (int i = 0; i < 5; ++i) {
    const auto [value, grads] = step(w, b);
    w = w - 0.5f * mean_over_processes(std::get<0>(grads));
    b = b - 0.5f * mean_over_processes(std::get<1>(grads));
    const float mean = mean_over_processes(value).item<float>();  // a collective: every process has to call it
    if (jax::process_index() == 0) std::printf("step %d: loss %.4f\n", i, mean);
  }

  jax::multihost_utils::sync_global_devices("end");
  if (jax::process_index() == 0) {
    const std::vector<float> weights = w.to_vector<float>();
    std::printf("w %.3f %.3f b %.3f\n", weights[0], weights[1], b.item<float>());
  }
  jax::distributed::shutdown();
}
