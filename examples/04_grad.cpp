// Derivatives: gradients, forward and reverse mode, Jacobians, and Newton's method with a Hessian.
#include <capibara/capibara.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/linalg.h>
#include <capibara/numpy/reductions.h>

#include <iostream>
#include <tuple>

using capibara::Array;
namespace jax = capibara::jax;
namespace jnp = capibara::jax::numpy;
namespace lax = capibara::jax::lax;

// The Rosenbrock function; its minimum is at (1, 1).
Array valley(const Array& p) {
  Array x = p(0), y = p(1);
  return jnp::square(1.0f - x) + 10.0f * jnp::square(y - jnp::square(x));
}

Array polar(const Array& p) {
  Array radius = p(0), angle = p(capibara::slice(1, 2));
  return lax::concatenate({radius * jnp::cos(angle), radius * jnp::sin(angle)}, 0);
}

int main() {
  Array start = capibara::array<float>({-1.0f, 1.5f});
  std::cout << "value " << valley(start) << " gradient " << jax::grad(valley)(start) << "\n";

  // One more grad for each order of derivative.
  auto cube = [](Array x) { return x * x * x; };
  std::cout << "x^3 at 2: " << jax::grad(cube)(Array(2.0f)) << " " << jax::grad(jax::grad(cube))(Array(2.0f)) << " "
            << jax::grad(jax::grad(jax::grad(cube)))(Array(2.0f)) << "\n";

  // Gradients with respect to two arguments at once, together with the value.
  auto area = [](Array width, Array height) { return width * height + jnp::sin(width); };
  auto [value, slopes] = jax::value_and_grad<0, 1>(area)(Array(2.0f), Array(3.0f));
  std::cout << "area " << value << " slopes " << std::get<0>(slopes) << " " << std::get<1>(slopes) << "\n";

  // Forward mode pushes a tangent forward, reverse mode pulls a cotangent back.
  Array point = capibara::array<float>({2.0f, 0.5f});
  auto [out, pushed] = jax::jvp(polar, point, capibara::array<float>({1.0f, 0.0f}));
  std::cout << "polar " << out << " along the radius " << pushed << "\n";
  auto [same, pullback] = jax::vjp(polar, point);
  std::cout << "pulled back " << std::get<0>(pullback(capibara::array<float>({1.0f, 0.0f}))) << "\n";
  std::cout << "Jacobian\n" << jax::jacfwd(polar)(point) << "\n";

  std::cout << "Newton\n";
  Array p = start;
  for (int step = 0; step < 6; ++step) {
    p = p - jnp::linalg::solve(jax::hessian(valley)(p), jax::grad(valley)(p));
    std::cout << "  " << jnp::round(p, {.decimals = 3}) << "\n";
  }
}
