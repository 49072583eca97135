// vmap and jit: a function of one example is applied to a batch, and functions are traced once per shape and type.
#include <capibara/capibara.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/reductions.h>

#include <iostream>

using capibara::Array;
namespace jax = capibara::jax;
namespace jnp = capibara::jax::numpy;

Array distance(const Array& a, const Array& b) { return jnp::sqrt(jnp::sum(jnp::square(a - b))); }

Array loss(const Array& w, const Array& x, const Array& y) { return jnp::square(jnp::sum(w * x) - y); }

int main() {
  Array points = capibara::array<float>({{0, 0}, {3, 4}, {6, 8}});

  // Two vmaps make a table of all pairwise distances out of the distance between two points.
  auto to_all = jax::vmap(distance, {.in_axes = {std::nullopt, 0}});
  auto table = jax::vmap([&](Array a, Array all) { return to_all(a, all); }, {.in_axes = {0, std::nullopt}});
  std::cout << "distances\n" << table(points, points) << "\n";

  // Per-example gradients rather than the gradient of the sum.
  Array w = capibara::array<float>({1, -1}), y = capibara::array<float>({0, 1, 2});
  auto each = jax::vmap(jax::grad(loss), {.in_axes = {std::nullopt, 0, 0}});
  std::cout << "gradients of each example\n" << each(w, points, y) << "\n";

  // The body of a jitted function runs only while it is traced: once for each shape and type.
  auto scaled = jax::jit([](Array x) {
    std::cout << "tracing " << capibara::to_string(x.type()) << "\n";
    return 2 * x + 1;
  });
  for (const Array& argument : {y, y + 1, w}) {
    Array result = scaled(argument);
    std::cout << "scaled " << result << "\n";
  }

  // The traced program can be printed.
  std::cout << jax::make_jaxpr([](Array w, Array x) { return jax::lax::tanh(w * x) + 1.0f; })(w, w) << "\n";

  // Transforms compose in any order.
  auto second = jax::jit(jax::vmap(jax::grad(jax::grad([](Array x) { return jnp::sin(x) * x; }))));
  std::cout << "second derivatives " << second(y) << "\n";
}
