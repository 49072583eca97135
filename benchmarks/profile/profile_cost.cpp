// The cost of taking a profile: runs programs alternately with and without one.
#include <capibara/capibara.h>
#include <capibara/profile.h>
#include <capibara/training.h>

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

using namespace capibara;
namespace jnp = capibara::jax::numpy;
namespace lax = capibara::jax::lax;

namespace {

double seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Ratios of the time with a profile to the time without: of the minimum and the median wall time of a run, and of the
// processor time of all runs, which other processes disturb least. A run takes at least about 5 ms on each side.
void report(const char* what, int turns, const std::function<void()>& call) {
  call();
  profile::start();
  call();
  profile::stop();
  double once = 1;
  for (int i = 0; i < 5; ++i) {
    const double begin = seconds(CLOCK_MONOTONIC);
    call();
    once = std::min(once, seconds(CLOCK_MONOTONIC) - begin);
  }
  const int calls = std::clamp(static_cast<int>(0.005 / once), 1, 10000);
  struct Side {
    std::vector<double> times;
    double processor = 0;
  } off, on;
  auto turn = [&](Side& side) {
    const double begin = seconds(CLOCK_MONOTONIC), worked = seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < calls; ++i) call();
    side.processor += seconds(CLOCK_PROCESS_CPUTIME_ID) - worked;
    side.times.push_back((seconds(CLOCK_MONOTONIC) - begin) / calls);
  };
  std::size_t events = 0;
  for (int i = 0; i < turns; ++i) {
    turn(off);
    profile::start();
    turn(on);
    events = profile::stop().events.size();
  }
  std::sort(off.times.begin(), off.times.end());
  std::sort(on.times.begin(), on.times.end());
  std::printf("%-34s %10.1f %10.1f %8.3f %8.3f %10.3f %8zu\n", what, off.times[0] * 1e6, on.times[0] * 1e6,
              on.times[0] / off.times[0], on.times[on.times.size() / 2] / off.times[off.times.size() / 2],
              on.processor / off.processor, events / static_cast<std::size_t>(calls));
}

Array filled(const Shape& shape, double value = 0.05) { return lax::full(shape, value, DType::float32); }

}  // namespace

int main(int count, char** values) {
  const int turns = count > 1 ? std::atoi(values[1]) : 25;
  std::printf("%-34s %10s %10s %8s %8s %10s %8s\n", "program", "off us", "on us", "least", "median", "processor",
              "events");

  training::LanguageModelConfig shape;
  shape.vocabulary = 512, shape.width = 128, shape.hidden = 256,
  shape.layers = {"attention+mlp", "attention+mlp", "attention+mlp"};
  const training::LanguageModel model(shape);
  const training::Parameters parameters = model.init(jax::random::key(0));
  const Array tokens = lax::full({8, 129}, 0, DType::int32);
  const auto gpt = jax::jit(jax::grad([&](training::Parameters p, Array t) { return model.loss(p, t); }));
  report("GPT, gradient, 8 x 128 tokens", turns, [&] { gpt(parameters, tokens).begin()->second.block_until_ready(); });

  const Array x = filled({256, 512}), a = filled({512, 512}), b = filled({512, 10});
  const auto mlp = jax::jit(jax::grad([](Array w, Array v, Array in) {
    return jnp::mean(jnp::square(lax::dot(jnp::tanh(lax::dot(jnp::tanh(lax::dot(in, w)), w)), v)));
  }));
  report("MLP, gradient, batch 256", turns, [&] { mlp(a, b, x).block_until_ready(); });

  const Array state = filled({32, 64}), weight = filled({64, 64}), inputs = filled({512, 32, 64});
  const auto recurrent = jax::jit([](Array h, Array w, Array xs) {
    return lax::scan(
               [&](Array carry, Array in) {
                 Array next = jnp::tanh(lax::dot(carry, w) + in);
                 return std::pair(next, jnp::sum(next));
               },
               h, xs)
        .second;
  });
  report("scan, 512 x [32, 64] recurrence", turns, [&] { recurrent(state, weight, inputs).block_until_ready(); });

  const auto tiny = jax::jit([](Array h) {
    return lax::fori_loop(
        0, 10000, [](Array, Array c) { return c * 0.999 + 0.001; }, h);
  });
  const Array few = filled({8});
  report("scan, 10000 x [8]", turns, [&] { tiny(few).block_until_ready(); });

  const Array large = filled({1 << 20});
  const auto elementwise = jax::jit([](Array v) { return jnp::tanh(v) * 0.5 + jnp::sin(v); });
  report("elementwise, 1 M", turns, [&] { elementwise(large).block_until_ready(); });
  const Array small = filled({16384});
  report("elementwise, 16 k", turns, [&] { elementwise(small).block_until_ready(); });
}
