// Arithmetic: sums, products, quotients, rounding, signs.
#include "lax/elementwise/elementwise.h"
#include "lax/sharding/splits.h"

namespace capibara::elementwise {

namespace lax = jax::lax;

namespace {

// ---- sums -------------------------------------------------------------------------------------------------------

JvpRule sum_jvp(bool subtract) {
  return [subtract](const JvpArgs& args) {
    const Array &dx = args.tangents[0], &dy = args.tangents[1];
    const Array out = bind1(args.primitive, {args.primals[0], args.primals[1]}, args.attrs);
    if (!dx.defined() && !dy.defined()) return JvpResult{{out}, {Array()}};
    if (!dx.defined())
      return JvpResult{{out}, {broadcast_to(out.shape(), subtract ? lax::neg(dy) : dy, out.type().sharding)}};
    if (!dy.defined()) return JvpResult{{out}, {broadcast_to(out.shape(), dx, out.type().sharding)}};
    return JvpResult{{out}, {bind1(args.primitive, {dx, dy}, args.attrs)}};
  };
}

TransposeRule sum_transpose(bool subtract) {
  return [subtract](const TransposeArgs& args) {
    const Array& t = args.cotangents[0];
    Arrays result(2);
    if (!t.defined()) return result;
    if (args.linear(0)) result[0] = unbroadcast(t, args.types[0]);
    if (args.linear(1)) result[1] = unbroadcast(subtract ? lax::neg(t) : t, args.types[1]);
    return result;
  };
}

PrimitiveRecord add_any_record() {
  PrimitiveRecord r = record("add_any", "The sum of two tangents or cotangents of one value.", 2, anything, "");
  r.splits = add_splits;
  r.traits.elementwise = Elementwise::same_shapes;
  r.type = [](std::span<const ArrayType> types, const Attrs&) -> TypeResult {
    require_count("add_any", types, 2);
    if (types[0].shape != types[1].shape || types[0].dtype != types[1].dtype) {
      throw TypeError(concat("add_any: both operands must have the same type, got ", to_string(types[0]), " and ",
                             to_string(types[1])));
    }
    return Types{types[0]};
  };
  r.jvp = linear_jvp();
  r.transpose = [](const TransposeArgs& args) {
    Arrays result(2);
    for (std::size_t i = 0; i < 2; ++i) {
      if (args.linear(i)) result[i] = args.cotangents[0];
    }
    return result;
  };
  r.batch = [](const BatchArgs& args) {
    if (args.dims[0] == args.dims[1]) {
      return BatchResult{capibara::bind(args.primitive, args.inputs, args.attrs), {args.dims[0]}};
    }
    const std::size_t mapped = args.mapped(0) ? 0 : 1;
    const int64_t to = args.dims[mapped];
    Arrays inputs = {args.inputs[0], args.inputs[1]};
    inputs[1 - mapped] = batch_at(inputs[1 - mapped], args.dims[1 - mapped], args.axis, to);
    return BatchResult{capibara::bind(args.primitive, inputs, args.attrs), {to}};
  };
  r.lower = [](std::span<const Array> in, const Attrs&) {
    return Arrays{is_bool(in[0].dtype()) ? lax::bitwise_or(in[0], in[1]) : lax::add(in[0], in[1])};
  };
  r.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{0, 2}, Shape{2, 1, 3}}) {
      const ArrayType type{shape, dtype, false, false, {}};
      samples.push_back({{type, type}, {}});
    }
    return samples;
  };
  return r;
}

// ---- products ---------------------------------------------------------------------------------------------------

Arrays mul_transpose(const TransposeArgs& args) {
  const Array& t = args.cotangents[0];
  Arrays result(2);
  if (!t.defined()) return result;
  if (args.linear(0) && args.linear(1)) throw InternalError("mul: the product of two linear values has no transpose");
  if (args.linear(0))
    result[0] = unbroadcast(lax::mul(t, args.inputs[1]), args.types[0]);
  else
    result[1] = unbroadcast(lax::mul(args.inputs[0], t), args.types[1]);
  return result;
}

Arrays div_transpose(const TransposeArgs& args) {
  const Array& t = args.cotangents[0];
  Arrays result(2);
  if (args.linear(1)) throw InternalError("div: not linear in the divisor, so there is no transpose for it");
  if (t.defined() && args.linear(0)) result[0] = unbroadcast(lax::div(t, args.inputs[1]), args.types[0]);
  return result;
}

// The upper half of the double-width product, for the targets whose chlo has no mulhi.
Array lower_mulhi(const Array& x, const Array& y) {
  const DType dtype = x.dtype();
  const int width = capibara::bits(dtype);
  const auto convert = [](const Array& v, DType to) { return lax::convert_element_type(v, to, false); };
  if (width < 64) {
    const bool negative = is_signed(dtype);
    const DType wide = width <= 8    ? (negative ? DType::int16 : DType::uint16)
                       : width == 16 ? (negative ? DType::int32 : DType::uint32)
                                     : (negative ? DType::int64 : DType::uint64);
    const Array convert_x = convert(x, wide);
    const Array product = lax::mul(convert_x, convert(y, wide));
    const Array shift = scalar_of(wide, width);
    return convert(negative ? lax::shift_right_arithmetic(product, shift) : lax::shift_right_logical(product, shift),
                   dtype);
  }
  // Four products of 32-bit halves; `middle` accumulates what carries out of the lower half.
  const Array half = scalar_of(DType::uint64, 32), mask = scalar_of(DType::uint64, 4294967295.0);
  const Array a = convert(x, DType::uint64), b = convert(y, DType::uint64);
  const auto low = [&](const Array& v) { return lax::bitwise_and(v, mask); };
  const auto high = [&](const Array& v) { return lax::shift_right_logical(v, half); };
  const Array a_low = low(a), a_high = high(a), b_low = low(b), b_high = high(b);
  const Array cross = lax::mul(a_low, b_high), other = lax::mul(a_high, b_low);
  const Array low_cross = low(cross), sum = lax::add(low_cross, low(other));
  const Array middle = lax::add(sum, high(lax::mul(a_low, b_low)));
  const Array high_cross = high(cross), sum_cross = lax::add(high_cross, high(other));
  const Array carried = lax::add(sum_cross, high(middle));
  Array result = convert(lax::add(lax::mul(a_high, b_high), carried), dtype);
  if (is_signed(dtype)) {
    // As unsigned numbers, negative operands are 2^64 too large.
    const Array sign_bit = scalar_of(dtype, 63);
    result = lax::add(result, lax::mul(lax::shift_right_arithmetic(x, sign_bit), y));
    result = lax::add(result, lax::mul(lax::shift_right_arithmetic(y, sign_bit), x));
  }
  return result;
}

// ---- absolute values and rounding -------------------------------------------------------------------------------

Array abs_jvp(const Array& g, const Array& output, const Array& x) {
  if (!is_complex(x.dtype())) {
    const Array positive = lax::ge(x, zero_of(x));
    return lax::select(positive, g, lax::neg(g));
  }
  const Array conjugate = lax::conj(x);
  const Array size = replace_zero(lax::convert_element_type(output, x.dtype(), false));
  return lax::real(lax::mul(g, lax::div(conjugate, size)));
}

PrimitiveRecord round_record() {
  PrimitiveRecord r = record("round", "Nearest integer; halves away from zero (0) or to even (1).", 1, floats,
                             "stablehlo.round_nearest_afz");
  r.jvp = zero_jvp();
  r.differentiable = false;
  r.samples = sample_calls(1, {-3.0, 3.0}, {Attrs{{"rounding_method", 0}}, Attrs{{"rounding_method", 1}}});
  return r;
}

void no_tangent(PrimitiveRecord& r) {
  r.jvp = zero_jvp();
  r.differentiable = false;
}

}  // namespace

Family arithmetic_records() {
  Family family;
  const auto add = [&](PrimitiveRecord r) -> PrimitiveRecord& { return family.emplace_back(std::move(r)); };
  {
    PrimitiveRecord& r = add(record("neg", "-x; integers wrap.", 1, numbers, "stablehlo.negate"));
    r.jvp = linear_jvp();
    r.transpose = [](const TransposeArgs& args) {
      return Arrays{args.cotangents[0].defined() ? lax::neg(args.cotangents[0]) : Array()};
    };
  }
  {
    PrimitiveRecord& r =
        add(record("sign", "-1, 0 or 1 by the sign of x; x/|x| for complex numbers.", 1, numbers, "stablehlo.sign"));
    no_tangent(r);
    r.lower = [](std::span<const Array> in, const Attrs&) -> Arrays {
      if (!is_unsigned(in[0].dtype())) return {};
      const Array is_zero = lax::eq(in[0], lax::full_like(in[0], 0));
      Array filled = lax::full_like(in[0], 0);
      return {lax::select(is_zero, filled, lax::full_like(in[0], 1))};
    };
  }
  no_tangent(add(record("floor", "The largest integer not above x.", 1, floats, "stablehlo.floor")));
  no_tangent(add(record("ceil", "The least integer not below x.", 1, floats, "stablehlo.ceil")));
  add(round_record());
  {
    PrimitiveRecord& r =
        add(record("abs", "The absolute value.", 1, wide_signed_integers | inexact, "stablehlo.abs", real_dtype));
    r.jvp = elementwise_jvp({from_output(abs_jvp)});
  }
  {
    PrimitiveRecord& r = add(record("add", "x + y.", 2, numbers, "stablehlo.add"));
    r.splits = add_splits;
    r.type = type_rule("add", 2, numbers, same_dtype, booleans);
    r.traits.nan_checked = true;
    combine_operands(r, Monoid::add);
    r.jvp = sum_jvp(false);
    r.transpose = sum_transpose(false);
  }
  add(add_any_record());
  {
    PrimitiveRecord& r = add(record("sub", "x - y.", 2, numbers, "stablehlo.subtract"));
    r.traits.nan_checked = true;
    r.jvp = sum_jvp(true);
    r.transpose = sum_transpose(true);
  }
  {
    PrimitiveRecord& r = add(record("mul", "x * y.", 2, numbers, "stablehlo.multiply"));
    r.splits = mul_splits;
    r.type = type_rule("mul", 2, numbers, same_dtype, booleans);
    r.traits.nan_checked = true;
    combine_operands(r, Monoid::mul);
    r.jvp = elementwise_jvp({from_pair([](const Array& g, const Array&, const Array& y) { return lax::mul(g, y); }),
                             from_pair([](const Array& g, const Array& x, const Array&) { return lax::mul(x, g); })});
    r.transpose = mul_transpose;
  }
  {
    PrimitiveRecord& r = add(record("mulhi", "The upper half of the double-width product.", 2, integers, ""));
    no_tangent(r);
    r.lower = [](std::span<const Array> in, const Attrs&) { return Arrays{lower_mulhi(in[0], in[1])}; };
  }
  {
    PrimitiveRecord& r = add(record("div", "x / y; integers truncate toward zero.", 2, numbers, "stablehlo.divide"));
    r.traits.cost = Cost::division;
    r.jvp = elementwise_jvp({from_pair([](const Array& g, const Array&, const Array& y) { return lax::div(g, y); }),
                             from_pair([](const Array& g, const Array& x, const Array& y) {
                               const Array product = lax::mul(lax::neg(g), x);
                               return lax::mul(product, lax::integer_pow(y, -2));
                             })});
    r.transpose = div_transpose;
    r.samples = sample_calls(2, {0.5, 3.0});
  }
  {
    PrimitiveRecord& r =
        add(record("rem", "The remainder of x / y, with the sign of x.", 2, integers | floats, "stablehlo.remainder"));
    r.traits.cost = Cost::division;
    r.traits.nan_checked = true;
    r.jvp = elementwise_jvp({from_pair([](const Array& g, const Array& x, const Array& y) {
                               const Types types = {x.type(), y.type()};
                               return broadcast_to(broadcast_operand_shapes("rem", types), g);
                             }),
                             from_pair([](const Array& g, const Array& x, const Array& y) {
                               const Array minus = lax::neg(g);
                               const Array sign = lax::sign(lax::div(x, y));
                               return lax::mul(minus, lax::mul(sign, lax::floor(lax::abs(lax::div(x, y)))));
                             })});
    r.samples = sample_calls(2, {0.5, 3.0});
  }
  return family;
}

}  // namespace capibara::elementwise

namespace capibara::jax::lax {

Array neg(const Array& x) { return elementwise::call<"neg">(x); }
Array sign(const Array& x) { return elementwise::call<"sign">(x); }
Array floor(const Array& x) { return elementwise::call<"floor">(x); }
Array ceil(const Array& x) { return elementwise::call<"ceil">(x); }
Array abs(const Array& x) { return elementwise::call<"abs">(x); }
Array sub(const Array& x, const Array& y) { return elementwise::call<"sub">(x, y); }
Array mulhi(const Array& x, const Array& y) { return elementwise::call<"mulhi">(x, y); }
Array div(const Array& x, const Array& y) { return elementwise::call<"div">(x, y); }
Array rem(const Array& x, const Array& y) { return elementwise::call<"rem">(x, y); }

Array round(const Array& x, RoundingMethod method) {
  static const Primitive p = primitive("round");
  return bind1(p, {x}, Attrs{{"rounding_method", static_cast<int>(method)}});
}

// The primitives add and mul take booleans too, for programs read from StableHLO; jax.lax does not.
Array add(const Array& x, const Array& y) {
  elementwise::require_accepted("add", elementwise::numbers, x.dtype(), 0);
  return elementwise::call<"add">(x, y);
}

Array mul(const Array& x, const Array& y) {
  elementwise::require_accepted("mul", elementwise::numbers, x.dtype(), 0);
  return elementwise::call<"mul">(x, y);
}

Array add_any(const Array& x, const Array& y) {
  static const Primitive p = primitive("add_any");
  return bind1(p, {x, y});
}

}  // namespace capibara::jax::lax
