// Functions of jax.numpy that inspect the bits of a number, and those with custom derivatives.
#include <capibara/custom_derivatives.h>
#include <capibara/lax.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/transforms.h>

#include <cmath>
#include <numbers>

#include "library/numpy/elementwise_operands.h"

namespace capibara::jax::numpy {

namespace {

// The signed integer dtype as wide as a floating dtype.
DType bits_dtype(const char* name, DType dtype) {
  switch (bits(dtype)) {
    case 16:
      return DType::int16;
    case 32:
      return DType::int32;
    case 64:
      return DType::int64;
    default:
      throw NotImplementedError(
          concat("jax.numpy.", name, " only supports 16, 32, and 64-bit types, got ", to_string(dtype)));
  }
}

using Parts = std::tuple<Array, Array>;

Parts split_float(Array x) {
  const DType dtype = x.dtype(), bits_type = bits_dtype("frexp", dtype);
  const FloatInfo info = finfo(dtype);
  const int64_t mask = (int64_t{1} << info.exponent_bits) - 1, bias = mask / 2;
  // Subnormal numbers are scaled into the normal range first.
  const Array is_subnormal = lax::lt(lax::abs(x), constant_like(x, info.tiny));
  const Array normal = where(is_subnormal, x * constant_like(x, std::ldexp(1.0, info.mantissa_bits)), x);
  const Array scale =
      where(is_subnormal, strong_constant(bits_type, -info.mantissa_bits), strong_constant(bits_type, 0));
  Array word = lax::bitcast_convert_type(normal, bits_type);
  Array exponent = scale + (((word >> info.mantissa_bits) & mask) - (bias - 1));
  word = (word & ~(mask << info.mantissa_bits)) | ((bias - 1) << info.mantissa_bits);
  const Array is_infinite = isinf(x), either = is_infinite | isnan(x);
  const Array has_none = either | (x == 0);
  exponent = where(has_none, strong_constant(bits_type, 0), exponent);
  return {where(has_none, x, lax::bitcast_convert_type(word, dtype)),
          lax::convert_element_type(exponent, DType::int32, false)};
}

Parts frexp_with_derivative(const Array& x) {
  static const auto function = [] {
    auto split = custom_jvp(split_float, "_frexp");
    split.defjvp(
        [](const std::tuple<Array>& primals, const std::tuple<Array>& tangents) {
          const Array& tangent = std::get<0>(tangents);
          const Parts parts = frexp_with_derivative(std::get<0>(primals));
          const Array& exponent = std::get<1>(parts);
          const Array scale = exp2(-lax::convert_element_type(exponent, tangent.dtype(), false));
          ArrayType no_tangent = exponent.type();
          no_tangent.dtype = DType::float0;
          Array product = tangent * scale;
          return std::tuple(parts, Parts(product, lax::zeros(no_tangent)));
        },
        "_frexp_jvp");
    return split;
  }();
  return function(x);
}

Array without_infinity(const Array& x) {
  Array isposinf_x = isposinf(real(x));
  return lax::select(isposinf_x, lax::zeros_like(x), x);
}

Array wrap_between(const Array& x, double bound) {
  const Array half = constant_like(x, bound), period = constant_like(x, 2 * bound);
  const Array rest = lax::rem(lax::add(x, half), period);
  const Array is_less = lax::lt(rest, constant_like(x, 0));
  const Array positive = lax::select(is_less, lax::add(rest, period), rest);
  return lax::sub(positive, half);
}

// log_base(base^x1 + base^x2) for e and 2.
struct LogAddExp {
  const char* name;
  Array (*power)(const Array&);
  double scale;  // 1 / log(base)

  Array scaled(const Array& x) const { return scale == 1 ? x : lax::mul(constant_like(x, scale), x); }

  Array operator()(const Array& x1, const Array& x2) const {
    const Array greatest = lax::max(x1, x2);
    if (is_complex(greatest.dtype())) {
      const Array sum_x1 = lax::add(x1, x2);
      const Array delta = lax::sub(sum_x1, lax::mul(greatest, constant_like(greatest, 2)));
      const Array sum = lax::add(greatest, scaled(lax::log1p(power(delta))));
      Array real_part = lax::real(sum);
      return lax::complex(real_part, wrap_between(lax::imag(sum), std::numbers::pi * scale));
    }
    const Array delta = lax::sub(x1, x2);
    const Array sum = lax::add(greatest, scaled(lax::log1p(power(lax::neg(lax::abs(delta))))));
    Array is_nan = isnan(delta);
    return lax::select(is_nan, lax::add(x1, x2), sum);
  }
};

using TwoArrays = std::tuple<Array, Array>;

Array log_add(const LogAddExp& formula, const char* operation, const Array& x1, const Array& x2) {
  // Equal shapes, so that the derivative below does not have the shape of a scalar operand.
  const Arrays both = broadcast_arrays(operation, promote_args_inexact(operation, {x1, x2}));
  const std::function<Array(Array, Array)> value = [formula](Array a, Array b) { return formula(a, b); };
  auto function = custom_jvp([value](Array a, Array b) { return value(a, b); }, formula.name);
  function.defjvp(
      [formula, operation](const TwoArrays& primals, const TwoArrays& tangents) {
        const auto& [a, b] = primals;
        const auto& [a_tangent, b_tangent] = tangents;
        const Array sum = log_add(formula, operation, a, b);
        const Array finite = without_infinity(sum);
        const Array a_part = lax::mul(a_tangent, formula.power(lax::sub(without_infinity(a), finite)));
        const Array b_part = lax::mul(b_tangent, formula.power(lax::sub(without_infinity(b), finite)));
        return std::tuple(sum, lax::add(a_part, b_part));
      },
      std::string("_") + formula.name + "_jvp");
  return function(both[0], both[1]);
}

// The k-th derivative of sin(x)/x at zero, for x equal to zero, differentiable any number of times.
Array sinc_at_zero(int64_t k, const Array& x) {
  static const auto function = [] {
    auto series = custom_jvp(
        [](int64_t order, Array at) {
          const Array nothing = at * 0;
          if (order % 2 != 0) return nothing;
          const double sign = order / 2 % 2 == 0 ? 1 : -1;
          return nothing + constant_like(at, sign / static_cast<double>(order + 1));
        },
        "_sinc_maclaurin");
    series.defjvp(
        [](const std::tuple<int64_t, Array>& primals, const std::tuple<int64_t, Array>& tangents) {
          const auto& [order, at] = primals;
          Array sinc_at_zero_order = sinc_at_zero(order, at);
          return std::tuple(sinc_at_zero_order, sinc_at_zero(order + 1, at) * std::get<1>(tangents));
        },
        "_sinc_maclaurin_jvp");
    return series;
  }();
  return function(k, x);
}

Array bessel_i0(Array x) {
  const Array magnitude = lax::abs(x);
  Array exponential = lax::exp(magnitude);
  return lax::mul(exponential, lax::bessel_i0e(magnitude));
}

}  // namespace

Array signbit(const Array& x) {
  const auto sign_of = [](const Array& operand) {
    const DType dtype = operand.dtype();
    if (is_integer(dtype)) return lax::lt(operand, strong_constant(dtype, 0));
    if (is_bool(dtype)) return lax::full(operand.shape(), false, DType::bool_);
    if (!is_floating(dtype)) throw ValueError(concat("signbit: ", to_string(dtype), " numbers have no single sign"));
    const FloatInfo info = finfo(dtype);
    const Array word = lax::bitcast_convert_type(operand, bits_dtype("signbit", dtype));
    return lax::convert_element_type(word >> (info.exponent_bits + info.mantissa_bits), DType::bool_, false);
  };
  return named("signbit", sign_of, x);
}

Array copysign(const Array& x1, const Array& x2) {
  const auto with_sign = [](const Array& a, const Array& b) {
    const Arrays both = promote_args_inexact("copysign", {a, b});
    if (is_complex(both[0].dtype())) throw TypeError("copysign: complex numbers have no single sign");
    const Array magnitude = lax::abs(both[0]);
    const Array is_negative = signbit(both[1]);
    return where(is_negative, lax::neg(magnitude), magnitude);
  };
  return named("copysign", with_sign, x1, x2);
}

std::pair<Array, Array> frexp(const Array& x) {
  const Array operand = promote_inexact("frexp", x);
  if (is_complex(operand.dtype())) throw TypeError("frexp: complex numbers have no single exponent");
  const Parts parts = frexp_with_derivative(operand);
  return {std::get<0>(parts), std::get<1>(parts)};
}

Array ldexp(const Array& x1, const Array& x2) {
  const auto scale = [](const Array& a, const Array& b) {
    if (is_complex(a.dtype()) || is_inexact(b.dtype())) {
      throw ValueError(concat("ldexp: a real number and an integer are needed, got ", to_string(a.type()), " and ",
                              to_string(b.type())));
    }
    const Array x = promote_inexact("ldexp", a);
    const DType dtype = x.dtype();
    auto [mantissa, exponent] = frexp(x);
    Array converted = lax::convert_element_type(exponent, dtype, false);
    exponent = converted + lax::convert_element_type(b, dtype, false);
    // 2^exponent alone may overflow even if the product does not: the mantissa is multiplied by one factor first.
    Array is_greater = exponent > 0;
    mantissa = where(is_greater, mantissa * 2, mantissa);
    Array is_greater_exponent = exponent > 0;
    exponent = where(is_greater_exponent, exponent - 1, exponent);
    Array is_infinite = isinf(x), either = is_infinite | (x == 0);
    return where(either, x, mantissa * power(2, exponent));
  };
  return named("ldexp", scale, x1, x2);
}

Array nextafter(const Array& x, const Array& y) {
  const Arrays both = promote_args_inexact("nextafter", {x, y});
  return lax::nextafter(both[0], both[1]);
}

Array spacing(const Array& x) {
  const Array operand = promote_inexact("spacing", x);
  if (is_complex(operand.dtype())) throw ValueError("spacing: complex numbers have no neighbours");
  const Array infinity = constant_like(operand, HUGE_VAL);
  if (operand.dtype() == DType::float16) return lax::sub(lax::nextafter(operand, infinity), operand);
  const Array distance = lax::nextafter(operand, copysign(infinity, operand)) - operand;
  const Array least = strong_constant(operand.dtype(), finfo(operand.dtype()).smallest_subnormal);
  const Array is_zero = distance == 0;
  return where(is_zero, copysign(least, operand), distance);
}

Array logaddexp(const Array& x1, const Array& x2) { return log_add({"logaddexp", lax::exp, 1.0}, "logaddexp", x1, x2); }

Array logaddexp2(const Array& x1, const Array& x2) {
  return log_add({"logaddexp2", lax::exp2, 1 / std::log(2.0)}, "logaddexp2", x1, x2);
}

Array heaviside(const Array& x1, const Array& x2) {
  const auto step = [](const Array& a, const Array& b) {
    const Arrays both = promote_dtypes_inexact({a, b});
    const Array &x = both[0], zero = constant_like(x, 0);
    const Array at_zero = where(isnan(x), x, both[1]);
    Array is_less = lax::lt(x, zero);
    return where(is_less, zero, where(lax::gt(x, zero), constant_like(x, 1), at_zero));
  };
  return named("heaviside", step, x1, x2);
}

Array hypot(const Array& x1, const Array& x2) {
  const auto length = [](const Array& a, const Array& b) {
    const Arrays both = promote_args_inexact("hypot", {a, b});
    if (is_complex(both[0].dtype()))
      throw ValueError("jnp.hypot is not well defined for complex-valued inputs; take abs of them first");
    const Array one = lax::abs(both[0]), other = lax::abs(both[1]);
    const Array isposinf_one = isposinf(one);
    const Array is_infinite = lax::bitwise_or(isposinf_one, isposinf(other));
    const Array great = maximum(one, other), small = minimum(one, other);
    const Array is_zero = lax::eq(great, constant_like(great, 0));
    // After division by the larger side, no square overflows.
    const Array ratio = lax::div(small, where(is_zero, lax::full_like(great, constant_like(great, 1)), great));
    const Array result = where(is_zero, great, great * lax::sqrt(1 + lax::square(ratio)));
    return where(is_infinite, constant_like(result, HUGE_VAL), result);
  };
  return named("hypot", length, x1, x2);
}

Array sinc(const Array& x) {
  const auto quotient = [](const Array& operand) {
    const Array z = promote_inexact("sinc", operand);
    const Array is_zero = lax::eq(z, constant_like(z, 0));
    const Array scaled = lax::mul(constant_like(z, std::numbers::pi), z);
    const Array safe = where(is_zero, constant_like(z, 1), scaled);
    Array sinc_at_zero_value = sinc_at_zero(0, scaled);
    return where(is_zero, sinc_at_zero_value, lax::div(lax::sin(safe), safe));
  };
  return named("sinc", quotient, x);
}

Array i0(const Array& x) {
  static const auto bessel = [] {
    auto function = custom_jvp(bessel_i0, "_i0");
    function.defjvp(
        [](const std::tuple<Array>& primals, const std::tuple<Array>& tangents) {
          auto [value, tangent] = jvp(bessel_i0, primals, tangents);
          return std::tuple(value, where(std::get<0>(primals) == 0, 0.0, tangent));
        },
        "_i0_jvp");
    return function;
  }();
  const auto evaluate = [](const Array& operand) {
    const Array z = promote_inexact("i0", operand);
    if (!is_floating(z.dtype())) throw ValueError(concat("i0: real numbers are needed, got ", to_string(z.type())));
    return bessel(z);
  };
  return named("i0", evaluate, x);
}

}  // namespace capibara::jax::numpy
