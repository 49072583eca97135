// What a profile costs while it is taken: programs with and without one, in turns.
#include <capibara/capibara.h>
#include <capibara/profile.h>
#include <capibara/training.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

using namespace capibara;
namespace jnp = capibara::jax::numpy;
namespace lax = capibara::jax::lax;

namespace {

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The least and the median of many turns; a turn takes at least about 5 ms on each side.
void report(const char* what, int turns, const std::function<void()>& call) {
  call();
  profile::start();
  call();
  profile::stop();
  const int calls = std::clamp(static_cast<int>(0.005 / seconds(call)), 1, 10000);
  std::vector<double> off, on;
  std::size_t events = 0;
  auto side = [&](std::vector<double>& times) {
    times.push_back(seconds([&] {
                      for (int i = 0; i < calls; ++i) call();
                    }) /
                    calls);
  };
  for (int turn = 0; turn < turns; ++turn) {
    side(off);
    profile::start();
    side(on);
    events = profile::stop().events.size();
  }
  std::sort(off.begin(), off.end());
  std::sort(on.begin(), on.end());
  std::printf("%-34s %10.1f %10.1f %8.3f %8.3f %9zu\n", what, off[0] * 1e6, on[0] * 1e6, on[0] / off[0],
              on[on.size() / 2] / off[off.size() / 2], events / static_cast<std::size_t>(calls));
}

Array filled(const Shape& shape, double value = 0.05) { return lax::full(shape, value, DType::float32); }

}  // namespace

int main(int count, char** values) {
  const int turns = count > 1 ? std::atoi(values[1]) : 25;
  std::printf("%-34s %10s %10s %8s %8s %9s\n", "program", "off us", "on us", "least", "median", "events");

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
