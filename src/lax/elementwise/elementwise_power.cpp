// Powers and roots.
#include "lax/elementwise/elementwise.h"

namespace capibara::elementwise {

namespace lax = jax::lax;

namespace {

TypeResult pow_type(std::span<const ArrayType> types, const Attrs&) {
  require_count("pow", types, 2);
  const DType x = types[0].dtype, y = types[1].dtype;
  // Integer bases are for StableHLO; lax::pow rejects them.
  require_accepted("pow", numbers, x, 0);
  require_accepted("pow", numbers, y, 1);
  if (x != y && !(is_inexact(x) && is_integer(y))) {
    throw TypeError(
        concat("pow: the first argument must have an inexact dtype (float or complex), the second an "
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
  PrimitiveRecord r =
      record("pow", "x to the power y; y may be an integer if x is inexact.", 2, inexact, "stablehlo.power");
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

}  // namespace

Family power_records() {
  Family family;
  const auto add = [&](PrimitiveRecord r) -> PrimitiveRecord& { return family.emplace_back(std::move(r)); };
  add(pow_record());
  add(integer_pow_record());
  {
    PrimitiveRecord& r = add(record("square", "x * x.", 1, numbers, "chlo.square"));
    r.jvp = elementwise_jvp(
        {from_input([](const Array& g, const Array& x) { return lax::mul(g, lax::mul(scalar_like(x, 2), x)); })});
    r.lower = [](std::span<const Array> in, const Attrs&) -> Arrays {
      if (!is_integer(in[0].dtype())) return {};
      return {lax::mul(in[0], in[0])};
    };
  }
  {
    PrimitiveRecord& r = add(record("sqrt", "The square root.", 1, inexact, "stablehlo.sqrt"));
    r.traits.cost = Cost::root;
    r.traits.nan_checked = true;
    r.jvp = elementwise_jvp({from_output(
        [](const Array& g, const Array& y, const Array& x) { return lax::mul(g, lax::div(scalar_like(x, 0.5), y)); })});
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
  return family;
}

}  // namespace capibara::elementwise

namespace capibara::jax::lax {

Array square(const Array& x) { return elementwise::call<"square">(x); }
Array sqrt(const Array& x) { return elementwise::call<"sqrt">(x); }
Array rsqrt(const Array& x) { return elementwise::call<"rsqrt">(x); }
Array cbrt(const Array& x) { return elementwise::call<"cbrt">(x); }

Array integer_pow(const Array& x, int64_t y) {
  static const Primitive p = primitive("integer_pow");
  return bind1(p, {x}, Attrs{{"y", y}});
}

Array reciprocal(const Array& x) { return integer_pow(x, -1); }

Array pow(const Array& x, const Array& y) {
  static const Primitive p = primitive("pow");
  // An integer exponent keeps its dtype.
  if (is_integer(y.dtype()) && is_inexact(x.dtype())) return bind1(p, {x, y});
  const Arrays operands = adopt_numbers({x, y});
  elementwise::require_accepted("pow", elementwise::inexact, operands[0].dtype(), 0);
  return bind1(p, {operands[0], operands[1]});
}

}  // namespace capibara::jax::lax
