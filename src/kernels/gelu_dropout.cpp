// GELU followed by dropout, and its reverse derivative: their meaning as compositions, their records.
//
// The dropped elements depend only on the key and the position, so no mask is saved for the backward
// pass. Element n reads 16 bits: quarter n % 4 of the threefry2x32 block with counter n / 4. That is an eighth of the
// blocks that jax.random.bernoulli computes, and a different mask. The fraction kept is a multiple of 1 / 65536.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/composed.h"
#include "kernels/rows.h"

namespace capibara::kernels {

namespace {

namespace lax = jax::lax;

constexpr double cube_weight = 0.044715, tanh_scale = 0.7978845608028654;  // sqrt(2 / pi)

// The number of values of the 16 bits, out of 65536, for which an element is kept.
int64_t kept_values(double rate) { return std::llround((1 - rate) * 65536); }

Array number(uint32_t value) { return scalar_of(DType::uint32, value); }

// For at least `count` blocks, uint32[..]: bit q is set if element q of the block is kept. Counters are 64 bits wide:
// a column of 30 bits, and the rows of 2^30 blocks above them.
Array block_flags(const Array& key, int64_t count, double rate) {
  static const Primitive& block = *new Primitive(primitive("threefry2x32"));
  const int64_t columns = std::min<int64_t>(count, int64_t{1} << 30), rows = (count + columns - 1) / columns;
  const Array row = lax::broadcasted_iota(DType::uint32, {rows, columns}, 0);
  const Array column = lax::broadcasted_iota(DType::uint32, {rows, columns}, 1);
  const auto all = [&](uint32_t value) { return lax::full_like(row, number(value)); };
  const Array high = lax::shift_right_logical(row, all(2)), low = lax::shift_left(row, all(30)) | column;
  const Array first = lax::index_in_dim(key, 0, 0, false), second = lax::index_in_dim(key, 1, 0, false);
  // Inlines its steps, which fuse with the code below; the CPU runs an equation with two results by a reference kernel.
  const Arrays words = block->lower(Arrays{first, second, high, low}, {});
  const Array kept = all(static_cast<uint32_t>(kept_values(rate)));
  Array flags = all(0);
  for (uint32_t q = 0; q < 4; ++q) {
    const Array quarter = lax::shift_right_logical(words[q / 2], all(16 * (q % 2))) & all(0xffff);
    flags = flags | lax::select(quarter < kept, all(1u << q), all(0));
  }
  return flags.reshape({rows * columns});
}

// True for each element that is kept.
Array keep_mask(const Array& key, const Shape& shape, double rate) {
  const int64_t size = element_count(shape);
  const Array flags = block_flags(key, (size + 3) / 4, rate);
  const Shape quarters{flags.shape(0), 4};
  const Array position = lax::broadcasted_iota(DType::uint32, quarters, 1);
  const Array bits = lax::shift_right_logical(lax::broadcast_in_dim(flags, quarters, {0}), position) & number(1);
  return lax::slice((bits != number(0)).reshape({4 * flags.shape(0)}), {0}, {size}).reshape(shape);
}

Array gelu_of(const Array& x, bool approximate) {
  const auto number = [&](double value) { return scalar_of(x.dtype(), value); };
  const Array half = number(0.5) * x;
  if (!approximate) return half * lax::erfc(x * number(-std::numbers::sqrt2 / 2));
  const Array inner = number(tanh_scale) * (x + number(cube_weight) * x * x * x);
  return half * (number(1) + lax::tanh(inner));
}

Array gelu_derivative(const Array& x, bool approximate) {
  const auto number = [&](double value) { return scalar_of(x.dtype(), value); };
  if (!approximate) {
    const Array below = number(0.5) * lax::erfc(x * number(-std::numbers::sqrt2 / 2));
    const Array density = number(std::numbers::inv_sqrtpi / std::numbers::sqrt2) * lax::exp(number(-0.5) * x * x);
    return below + x * density;
  }
  const Array square = x * x, scaled = number(tanh_scale) * x;
  const Array inner = scaled * (number(1) + number(cube_weight) * square);
  const Array height = lax::tanh(inner), steep = number(1) - height * height;
  const Array rise = number(tanh_scale) * (number(1) + number(3 * cube_weight) * square);
  const Array share = number(0.5) * (number(1) + height);
  return share + number(0.5) * x * steep * rise;
}

Array dropped(const Array& values, const Array& key, double rate) {
  const int64_t kept = kept_values(rate);
  if (kept == 65536 || values.size() == 0) return values;
  const Array zero = lax::full_like(values, scalar_of(values.dtype(), 0));
  if (kept == 0) return zero;
  const Array mask = keep_mask(key, values.shape(), rate);
  return lax::select(mask, values * scalar_of(values.dtype(), 65536.0 / static_cast<double>(kept)), zero);
}

// (x, key) -> y
Arrays compose(std::span<const Array> in, const Attrs& attrs) {
  const Array x = in[0].astype(sum_dtype(in[0].dtype()));
  return {dropped(gelu_of(x, attrs.boolean("approximate")), in[1], attrs.real("rate")).astype(in[0].dtype())};
}

// (dy, x, key) -> dx
Arrays compose_grad(std::span<const Array> in, const Attrs& attrs) {
  const DType wide = sum_dtype(in[1].dtype());
  const Array dy = in[0].astype(wide), derivative = gelu_derivative(in[1].astype(wide), attrs.boolean("approximate"));
  return {dropped(dy * derivative, in[2], attrs.real("rate")).astype(in[1].dtype())};
}

// ---- types and records ------------------------------------------------------------------------------------------

void require_operands(const char* op, const ArrayType& x, const ArrayType& key) {
  if (!is_floating(x.dtype))
    throw TypeError(concat(op, ": expected a floating array (argument 'x'), got ", to_string(x)));
  if (key.dtype != DType::uint32 || key.shape != Shape{2})
    throw TypeError(
        concat(op, ": expected the words of a threefry2x32 key, uint32[2] (argument 'key'), got ", to_string(key)));
}

TypeResult forward_type(std::span<const ArrayType> types, const Attrs&) {
  require_count("gelu_dropout", types, 2);
  require_operands("gelu_dropout", types[0], types[1]);
  return Types{types[0].strong()};
}

TypeResult grad_type(std::span<const ArrayType> types, const Attrs&) {
  require_count("gelu_dropout_grad", types, 3);
  require_operands("gelu_dropout_grad", types[1], types[2]);
  require_type("gelu_dropout_grad", "dy", types[0], types[1].strong());
  return Types{types[1].strong()};
}

Arrays pull_back(const PullbackArgs& args) {
  static const Primitive& handle = *new Primitive(primitive("gelu_dropout_grad"));
  Arrays pulled = capibara::bind(handle, Arrays{args.cotangents[0], args.operands[0], args.operands[1]}, args.attrs);
  pulled.push_back(Array());  // of the key
  return pulled;
}

std::vector<Sample> dropout_samples(DType dtype, bool backward) {
  const ArrayType key = scalar_of(DType::uint32, 0).type().with_shape({2});
  std::vector<Sample> samples;
  for (const ArrayType& x : sample_rows(dtype)) {
    for (bool approximate : {true, false}) {
      if (!approximate && x.rank() != 3) continue;
      samples.push_back({backward ? Types{x, x, key} : Types{x, key}, {{"rate", 0.25}, {"approximate", approximate}}});
    }
  }
  return samples;
}

PrimitiveRecord element_record(const char* name, const char* doc, bool backward) {
  PrimitiveRecord record;
  record.name = name;
  record.doc = doc;
  record.dtypes = float_dtypes;
  record.traits.nan_checked = true;
  record.flops = [](std::span<const ArrayType> types, const Attrs&) { return count_flops(30, types[0]); };
  record.samples = [backward](DType dtype) { return dropout_samples(dtype, backward); };
  return record;
}

}  // namespace

Family gelu_dropout_records() {
  PrimitiveRecord forward =
      element_record("gelu_dropout", "GELU, of which a share is dropped as a key decides.", false);
  forward.type = forward_type;
  forward.lower = compose;
  PrimitiveRecord backward = element_record("gelu_dropout_grad", "Pulls a cotangent back through gelu_dropout.", true);
  backward.type = grad_type;
  backward.lower = compose_grad;
  return {composed(std::move(forward), {pull_back, {false}}), composed(std::move(backward))};
}

}  // namespace capibara::kernels
