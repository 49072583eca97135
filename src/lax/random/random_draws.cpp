// Basic draws from which others are built: bits, uniform, normal and exponential numbers.
#include "lax/random/random_draws.h"

#include <cmath>
#include <complex>
#include <cstring>

#include "lax/call.h"
#include "lax/operators/plain_number.h"
#include "lax/reduce/monoid.h"
#include "lax/rules.h"
#include "program/trace/stage.h"
#include "program/trace/trace.h"

namespace capibara::jax::random {

Arrays split_keys(const Array& key, int64_t count) {
  static const Primitive p = primitive("random_split");
  Array keys = bind1(p, {key}, {{"shape", Shape{count}}});
  Arrays each;
  for (int64_t i = 0; i < count; ++i) each.push_back(lax::index_in_dim(keys, i, 0, false));
  return each;
}

Array random_bits(const Array& key, int64_t bit_width, const Shape& shape) {
  static const Primitive p = primitive("random_bits");
  return bind1(p, {key}, {{"bit_width", bit_width}, {"shape", shape}});
}

Array multiply_add(const Array& x, const Array& y, const Array& z) {
  static const Primitive p = primitive("multiply_add");
  DType dtype = !is_plain_number(x) ? x.dtype() : !is_plain_number(y) ? y.dtype() : z.dtype();
  return bind1(p, {array_as(x, dtype, false), array_as(y, dtype, false), array_as(z, dtype, false)});
}

Array call(const std::string& name, const Arrays& inputs,
           const std::function<Array(std::span<const Array>)>& function) {
  if (current_trace() == evaluation_trace()) return function(inputs);
  Types types;
  for (const Array& input : inputs) types.push_back(input.type());
  Staged staged = stage([&](std::span<const Array> in) { return Arrays{function(in)}; }, types, name);
  Arrays operands = staged.captured;
  operands.insert(operands.end(), inputs.begin(), inputs.end());
  return call_program(staged.program, operands, name)[0];
}

Arrays while_loop(const std::function<Array(std::span<const Array>)>& goes_on, const FlatFunction& body,
                  const Arrays& carry) {
  Types types;
  for (const Array& value : carry) types.push_back(value.type());
  Staged condition = stage([&](std::span<const Array> in) { return Arrays{goes_on(in)}; }, types, "cond_fun");
  Staged step = stage(body, types, "body_fun");
  return bind_while(condition, step, carry);
}

DType unsigned_of_width(int width) {
  return width == 8 ? DType::uint8 : width == 16 ? DType::uint16 : width == 32 ? DType::uint32 : DType::uint64;
}

namespace {

// The bits of 1.0 as an unsigned constant.
Array bits_of_one(DType dtype, DType unsigned_dtype) {
  Array one = scalar_of(dtype, 1);
  uint64_t word = 0;
  std::memcpy(&word, one.raw_data(), static_cast<std::size_t>(storage_size(dtype)));
  return exact_scalar(unsigned_dtype, static_cast<int64_t>(word));
}

// True if u * (maxval - minval) needs no rounding, so that a fused product and sum is the same as a plain one.
bool product_is_exact(const Array& minval, const Array& maxval, DType dtype) {
  for (const Array& bound : {minval, maxval}) {
    if (bound.is_tracer() || bound.ndim() != 0 || is_complex(bound.dtype())) return false;
  }
  auto rounded = [&](double x) { return scalar_of(dtype, x).item<double>(); };
  double span = rounded(rounded(maxval.item<double>()) - rounded(minval.item<double>()));
  int exponent = 0;
  return span == 0 || std::fabs(std::frexp(span, &exponent)) == 0.5;
}

Array scaled(const Array& unit, const Array& span, const Array& minval, bool fused) {
  return fused ? multiply_add(unit, span, minval) : lax::add(lax::mul(unit, span), minval);
}

Array draw_real_normal(const Array& key, const Shape& shape, DType dtype) {
  return call("_normal_real", {key}, [&](std::span<const Array> in) {
    // The open interval: erf_inv is infinite at -1.
    Array low = scalar_of(dtype, -1 + finfo(dtype).epsneg), high = scalar_of(dtype, 1);
    Array u = draw_uniform(in[0], shape, dtype, low, high);
    return lax::mul(scalar_of(dtype, std::sqrt(2.0)), lax::erf_inv(u));
  });
}

}  // namespace

Array draw_uniform(const Array& key, const Shape& shape, DType dtype, const Array& minval, const Array& maxval,
                   bool maxval_first) {
  const DTypeRow& row = dtype_row(dtype);
  int width = row.bits, mantissa = row.mantissa_bits;
  if (width < 8)
    throw TypeError(concat("uniform only accepts 8-, 16-, 32-, or 64-bit dtypes, got ", dtype_name(dtype), "."));
  bool narrow = mantissa < 8;  // bfloat16 and smaller: 8 random bits are enough
  bool fused = !narrow && !product_is_exact(minval, maxval, dtype);
  Arrays operands = maxval_first ? Arrays{key, maxval, minval} : Arrays{key, minval, maxval};
  return call("_uniform", operands, [&](std::span<const Array> in) {
    int64_t rank = static_cast<int64_t>(shape.size());
    Array low = lax::convert_element_type(in[maxval_first ? 2 : 1], dtype, false);
    Array high = lax::convert_element_type(in[maxval_first ? 1 : 2], dtype, false);
    low = lax::broadcast_to_rank(low, rank);
    high = lax::broadcast_to_rank(high, rank);
    int random_width = narrow ? 8 : width;
    DType unsigned_dtype = unsigned_of_width(width);
    Array word = random_bits(in[0], random_width, shape);
    if (random_width != width) word = lax::convert_element_type(word, unsigned_dtype, false);
    // The mantissa is random under the exponent of 1, which makes numbers in [1, 2).
    Array float_bits = lax::shift_right_logical(word, exact_scalar(unsigned_dtype, random_width - mantissa));
    float_bits = lax::bitwise_or(float_bits, bits_of_one(dtype, unsigned_dtype));
    Array unit = lax::sub(lax::bitcast_convert_type(float_bits, dtype), scalar_of(dtype, 1));
    Array result = scaled(unit, lax::sub(high, low), low, fused);
    static const Primitive reshape = primitive("reshape");
    if (rank == 0)
      result = bind1(reshape, {result}, {{"dimensions", Attr()}, {"new_sizes", Shape{}}, {"sharding", Attr()}});
    return lax::max(low, result);
  });
}

Array draw_positive_uniform(const Array& key, const Shape& shape, DType dtype, bool maxval_first) {
  Array tiny = scalar_of(dtype, finfo(dtype).tiny);
  // jax's compiler folds the offset into the preceding -1, where it vanishes; float16 is coarse enough to show it.
  if (dtype == DType::float16) return lax::max(tiny, draw_uniform(key, shape, dtype));
  return draw_uniform(key, shape, dtype, tiny, Array(1.0), maxval_first);
}

Array draw_normal(const Array& key, const Shape& shape, DType dtype) {
  return call("_normal", {key}, [&](std::span<const Array> in) {
    if (!is_complex(dtype)) return draw_real_normal(in[0], shape, dtype);
    Arrays keys = split_keys(in[0], 2);
    Array re = lax::convert_element_type(draw_real_normal(keys[0], shape, real_dtype(dtype)), dtype, false);
    Array im = lax::convert_element_type(draw_real_normal(keys[1], shape, real_dtype(dtype)), dtype, false);
    Array sum = re + Array(std::complex<double>(0, 1)) * im;
    return lax::div(sum, scalar_of(dtype, std::sqrt(2.0)));
  });
}

Array draw_exponential(const Array& key, const Shape& shape, DType dtype) {
  return call("_exponential", {key}, [&](std::span<const Array> in) {
    return lax::neg(lax::log1p(lax::neg(draw_uniform(in[0], shape, dtype))));
  });
}

}  // namespace capibara::jax::random
