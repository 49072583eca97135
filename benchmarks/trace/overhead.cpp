// The overhead of the library: one eager operation, one call of a compiled function, tracing, grad and lowering.
#include <capibara/capibara.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

using capibara::Array;
namespace jax = capibara::jax;
namespace lax = capibara::jax::lax;

namespace {

// Microseconds per call: the median of seven rounds of about 50 ms each.
double microseconds_per_call(const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  auto time = [&](int64_t calls) {
    auto start = Clock::now();
    for (int64_t i = 0; i < calls; ++i) call();
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  };
  double once = std::max(time(1), time(1));
  int64_t calls = std::clamp<int64_t>(static_cast<int64_t>(50'000 / std::max(once, 0.01)), 1, 1'000'000);
  std::vector<double> rounds;
  for (int i = 0; i < 7; ++i) rounds.push_back(time(calls) / static_cast<double>(calls));
  std::nth_element(rounds.begin(), rounds.begin() + 3, rounds.end());
  return rounds[3];
}

void print(const char* name, double microseconds) {
  std::printf("{\"benchmark\": \"%s\", \"microseconds\": %.3f}\n", name, microseconds);
  std::fflush(stdout);
}

constexpr int chain_length = 1000;

// A chain of chain_length multiplications and additions.
Array chain(const Array& x) {
  Array y = x;
  for (int i = 0; i < chain_length / 2; ++i) y = y * x + x;
  return lax::reduce_sum(y, {.axes = {0}});
}

}  // namespace

int main() {
  Array x = capibara::array<float>(std::vector<float>(8, 0.5f));
  auto compiled = jax::jit([](Array a) { return a + a; });
  compiled(x);
  print("eager add of 8 floats", microseconds_per_call([&] { (x + x).block_until_ready(); }));
  print("call of a jitted add of 8 floats", microseconds_per_call([&] { compiled(x).block_until_ready(); }));
  print("trace of 1000 operations", microseconds_per_call([&] { jax::make_jaxpr(chain)(x); }));
  print("trace of grad of 1000 operations", microseconds_per_call([&] { jax::make_jaxpr(jax::grad(chain))(x); }));
  print("trace and lowering of 1000 operations to text",
        microseconds_per_call([&] { jax::jit(chain).lower(x).as_text(); }));
  return 0;
}
