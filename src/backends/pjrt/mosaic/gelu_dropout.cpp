// TPU kernels of GELU followed by dropout and of its reverse derivative: blocks of whole rows, whose random bits are
// those of the composition.
//
// Element n keeps or drops by quarter n % 4 of the threefry2x32 block with counter n / 4. Each element computes its
// block: four times the integer operations, but no lane moves.
#include <capibara/lax.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "backends/pjrt/mosaic/kernels.h"

namespace capibara::mosaic {

namespace {

namespace lax = jax::lax;
using Order = Kernel::Order;

constexpr double cube_weight = 0.044715, tanh_scale = 0.7978845608028654;  // sqrt(2 / pi)

int64_t kept_values(double rate) { return std::llround((1 - rate) * 65536); }

Value rotated(const Value& word, int bits) { return shift_left(word, bits) | shift_right(word, 32 - bits); }

// The two words of threefry2x32 with counter (0, low).
std::array<Value, 2> threefry(const Value& first, const Value& second, const Value& low) {
  constexpr int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const std::array<Value, 3> keys = {first, second, (first ^ second) ^ like(first, 0x1BD11BDA)};
  Value x = like(low, 0) + keys[0], y = low + keys[1];
  for (std::size_t round = 0; round < 5; ++round) {
    for (const int bits : rotations[round % 2]) {
      x = x + y;
      y = rotated(y, bits) ^ x;
    }
    x = x + keys[(round + 1) % 3];
    y = y + (keys[(round + 2) % 3] + double(round + 1));
  }
  return {x, y};
}

// For a block of `shape` whose first element has number `start`: true where elements are kept.
Value kept(Kernel& kernel, const Ref& key, const Value& start, const Shape& shape, int64_t columns, double rate) {
  const Value number = kernel.iota(shape, 0) * double(columns) + (kernel.iota(shape, 1) + start);
  const Value first = kernel.load(key, kernel.constant(0)), second = kernel.load(key, kernel.constant(1));
  const std::array<Value, 2> words = threefry(first, second, shift_right(number, 2));
  const Value one = like(number, 1), zero = like(number, 0), quarter = number & like(number, 3);
  const Value word = kernel.select(less(quarter, like(number, 2)), words[0], words[1]);
  const Value half = kernel.select(equal(quarter & one, zero), word, shift_right(word, 16));
  return less(half & like(number, 0xffff), like(number, double(kept_values(rate))));
}

struct GeluParts {
  Value square, height;
};
GeluParts gelu_parts(const Value& x) {
  const Value square = x * x;
  return {square, tanh((x * tanh_scale) * (square * cube_weight + 1.0))};
}

// (x, key) -> y, or (dy, x, key) -> dx
Arrays gelu_kernel(std::span<const Array> in, const Attrs& attrs, bool backward) {
  const Array& x = in[backward ? 1 : 0];
  constexpr int64_t block_elements = 1 << 15, max_columns = 1 << 14, max_size = int64_t{1} << 31, min_rows = 16;
  if (x.dtype() != DType::float32 && x.dtype() != DType::bfloat16) return {};
  // erfc is no operation of kernels.
  if (!attrs.boolean("approximate") || x.ndim() == 0 || x.size() == 0 || x.size() >= max_size) return {};
  const int64_t columns = x.shape(-1), rows = x.size() / columns;
  if (columns > max_columns) return {};
  const int64_t fitting = block_elements / blocks_of(columns, lanes) / lanes / min_rows * min_rows;
  const int64_t block = std::min(rows, std::max(fitting, min_rows));
  const double rate = attrs.real("rate");
  const int64_t share = kept_values(rate);
  Kernel kernel(backward ? "capibara_gelu_dropout_grad" : "capibara_gelu_dropout",
                {{blocks_of(rows, block), Order::parallel}});
  const BlockIndex at = [](const Point& point) -> std::vector<Value> {
    return {point.at[0], point.kernel.constant(0)};
  };
  Arrays operands = {lax::bitcast_convert_type(in.back(), DType::int32)};
  const Ref key = kernel.prefetch("key", operands[0].type());
  std::vector<Ref> refs;
  for (const Array& array : in.first(in.size() - 1)) {
    operands.push_back(array.reshape({rows, columns}));
    refs.push_back(
        kernel.input(refs.size() + 1 == in.size() - 1 ? "x" : "dy", operands.back().type(), {block, columns}, at));
  }
  const Ref result = kernel.output("result", array_type(x.dtype(), {rows, columns}), {block, columns}, at);
  const Value value = kernel.convert(kernel.load(refs.back()), Element::f32);
  const auto [square, height] = gelu_parts(value);
  Value all = (value * 0.5) * (height + 1.0);
  if (backward) {
    const Value steep = like(height, 1) - height * height, rise = (square * (3 * cube_weight) + 1.0) * tanh_scale;
    const Value derivative = (height + 1.0) * 0.5 + ((value * 0.5) * steep) * rise;
    all = kernel.convert(kernel.load(refs[0]), Element::f32) * derivative;
  }
  if (share == 0) all = kernel.filled(0, Element::f32, {block, columns});
  if (share > 0 && share < 65536) {
    const Value start = kernel.point(0) * double(block * columns);
    const Value own = kept(kernel, key, start, {block, columns}, columns, rate);
    all = kernel.select(own, all * (65536.0 / double(share)), like(all, 0));
  }
  kernel.store(kernel.convert(all, result.element), result);
  kernel.cost.flops = 150 * x.size();
  kernel.cost.transcendentals = x.size();
  return {call(kernel, operands)[0].reshape(x.shape())};
}

Arrays gelu_forward(std::span<const Array> in, const Attrs& attrs) { return gelu_kernel(in, attrs, false); }
Arrays gelu_backward(std::span<const Array> in, const Attrs& attrs) { return gelu_kernel(in, attrs, true); }

}  // namespace

std::vector<Entry> gelu_dropout_kernels() {
  return {{"gelu_dropout", gelu_forward}, {"gelu_dropout_grad", gelu_backward}};
}

}  // namespace capibara::mosaic
