// Where the time of a training run goes: a profile of five steps, its table, and the share of matmuls.
#include <capibara/capibara.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace jax = capibara::jax;
namespace jnp = capibara::jax::numpy;
namespace profile = capibara::profile;
using capibara::Array;

int main() {
  const Array x = jax::random::normal(jax::random::key(0), {.shape = {256, 512}});
  Array w = jax::random::normal(jax::random::key(1), {.shape = {512, 512}}) * 0.04;
  auto loss = [&](const Array& weights) {
    const auto scope = jax::named_scope("network");
    return jnp::mean(jnp::square(jnp::tanh(jnp::matmul(x, weights))));
  };
  const auto step = jax::jit([&](const Array& weights) { return weights - 0.1 * jax::grad(loss)(weights); });
  w = step(w);  // compiles
  w.block_until_ready();

  profile::start();
  for (int number = 0; number < 5; ++number) {
    const profile::Step training(number);
    w = step(w);
    const profile::Span evaluation("wait for the weights");
    w.block_until_ready();
  }
  const profile::Profile taken = profile::stop();

  int steps = 0, executions = 0;
  for (const profile::Event& event : taken.events) {
    steps += event.kind == profile::EventKind::step;
    executions += event.kind == profile::EventKind::module_execution;
  }
  std::printf("%d steps, %d executions\n", steps, executions);
  const profile::Summary summary = profile::summarise(taken);
  double shares = 0, matmuls = 0;
  for (const profile::Row& row : summary.rows) {
    shares += row.share;
    if (row.kind == "matmul") matmuls += row.share;
  }
  std::printf("shares sum to %.2f\n", shares);
  std::printf("matmuls have rows of their own: %s\n", matmuls > 0 ? "yes" : "no");
  std::fprintf(stderr, "%s", profile::to_string(summary).c_str());  // times differ from run to run

  std::string folder = std::filesystem::temp_directory_path() / "capibara_profile_XXXXXX";
  const std::string file = std::string(::mkdtemp(folder.data())) + "/profile.json";
  profile::save(taken, file);  // capibara profile FILE shows it again
  const std::size_t rows = profile::summarise(profile::load(file)).rows.size();
  std::printf("read back: %zu sites\n", rows == summary.rows.size() ? rows : 0);
  std::filesystem::remove_all(folder);
}
