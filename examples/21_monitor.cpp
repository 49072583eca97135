// A monitored training run: live rates and loss, an alert when the loss has fallen, a machine-readable log.
#include <capibara/capibara.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>

namespace jax = capibara::jax;
namespace jnp = capibara::jax::numpy;
using capibara::Array;

int main() {
  const Array x = jax::random::normal(jax::random::key(0), {.shape = {256, 64}});
  const Array y = jnp::matmul(x, jax::random::normal(jax::random::key(1), {.shape = {64, 1}}));
  Array w = jnp::zeros({64, 1});
  auto loss = [&](const Array& weights) { return jnp::mean(jnp::square(jnp::matmul(x, weights) - y)); };
  const auto step = jax::jit([&](const Array& weights) {
    const auto [value, slope] = jax::value_and_grad(loss)(weights);
    return std::tuple{value, weights - 0.1 * slope};
  });

  // With .port = 9090 a browser shows curves at http://127.0.0.1:9090, and Prometheus scrapes /metrics.
  std::string folder = std::filesystem::temp_directory_path() / "capibara_monitor_XXXXXX";
  const std::string file = std::string(::mkdtemp(folder.data())) + "/monitor.jsonl";
  capibara::Monitor monitor({.update_seconds = 0.05, .log_file = file});
  std::atomic<bool> low = false;
  monitor.set_alert({.metric = "loss", .condition = "<", .threshold = 0.5, .action = [&] { low = true; }});
  monitor.start();
  int steps = 0;
  for (; steps < 5000 || (!low && steps < 1000000); ++steps) {
    auto [value, next] = step(w);
    w = next;
    monitor.step(value, x.shape()[0]);  // does not wait for the loss
  }
  w.block_until_ready();
  const capibara::Metrics seen = monitor.metrics();
  monitor.stop();

  const bool counted = seen.at("steps") == steps && seen.at("tokens") == 256.0 * steps;
  std::printf("steps and tokens counted: %s\n", counted ? "yes" : "no");
  std::printf("told that the loss is below 0.5: %s\n", low ? "yes" : "no");
  std::printf("programs compiled: %s\n", seen.at("compilations") >= 1 ? "yes" : "no");
  std::fprintf(stderr, "%.0f steps/s, %.2f GFLOP/s, %.1f %% of this machine's peak\n", seen.at("steps_per_second"),
               1000 * seen.at("current_tflops"), 100 * seen.at("utilization"));  // differs from run to run

  std::string last;
  std::ifstream log(file);
  for (std::string line; std::getline(log, line);) last = line;
  const bool holds = last.find("\"loss\"") != std::string::npos;
  std::printf("the last line of the log holds the loss: %s\n", holds ? "yes" : "no");
  std::filesystem::remove_all(folder);
}
