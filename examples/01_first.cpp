// Trains one layer to reproduce a known one: jit, value_and_grad and a struct of parameters.
#include <capibara/capibara.h>

#include <cstdio>
#include <tuple>

using capibara::Array;
namespace jax = capibara::jax;
namespace lax = capibara::jax::lax;

struct Params {
  Array w, b;
};
CAPIBARA_TREE(Params, w, b)

Array loss(const Params& p, const Array& x, const Array& y) {
  Array e = lax::tanh(lax::dot(x, p.w) + p.b) - y;
  return lax::reduce_sum(e * e, {.axes = {0, 1}}) / x.shape(0);
}

int main() {
  auto update = jax::jit([](Params p, Array x, Array y) {
    auto [l, g] = jax::value_and_grad(loss)(p, x, y);
    return std::tuple(l, jax::tree::map([](Array v, Array d) { return v - 0.1f * d; }, p, g));
  });

  Array x = capibara::array<float>({{1, 0}, {0, 1}, {1, 1}, {-1, 2}});
  Params target{capibara::array<float>({{0.5f, -0.3f}, {0.2f, 0.7f}}), capibara::array<float>({0.1f, -0.2f})};
  Array y = lax::tanh(lax::dot(x, target.w) + target.b);

  Params params{lax::zeros_like(target.w), lax::zeros_like(target.b)};
  float first = 0, last = 0;
  for (int step = 0; step <= 100; ++step) {
    Array l;
    std::tie(l, params) = update(params, x, y);
    last = l.item<float>();
    if (step == 0) first = last;
    if (step % 20 == 0) std::printf("step %3d  loss %.6f\n", step, last);
  }
  return last < 0.01f * first ? 0 : 1;
}
