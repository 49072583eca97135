// Loops and branches inside a traced program: scan, while_loop, fori_loop, cond, associative_scan.
#include <capibara/capibara.h>
#include <capibara/numpy/creation.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/reductions.h>

#include <iostream>

using capibara::Array;
namespace jax = capibara::jax;
namespace jnp = capibara::jax::numpy;
namespace lax = capibara::jax::lax;

// A damped pendulum; returns all angles.
Array swing(const Array& angle, const Array& damping) {
  using State = std::pair<Array, Array>;
  auto step = [&](State state, std::monostate) {
    Array speed = state.second - 0.1f * (jnp::sin(state.first) + damping * state.second);
    Array moved = state.first + 0.1f * speed;
    return std::pair(State(moved, speed), moved);
  };
  return lax::scan(step, State(angle, 0.0f * angle), std::monostate{}, {.length = 6}).second;
}

int main() {
  std::cout << "pendulum " << swing(Array(1.0f), Array(0.5f)) << "\n";
  auto last = [](Array damping) { return swing(Array(1.0f), damping)(-1); };
  std::cout << "how damping moves its end " << jax::grad(last)(Array(0.5f)) << "\n";

  // The trip count is known only at run time.
  auto halvings = jax::jit([](Array x) {
    auto [value, count] =
        lax::while_loop([](std::pair<Array, Array> state) { return state.first > 1.0f; },
                        [](std::pair<Array, Array> state) { return std::pair(state.first / 2.0f, state.second + 1); },
                        std::pair(x, Array(0)));
    return count;
  });
  std::cout << "halvings of 1000: " << halvings(Array(1000.0f)) << "\n";

  Array root = lax::fori_loop(
      0, 5, [](Array, Array x) { return 0.5f * (x + 2.0f / x); }, Array(1.0f));
  std::cout << "square root of 2: " << root << "\n";

  // Only the chosen branch runs; under vmap both do, and the values are selected.
  auto safe = [](Array x) {
    return lax::cond(
        x > 0.0f, [](Array v) { return jnp::log(v); }, [](Array v) { return 0.0f * v; }, x);
  };
  std::cout << "branches " << safe(Array(-3.0f)) << " " << jax::vmap(safe)(capibara::array<float>({-1, 1, 4})) << "\n";

  // x[t] = a[t] x[t-1] + b[t] for all t in a logarithmic number of steps.
  using Map = std::pair<Array, Array>;
  Map pairs(jnp::full({5}, 0.5f), jnp::arange(5).astype(capibara::DType::float32));
  auto compose = [](const Map& first, const Map& second) {
    return Map(second.first * first.first, second.first * first.second + second.second);
  };
  std::cout << "recurrence " << lax::associative_scan(compose, pairs).second << "\n";
}
