// The tour of docs/tour.md as a program: arrays, derivatives, maps, programs, control flow, random numbers.
#include <capibara/capibara.h>

#include <cmath>
#include <cstdlib>
#include <iostream>

using capibara::Array;
namespace jax = capibara::jax;
namespace lax = capibara::jax::lax;

namespace {

// Exits with an error if a claim of the tour does not hold.
void expect(bool holds, const char* claim) {
  if (holds) return;
  std::cerr << "not true: " << claim << "\n";
  std::exit(1);
}

void arrays() {
  Array x = capibara::array<float>({{1, 2, 3}, {4, 5, 6}});
  std::cout << "x =\n" << x << "\n";
  expect((x * 2 + 1).dtype() == capibara::DType::float32, "numbers are weakly typed");
  expect(x(0).to_vector<float>() == std::vector<float>{1, 2, 3}, "x(0) is the first row");
  expect(x(capibara::ellipsis, capibara::slice(1, 3)).shape() == capibara::Shape{2, 2}, "slices");
  expect(x(capibara::array<int32_t>({1, 0})).to_vector<float>()[0] == 4, "index arrays");
  expect(x.at(0, 1).set(9.0f).to_vector<float>()[1] == 9, "updates");
  expect(x.at(7, 1).set(9.0f).to_vector<float>() == x.to_vector<float>(), "writes out of bounds are dropped");
}

void derivatives() {
  auto f = [](Array w, Array x) { return lax::reduce_sum(lax::tanh(lax::dot(x, w)), {.axes = {0, 1}}); };
  Array w = lax::full({3, 2}, 0.1f), x = lax::full({4, 3}, 0.5f);
  Array g = jax::grad(f)(w, x);
  auto [gw, gx] = jax::grad<0, 1>(f)(w, x);
  auto [y, dy] = jax::jvp(f, std::tuple(w, x), std::tuple(lax::full({3, 2}, 1.0f), lax::full({4, 3}, 0.0f)));
  float sum = 0;
  for (float value : g.to_vector<float>()) sum += value;
  expect(std::abs(sum - dy.item<float>()) < 1e-4f, "forward and reverse mode agree");
  expect(gx.shape() == x.shape() && gw.shape() == w.shape(), "gradients have the shapes of the arguments");
  Array each = jax::vmap([&](Array row) { return lax::dot(row, w); })(x);
  expect(each.shape() == capibara::Shape{4, 2}, "vmap");
  std::cout << "the gradient as a program:\n" << jax::make_jaxpr(jax::grad(f))(w, x) << "\n";
  std::cout << "the function as StableHLO:\n" << jax::jit(f).lower(w, x).as_text() << "\n";
}

void control_flow() {
  Array xs = capibara::array<float>({1, 2, 3});
  auto [last, all] = lax::scan([](Array carry, Array x) { return std::pair(carry + x, carry * x); }, Array(0.0f), xs);
  expect(last.item<float>() == 6 && all.to_vector<float>() == std::vector<float>{0, 2, 9}, "scan");
  Array y = lax::while_loop([](Array v) { return v < 100.0f; }, [](Array v) { return v * 2.0f; }, Array(3.0f));
  expect(y.item<float>() == 192, "while_loop");
  Array z = lax::cond(
      y > 100.0f, [](Array v) { return v; }, [](Array v) { return -v; }, y);
  expect(z.item<float>() == 192, "cond");
}

void random_numbers() {
  Array noise = jax::random::normal(jax::random::key(0), {.shape = {3}});
  std::cout << "three draws of jax.random.normal(jax.random.key(0)): " << noise << "\n";
}

void own_derivative() {
  auto safe_sqrt = jax::custom_jvp([](Array x) { return lax::sqrt(x); }, "safe_sqrt");
  safe_sqrt.defjvp([](const std::tuple<Array>& primals, const std::tuple<Array>& tangents) {
    Array x = std::get<0>(primals), root = lax::sqrt(x);
    Array slope = lax::select(x > 0.0f, 0.5f / lax::max(root, lax::full_like(root, 1e-6f)), lax::zeros_like(x));
    return std::tuple(root, slope * std::get<0>(tangents));
  });
  expect(jax::grad([&](Array x) { return safe_sqrt(x); })(Array(0.0f)).item<float>() == 0, "no infinite slope at zero");
  expect(jax::grad([&](Array x) { return safe_sqrt(x); })(Array(4.0f)).item<float>() == 0.25f,
         "the usual slope elsewhere");
}

}  // namespace

int main() {
  arrays();
  derivatives();
  control_flow();
  random_numbers();
  own_derivative();
  std::cout << "every claim of the tour holds\n";
}
