// Fits a straight line to four points by gradient descent, with an installed capibara.
#include <capibara/capibara.h>

#include <cmath>
#include <cstdio>
#include <tuple>

using capibara::Array;
namespace jax = capibara::jax;
namespace lax = capibara::jax::lax;

struct Line {
  Array slope, offset;
};
CAPIBARA_TREE(Line, slope, offset)

Array squared_error(const Line& line, const Array& x, const Array& y) {
  Array error = line.slope * x + line.offset - y;
  return lax::reduce_sum(error * error, {.axes = {0}}) / x.shape(0);
}

int main() {
  auto update = jax::jit([](Line line, Array x, Array y) {
    auto [error, slopes] = jax::value_and_grad(squared_error)(line, x, y);
    return std::tuple(error, jax::tree::map([](Array v, Array d) { return v - 0.1f * d; }, line, slopes));
  });

  Array x = capibara::array<float>({0, 1, 2, 3});
  Array y = capibara::array<float>({1, 3, 5, 7});
  Line line{capibara::array<float>({0}, capibara::Shape{}), capibara::array<float>({0}, capibara::Shape{})};
  Array error;
  for (int step = 0; step < 300; ++step) std::tie(error, line) = update(line, x, y);

  float slope = line.slope.item<float>(), offset = line.offset.item<float>();
  std::printf("y = %.3f x + %.3f, mean squared error %.2e\n", slope, offset, error.item<float>());
  return std::abs(slope - 2) < 1e-2f && std::abs(offset - 1) < 1e-2f ? 0 : 1;
}
