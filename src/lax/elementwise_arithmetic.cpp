// Arithmetic: sums, products, quotients, powers, roots, rounding, signs, extrema.
#include "lax/elementwise.h"

namespace capibara::elementwise {

namespace lax = jax::lax;

namespace {

// ---- sums -------------------------------------------------------------------------------------------------------

JvpRule sum_jvp(bool subtract) {
  return [subtract](const JvpArgs& args) {
    const Array &dx = args.tangents[0], &dy = args.tangents[1];
    const Array out = bind1(args.primitive, {args.primals[0], args.primals[1]}, args.attrs);
    if (!dx.defined() && !dy.defined()) return JvpResult{{out}, {Array()}};
    if (!dx.defined()) return JvpResult{{out}, {broadcast_to(out.shape(), subtract ? lax::neg(dy) : dy)}};
    if (!dy.defined()) return JvpResult{{out}, {broadcast_to(out.shape(), dx)}};
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
    inputs[1 - mapped] = batch_at(inputs[1 - mapped], args.dims[1 - mapped], args.axis.size, to);
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
  if (args.linear(0)) result[0] = unbroadcast(lax::mul(t, args.inputs[1]), args.types[0]);
  else result[1] = unbroadcast(lax::mul(args.inputs[0], t), args.types[1]);
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
  // Four products of 32-bit halves; `middle` gathers what carries out of the lower half.
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

// ---- powers -----------------------------------------------------------------------------------------------------

TypeResult pow_type(std::span<const ArrayType> types, const Attrs&) {
  require_count("pow", types, 2);
  const DType x = types[0].dtype, y = types[1].dtype;
  // Integer bases are StableHLO's; lax::pow refuses them.
  require_accepted("pow", numbers, x, 0);
  require_accepted("pow", numbers, y, 1);
  if (x != y && !(is_inexact(x) && is_integer(y))) {
    throw TypeError(concat("pow: the first argument must have an inexact dtype (float or complex), the second an "
                           "integer dtype or the same inexact one, got ",
                           dtype_name(x), " and ", dtype_name(y)));
  }
  ArrayType out;
  out.shape = broadcast_operand_shapes("pow", types);
  out.dtype = x;
  out.weak_type = types[0].weak_type && types[1].weak_type;
  return Types{out};
}

Array pow_base_jvp(const Array& g, const Array& base, const Array& exponent) {
  const bool integer_exponent = is_integer(exponent.dtype());
  Array x = base, y = exponent;
  if (integer_exponent) {
    y = lax::convert_element_type(y, x.dtype(), false);
    const Types types = {x.type(), y.type()};
    const Shape shape = broadcast_operand_shapes("pow", types);
    x = broadcast_to(shape, x);
    y = broadcast_to(shape, y);
    const Array is_zero = lax::eq(y, scalar_like(y, 0));
    const Array zeros = lax::full_like(y, 0);
    const Array nonzero = replace_zero(y);
    const Array ones = lax::full_like(y, 1);
    const Array power = lax::pow(x, lax::sub(y, ones));
    return lax::mul(g, lax::select(is_zero, zeros, lax::mul(nonzero, power)));
  }
  const Array ones = lax::full_like(y, 1);
  return lax::mul(g, lax::mul(y, lax::pow(x, lax::sub(y, ones))));
}

Array pow_exponent_jvp(const Array& g, const Array& output, const Array& x, const Array& y) {
  const Array log = lax::log(replace_zero(x));
  return lax::convert_element_type(lax::mul(g, lax::mul(log, output)), y.dtype(), y.weak_type());
}

PrimitiveRecord pow_record() {
  PrimitiveRecord r = record("pow", "x to the power y; y may be an integer beside an inexact x.", 2, inexact,
                             "stablehlo.power");
  r.traits.cost = Cost::function;
  r.traits.nan_checked = true;
  r.type = pow_type;
  r.jvp = elementwise_jvp({from_pair(pow_base_jvp), from_pair_output(pow_exponent_jvp)});
  r.lower = [](std::span<const Array> in, const Attrs&) -> Arrays {
    if (in[0].dtype() == in[1].dtype() && in[0].shape() == in[1].shape()) return {};
    const Arrays same = {in[0], lax::convert_element_type(in[1], in[0].dtype(), false)};
    return {bind1(primitive("pow"), {broadcast_operands("pow", same)[0], broadcast_operands("pow", same)[1]})};
  };
  r.samples = sample_calls(2, {0.2, 2.0});
  return r;
}

PrimitiveRecord integer_pow_record() {
  PrimitiveRecord r = record("integer_pow", "x to a fixed integer power y.", 1, numbers, "");
  r.traits.nan_checked = true;
  r.type = [](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    require_count("integer_pow", types, 1);
    require_accepted("integer_pow", numbers, types[0].dtype);
    if (attrs.integer("y") < 0 && is_integer(types[0].dtype)) {
      throw TypeError(concat("Integers cannot be raised to negative powers, got integer_pow(", to_string(types[0]),
                             ", ", attrs.integer("y"), ")"));
    }
    ArrayType out = types[0];
    return Types{out};
  };
  r.jvp = elementwise_jvp({[](const Array& g, const Array&, std::span<const Array> in, const Attrs& attrs) -> Array {
    const Array& x = in[0];
    const int64_t y = attrs.integer("y");
    if (y == 0) return lax::full_like(g, 0);
    if (y == 1) return g;
    const Array factor = scalar_like(x, static_cast<double>(y));
    if (y == 2) return lax::mul(g, lax::mul(factor, x));
    return lax::mul(g, lax::mul(factor, lax::integer_pow(x, y - 1)));
  }});
  r.lower = [](std::span<const Array> in, const Attrs& attrs) -> Arrays {
    Array x = in[0], product;
    const int64_t y = attrs.integer("y");
    if (y == 0) return {lax::full_like(x, 1)};
    for (uint64_t rest = y < 0 ? 0 - static_cast<uint64_t>(y) : static_cast<uint64_t>(y); rest > 0; rest >>= 1) {
      if (rest & 1) product = product.defined() ? lax::mul(product, x) : x;
      if (rest > 1) x = lax::mul(x, x);
    }
    return {y < 0 ? lax::div(lax::full_like(product, 1), product) : product};
  };
  r.samples = [](DType dtype) {
    std::vector<Attrs> variants;
    for (int64_t y : {0, 1, 2, 3, 7}) variants.push_back(Attrs{{"y", y}});
    if (is_inexact(dtype)) {
      for (int64_t y : {-1, -2}) variants.push_back(Attrs{{"y", y}});
    }
    return sample_calls(1, {0.3, 2.0}, variants)(dtype);
  };
  return r;
}

// ---- extrema ----------------------------------------------------------------------------------------------------

// 1 where x alone is the extremum, 1/2 where both are, 0 elsewhere.
Array balanced_share(const Array& x, const Array& extremum, const Array& other) {
  const Array mine = lax::eq(x, extremum);
  const Array ones = lax::full_like(extremum, 1);
  const Array zeros = lax::full_like(extremum, 0);
  const Array numerator = lax::select(mine, ones, zeros);
  const Array theirs = lax::eq(other, extremum);
  const Array twos = lax::full_like(extremum, 2);
  const Array one = lax::full_like(extremum, 1);
  const Array denominator = lax::select(theirs, twos, one);
  return lax::div(numerator, denominator);
}

JvpRule extremum_jvp() {
  return elementwise_jvp(
      {from_pair_output([](const Array& g, const Array& z, const Array& x, const Array& y) {
         return lax::mul(g, balanced_share(x, z, y));
       }),
       from_pair_output([](const Array& g, const Array& z, const Array& x, const Array& y) {
         return lax::mul(g, balanced_share(y, z, x));
       })});
}

PrimitiveRecord clamp_record() {
  PrimitiveRecord r = record("clamp", "x limited to [min, max]; the bounds are scalars or have x's shape.", 3,
                             anything, "stablehlo.clamp");
  r.traits.elementwise = Elementwise::scalar_bounds;
  r.type = [](std::span<const ArrayType> types, const Attrs&) -> TypeResult {
    require_count("clamp", types, 3);
    for (int i = 0; i < 3; ++i) require_accepted("clamp", anything, types[static_cast<std::size_t>(i)].dtype, i);
    require_same_dtypes("clamp", types);
    const ArrayType &low = types[0], &x = types[1], &high = types[2];
    for (const auto& [name, bound] : {std::pair<const char*, const ArrayType&>{"min", low}, {"max", high}}) {
      if (bound.rank() != 0 && bound.shape != x.shape) {
        throw TypeError(concat("clamp requires ", name, ".shape == operand.shape or ", name, ".shape == (), got ",
                               name, " ", to_string(bound), " and operand ", to_string(x)));
      }
    }
    ArrayType out = x;
    out.weak_type = low.weak_type && x.weak_type && high.weak_type;
    return Types{out};
  };
  r.jvp = elementwise_jvp(
      {[](const Array& g, const Array&, std::span<const Array> in, const Attrs&) {
         const Array above = lax::gt(in[0], in[1]);
         const Array inside = lax::bitwise_and(above, lax::lt(in[0], in[2]));
         Array broadcasted = broadcast_to(in[1].shape(), g);
         return lax::select(inside, broadcasted, lax::full_like(in[1], 0));
       },
       [](const Array& g, const Array&, std::span<const Array> in, const Attrs&) {
         const Array above = lax::gt(in[1], in[0]);
         const Array inside = lax::bitwise_and(above, lax::lt(in[1], in[2]));
         return lax::select(inside, g, lax::full_like(in[1], 0));
       },
       [](const Array& g, const Array&, std::span<const Array> in, const Attrs&) {
         const Array beyond = lax::lt(in[2], in[1]);
         Array broadcasted_in = broadcast_to(in[1].shape(), g);
         return lax::select(beyond, broadcasted_in, lax::full_like(in[1], 0));
       }});
  r.batch = [](const BatchArgs& args) {
    Arrays in(args.inputs.begin(), args.inputs.end());
    const auto result = [&](int64_t dim) {
      return BatchResult{capibara::bind(args.primitive, in, args.attrs), {dim}};
    };
    const int64_t dim = args.dims[1];
    if (args.dims[0] == dim && args.dims[2] == dim) {
      if (in[0].shape() == in[1].shape() && in[2].shape() == in[1].shape()) return result(dim);
      if (in[0].ndim() == 0 && in[2].ndim() == 0) return result(dim);
      if (in[0].ndim() == 1 && in[2].ndim() == 1) {
        in[0] = lax::broadcast_in_dim(in[0], in[1].shape(), {dim});
        in[2] = lax::broadcast_in_dim(in[2], in[1].shape(), {dim});
        return result(dim);
      }
    } else if (in[0].ndim() == 0 && in[2].ndim() == 0 && dim != not_mapped) {
      return result(dim);
    }
    for (std::size_t i : {std::size_t{0}, std::size_t{2}, std::size_t{1}}) {
      if (in[i].ndim() > 0) in[i] = batch_at(in[i], args.dims[i], args.axis.size);
    }
    if (in[1].ndim() == 0) in[1] = lax::broadcast(in[1], {args.axis.size});
    for (std::size_t i : {std::size_t{0}, std::size_t{2}}) {
      if (in[i].ndim() == 0) in[i] = lax::broadcast(in[i], in[1].shape());
      else if (in[i].ndim() < in[1].ndim()) in[i] = lax::broadcast_in_dim(in[i], in[1].shape(), {0});
    }
    return result(0);
  };
  r.lower = nullptr;  // StableHLO's clamp takes scalar bounds too
  r.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{0, 2}, Shape{2, 3}}) {
      const ArrayType full{shape, dtype, false, false, {}}, scalar{{}, dtype, false, false, {}};
      samples.push_back({{full, full, full}, {}});
      samples.push_back({{scalar, full, scalar}, {}});
    }
    return samples;
  };
  return r;
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
    PrimitiveRecord& r = add(record("sign", "-1, 0 or 1 by the sign of x; x/|x| for complex numbers.", 1, numbers,
                                    "stablehlo.sign"));
    no_tangent(r);
    r.lower = [](std::span<const Array> in, const Attrs&) -> Arrays {
      if (!is_unsigned(in[0].dtype())) return {};
      const Array is_zero = lax::eq(in[0], lax::full_like(in[0], 0));
      Array filled = lax::full_like(in[0], 0);
      return {lax::select(is_zero, filled, lax::full_like(in[0], 1))};
    };
  }
  no_tangent(add(record("floor", "The greatest integer not above x.", 1, floats, "stablehlo.floor")));
  no_tangent(add(record("ceil", "The least integer not below x.", 1, floats, "stablehlo.ceil")));
  add(round_record());
  {
    PrimitiveRecord& r = add(record("abs", "The absolute value.", 1, wide_signed_integers | inexact, "stablehlo.abs",
                                    real_dtype));
    r.jvp = elementwise_jvp({from_output(abs_jvp)});
  }
  {
    PrimitiveRecord& r = add(record("add", "x + y.", 2, numbers, "stablehlo.add"));
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
    r.type = type_rule("mul", 2, numbers, same_dtype, booleans);
    r.traits.nan_checked = true;
    combine_operands(r, Monoid::mul);
    r.jvp = elementwise_jvp(
        {from_pair([](const Array& g, const Array&, const Array& y) { return lax::mul(g, y); }),
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
    r.jvp = elementwise_jvp(
        {from_pair([](const Array& g, const Array&, const Array& y) { return lax::div(g, y); }),
         from_pair([](const Array& g, const Array& x, const Array& y) {
           const Array product = lax::mul(lax::neg(g), x);
           return lax::mul(product, lax::integer_pow(y, -2));
         })});
    r.transpose = div_transpose;
    r.samples = sample_calls(2, {0.5, 3.0});
  }
  {
    PrimitiveRecord& r = add(record("rem", "The remainder of x / y, with the sign of x.", 2, integers | floats,
                                    "stablehlo.remainder"));
    r.traits.cost = Cost::division;
    r.traits.nan_checked = true;
    r.jvp = elementwise_jvp(
        {from_pair([](const Array& g, const Array& x, const Array& y) {
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
  add(pow_record());
  add(integer_pow_record());
  {
    PrimitiveRecord& r = add(record("square", "x * x.", 1, numbers, "chlo.square"));
    r.jvp = elementwise_jvp({from_input([](const Array& g, const Array& x) {
      return lax::mul(g, lax::mul(scalar_like(x, 2), x));
    })});
    r.lower = [](std::span<const Array> in, const Attrs&) -> Arrays {
      if (!is_integer(in[0].dtype())) return {};
      return {lax::mul(in[0], in[0])};
    };
  }
  {
    PrimitiveRecord& r = add(record("sqrt", "The square root.", 1, inexact, "stablehlo.sqrt"));
    r.traits.cost = Cost::root;
    r.traits.nan_checked = true;
    r.jvp = elementwise_jvp({from_output([](const Array& g, const Array& y, const Array& x) {
      return lax::mul(g, lax::div(scalar_like(x, 0.5), y));
    })});
    r.samples = sample_calls(1, {0.1, 4.0});
  }
  {
    PrimitiveRecord& r = add(record("rsqrt", "One over the square root.", 1, inexact, "stablehlo.rsqrt"));
    r.traits.cost = Cost::root;
    r.traits.nan_checked = true;
    r.jvp = elementwise_jvp({from_output([](const Array& g, const Array& y, const Array& x) {
      return lax::mul(g, lax::mul(scalar_like(x, -0.5), lax::div(y, x)));
    })});
    r.samples = sample_calls(1, {0.1, 4.0});
  }
  {
    PrimitiveRecord& r = add(record("cbrt", "The real cube root.", 1, floats, "stablehlo.cbrt"));
    r.traits.cost = Cost::function;
    r.traits.nan_checked = true;
    r.jvp = elementwise_jvp({from_output([](const Array& g, const Array& y, const Array& x) {
      return lax::mul(g, lax::mul(scalar_like(x, 1.0 / 3.0), lax::integer_pow(y, -2)));
    })});
    r.samples = sample_calls(1, {0.1, 4.0});
  }
  {
    PrimitiveRecord& r =
        add(record("max", "The greater of x and y; NaN wins, complex numbers by real, then imaginary part.", 2,
                   anything, "stablehlo.maximum"));
    combine_operands(r, Monoid::max);
    r.jvp = extremum_jvp();
  }
  {
    PrimitiveRecord& r =
        add(record("min", "The lesser of x and y; NaN wins, complex numbers by real, then imaginary part.", 2, anything,
                   "stablehlo.minimum"));
    combine_operands(r, Monoid::min);
    r.jvp = extremum_jvp();
  }
  add(clamp_record());
  add(record("nextafter", "The number next to x in the direction of y.", 2, floats, "chlo.next_after"));
  return family;
}

}  // namespace capibara::elementwise
