// jax.numpy's elementwise functions that are (almost) a single jax.lax operation after promotion.
#include <capibara/lax.h>
#include <capibara/numpy/elementwise.h>

#include <cmath>
#include <numbers>

#include "library/numpy/elementwise_operands.h"

namespace capibara {

Arrays promote_args_numeric(const char* name, const Arrays& operands) {
  Arrays promoted = promote_args(name, operands);
  if (promoted.empty() || !is_bool(promoted[0].dtype())) return promoted;
  for (Array& x : promoted) x = jax::lax::convert_element_type(x, DType::int32, false);
  return promoted;
}

}  // namespace capibara

namespace capibara::jax::numpy {

namespace {

using Unary = Array (*)(const Array&);
using Binary = Array (*)(const Array&, const Array&);

Array inexact(const char* name, const Array& x, Unary function) { return function(promote_inexact(name, x)); }

Array promoted(const char* name, const Array& x, const Array& y, Binary function) {
  const Arrays both = promote_args(name, {x, y});
  return function(both[0], both[1]);
}

Array inexact(const char* name, const Array& x, const Array& y, Binary function) {
  const Arrays both = promote_args_inexact(name, {x, y});
  return function(both[0], both[1]);
}

Array checked(const char* name, const Array& x) { return promote_args(name, {x})[0]; }

Array truth(const Array& x) { return is_bool(x.dtype()) ? x : lax::ne(x, constant_like(x, 0)); }

Array logical(const char* name, const Array& x, const Array& y, Binary function) {
  const Arrays both = promote_args(name, {x, y});
  Array truth_both = truth(both[0]);
  return function(truth_both, truth(both[1]));
}

Array all_equal_to(const Array& x, bool value) { return lax::full(x.shape(), value, DType::bool_); }

bool is_whole(DType dtype) { return is_integer(dtype) || is_bool(dtype); }

}  // namespace

// ---- arithmetic ---------------------------------------------------------------------------------------------------

Array add(const Array& x, const Array& y) { return x + y; }
Array subtract(const Array& x, const Array& y) { return x - y; }
Array multiply(const Array& x, const Array& y) { return x * y; }
Array true_divide(const Array& x1, const Array& x2) { return x1 / x2; }
Array float_power(const Array& x, const Array& y) { return inexact("float_power", x, y, lax::pow); }
Array negative(const Array& x) { return lax::neg(checked("negative", x)); }
Array positive(const Array& x) { return checked("positive", x); }
Array sign(const Array& x) { return lax::sign(checked("sign", x)); }
Array square(const Array& x) { return lax::square(promote_args_numeric("square", {x})[0]); }
Array reciprocal(const Array& x) { return lax::integer_pow(promote_inexact("reciprocal", x), -1); }

Array absolute(const Array& x) {
  checked("absolute", x);
  return is_bool(x.dtype()) || is_unsigned(x.dtype()) ? x : lax::abs(x);
}

Array fabs(const Array& x) {
  if (is_complex(x.dtype())) throw TypeError("fabs: complex numbers are not supported; use abs");
  return inexact("fabs", x, lax::abs);
}

// ---- comparisons, choices and logic -------------------------------------------------------------------------------

Array equal(const Array& x, const Array& y) { return x == y; }
Array not_equal(const Array& x, const Array& y) { return x != y; }
Array less(const Array& x, const Array& y) { return x < y; }
Array less_equal(const Array& x, const Array& y) { return x <= y; }
Array greater(const Array& x, const Array& y) { return x > y; }
Array greater_equal(const Array& x, const Array& y) { return x >= y; }
Array maximum(const Array& x, const Array& y) { return promoted("maximum", x, y, lax::max); }
Array minimum(const Array& x, const Array& y) { return promoted("minimum", x, y, lax::min); }

Array fmax(const Array& x1, const Array& x2) {
  return named(
      "fmax",
      [](const Array& a, const Array& b) {
        Array is_greater = a > b;
        return where(is_greater | isnan(b), a, b);
      },
      x1, x2);
}

Array fmin(const Array& x1, const Array& x2) {
  return named(
      "fmin",
      [](const Array& a, const Array& b) {
        Array is_less = a < b;
        return where(is_less | isnan(b), a, b);
      },
      x1, x2);
}

Array clip(const Array& arr, const ClipOptions& options) {
  const auto is_ordered = [](const std::optional<Array>& x) { return !x || !is_complex(x->dtype()); };
  if (!is_ordered(arr) || !is_ordered(options.min) || !is_ordered(options.max)) {
    throw ValueError(
        "clip: Complex values have no ordering and cannot be clipped; take real or imag of the operand and the bounds "
        "first");
  }
  Array result = arr;
  if (options.min) result = maximum(*options.min, result);
  if (options.max) result = minimum(*options.max, result);
  return result;
}

Array where(const Array& condition, const Array& x, const Array& y) {
  const auto choose = [](const Array& is_true, const Array& yes, const Array& no) {
    const Arrays cases = promote_dtypes({yes, no});
    Arrays all = {truth(is_true), cases[0], cases[1]};
    if (is_true.ndim() == 0) {
      const Arrays both = broadcast_arrays("where", cases);
      all = {all[0], both[0], both[1]};
    } else {
      all = broadcast_arrays("where", all);
    }
    return all[1].size() == 0 ? all[1] : lax::select(all[0], all[1], all[2]);
  };
  return named("_where", choose, condition, x, y);
}

Array logical_and(const Array& x, const Array& y) { return logical("logical_and", x, y, lax::bitwise_and); }
Array logical_or(const Array& x, const Array& y) { return logical("logical_or", x, y, lax::bitwise_or); }
Array logical_xor(const Array& x, const Array& y) { return logical("logical_xor", x, y, lax::bitwise_xor); }
Array logical_not(const Array& x) { return lax::bitwise_not(truth(checked("logical_not", x))); }

Array isclose(const Array& a, const Array& b, const CloseOptions& options) {
  const auto close = [&](const Array& first, const Array& second, const Array& relative, const Array& absolute) {
    Arrays both = promote_args("isclose", {first, second});
    if (is_key(both[0].dtype())) return lax::eq(both[0], both[1]);
    both = promote_args_inexact("isclose", both);
    const DType dtype = real_dtype(both[0].dtype());
    const Array rtol = lax::convert_element_type(relative, dtype), atol = lax::convert_element_type(absolute, dtype);
    const Array distance = lax::abs(lax::sub(both[0], both[1]));
    const Array in_range = lax::le(distance, lax::add(atol, lax::mul(rtol, lax::abs(both[1]))));
    const Array is_equal = lax::eq(both[0], both[1]);
    const Array result = logical_or(is_equal, logical_and(isfinite(both[1]), in_range));
    if (!options.equal_nan) return result;
    const Array first_is_nan = isnan(both[0]), second_is_nan = isnan(both[1]);
    return logical_or(result, logical_and(first_is_nan, second_is_nan));
  };
  return named("isclose", close, a, b, options.rtol, options.atol);
}

// ---- bits ---------------------------------------------------------------------------------------------------------

Array bitwise_and(const Array& x, const Array& y) { return x & y; }
Array bitwise_or(const Array& x, const Array& y) { return x | y; }
Array bitwise_xor(const Array& x, const Array& y) { return x ^ y; }
Array bitwise_not(const Array& x) { return lax::bitwise_not(checked("bitwise_not", x)); }

Array left_shift(const Array& x, const Array& y) { return x << y; }
Array right_shift(const Array& x1, const Array& x2) { return x1 >> x2; }

Array bitwise_count(const Array& x) {
  const auto count = [](const Array& operand) {
    const Array number = promote_args_numeric("bitwise_count", {operand})[0];
    return lax::convert_element_type(lax::population_count(absolute(number)), DType::uint8);
  };
  return named("bitwise_count", count, x);
}

// ---- exponentials and roots ---------------------------------------------------------------------------------------

Array exp(const Array& x) { return inexact("exp", x, lax::exp); }
Array exp2(const Array& x) { return inexact("exp2", x, lax::exp2); }
Array expm1(const Array& x) { return inexact("expm1", x, lax::expm1); }
Array log(const Array& x) { return inexact("log", x, lax::log); }
Array log1p(const Array& x) { return inexact("log1p", x, lax::log1p); }
Array sqrt(const Array& x) { return inexact("sqrt", x, lax::sqrt); }
Array cbrt(const Array& x) { return inexact("cbrt", x, lax::cbrt); }

Array log2(const Array& x) {
  const Array logarithm = inexact("log2", x, lax::log);
  const Array base = lax::log(strong_constant(real_dtype(logarithm.dtype()), 2));
  if (!is_complex(logarithm.dtype())) return lax::div(logarithm, base);
  Array quotient = lax::div(lax::real(logarithm), base);
  return lax::complex(quotient, lax::div(lax::imag(logarithm), base));
}

Array log10(const Array& x) {
  const Array logarithm = inexact("log10", x, lax::log);
  const Array factor = strong_constant(real_dtype(logarithm.dtype()), 1 / std::log(10.0));
  if (!is_complex(logarithm.dtype())) return lax::mul(logarithm, factor);
  Array product = lax::mul(lax::real(logarithm), factor);
  return lax::complex(product, lax::mul(lax::imag(logarithm), factor));
}

// ---- trigonometry -------------------------------------------------------------------------------------------------

Array sin(const Array& x) { return inexact("sin", x, lax::sin); }
Array cos(const Array& x) { return inexact("cos", x, lax::cos); }
Array tan(const Array& x) { return inexact("tan", x, lax::tan); }
Array arcsin(const Array& x) { return inexact("arcsin", x, lax::asin); }
Array arccos(const Array& x) { return inexact("arccos", x, lax::acos); }
Array arctan(const Array& x) { return inexact("arctan", x, lax::atan); }
Array arctan2(const Array& x1, const Array& x2) { return inexact("arctan2", x1, x2, lax::atan2); }
Array sinh(const Array& x) { return inexact("sinh", x, lax::sinh); }
Array cosh(const Array& x) { return inexact("cosh", x, lax::cosh); }
Array tanh(const Array& x) { return inexact("tanh", x, lax::tanh); }
Array arcsinh(const Array& x) { return inexact("arcsinh", x, lax::asinh); }
Array arctanh(const Array& x) { return inexact("arctanh", x, lax::atanh); }

Array arccosh(const Array& x) {
  const auto principal = [](const Array& operand) {
    const Array result = inexact("arccosh", operand, lax::acosh);
    if (!is_complex(result.dtype())) return result;
    const Array negative = lax::real(result) < 0;
    return where(negative, lax::neg(result), result);
  };
  return named("arccosh", principal, x);
}

Array deg2rad(const Array& x) {
  const Array operand = promote_inexact("deg2rad", x);
  return lax::mul(operand, constant_like(operand, std::numbers::pi / 180));
}

Array rad2deg(const Array& x) {
  const Array operand = promote_inexact("rad2deg", x);
  return lax::mul(operand, constant_like(operand, 180 / std::numbers::pi));
}

// ---- rounding -----------------------------------------------------------------------------------------------------

Array floor(const Array& x) { return is_whole(x.dtype()) ? x : inexact("floor", x, lax::floor); }
Array ceil(const Array& x) { return is_whole(x.dtype()) ? x : inexact("ceil", x, lax::ceil); }

Array trunc(const Array& x) {
  const auto toward_zero = [](const Array& operand) {
    if (is_whole(operand.dtype())) return operand;
    Array is_less = lax::lt(operand, constant_like(operand, 0)), raised = ceil(operand);
    return where(is_less, raised, floor(operand));
  };
  return named("trunc", toward_zero, x);
}

Array rint(const Array& x) {
  const auto nearest = [](const Array& operand) {
    if (is_whole(operand.dtype())) return lax::convert_element_type(operand, default_float(), false);
    if (is_complex(operand.dtype())) {
      Array rint_operand = rint(lax::real(operand));
      return lax::complex(rint_operand, rint(lax::imag(operand)));
    }
    return lax::round(operand, lax::RoundingMethod::to_nearest_even);
  };
  return named("rint", nearest, x);
}

Array round(const Array& a, const RoundOptions& options) {
  const int64_t decimals = options.decimals;
  const DType dtype = a.dtype();
  if (is_integer(dtype)) {
    if (decimals >= 0) return a;
    throw NotImplementedError(concat("round: integers cannot be rounded to decimals < 0, got decimals=", decimals));
  }
  if (!is_inexact(dtype)) throw ValueError(concat("round: numbers are needed, got ", to_string(a.type())));
  if (static_cast<double>(decimals) > std::log10(finfo(dtype).max)) return a;
  const auto round_real = [&](const Array& operand) {
    if (decimals == 0) return lax::round(operand, lax::RoundingMethod::to_nearest_even);
    const Array x = dtype == DType::float16 ? lax::convert_element_type(operand, DType::float32) : operand;
    const Array factor = constant_like(x, std::pow(10.0, static_cast<double>(decimals)));
    const Array scaled = lax::round(lax::mul(x, factor), lax::RoundingMethod::to_nearest_even);
    const Array result = lax::div(scaled, factor);
    return dtype == DType::float16 ? lax::convert_element_type(result, dtype) : result;
  };
  const auto round_all = [&](const Array& x) {
    if (!is_complex(dtype)) return round_real(x);
    Array round_real_x = round_real(lax::real(x));
    return lax::complex(round_real_x, round_real(lax::imag(x)));
  };
  return named("round", round_all, a);
}

std::pair<Array, Array> modf(const Array& x) {
  const Array operand = promote_inexact("modf", x);
  const Array is_at_least = lax::ge(operand, constant_like(operand, 0)), floored = floor(operand);
  const Array whole = where(is_at_least, floored, ceil(operand));
  return {operand - whole, whole};
}

// ---- the parts of numbers -----------------------------------------------------------------------------------------

Array real(const Array& val) { return is_complex(val.dtype()) ? lax::real(val) : checked("real", val); }
Array imag(const Array& val) {
  return is_complex(val.dtype()) ? lax::imag(val) : lax::full_like(checked("imag", val), constant_like(val, 0));
}
Array conjugate(const Array& x) { return is_complex(x.dtype()) ? lax::conj(x) : checked("conjugate", x); }

Array angle(const Array& z, const AngleOptions& options) {
  const auto argument = [&](const Array& operand) {
    Array real_part = real(operand), imaginary = imag(operand);
    const DType dtype = real_part.dtype();
    if (!is_inexact(dtype) || (is_floating(operand.dtype()) && operand.ndim() == 0)) {
      real_part = lax::convert_element_type(real_part, default_float(), false);
      imaginary = lax::convert_element_type(imaginary, default_float(), false);
    }
    const Array result = lax::atan2(imaginary, real_part);
    return options.deg ? rad2deg(result) : result;
  };
  return named("angle", argument, z);
}

// ---- kinds of numbers ---------------------------------------------------------------------------------------------

Array isfinite(const Array& x) {
  if (is_floating(x.dtype())) return lax::is_finite(x);
  if (!is_complex(x.dtype())) return all_equal_to(checked("isfinite", x), true);
  Array finite = lax::is_finite(lax::real(x));
  return lax::bitwise_and(finite, lax::is_finite(lax::imag(x)));
}

Array isinf(const Array& x) {
  const auto infinite = [](const Array& part) {
    return lax::eq(lax::abs(part), strong_constant(part.dtype(), HUGE_VAL));
  };
  const auto any_infinite = [&](const Array& operand) {
    if (is_floating(operand.dtype())) return infinite(operand);
    if (!is_complex(operand.dtype())) return all_equal_to(operand, false);
    Array infinite_operand = infinite(lax::real(operand));
    return lax::bitwise_or(infinite_operand, infinite(lax::imag(operand)));
  };
  return named("isinf", any_infinite, x);
}

Array isnan(const Array& x) { return lax::ne(x, x); }

namespace {

Array is_infinity(const char* name, const Array& x, double infinity) {
  if (is_floating(x.dtype())) return lax::eq(x, strong_constant(x.dtype(), infinity));
  if (is_complex(x.dtype())) {
    throw ValueError(concat(name, ": an infinity of a complex number has no sign, got ", to_string(x.type())));
  }
  return all_equal_to(checked(name, x), false);
}

Array replace_non_finite(const Array& x, const Array& nan, const Array& positive, const Array& negative) {
  Array is_nan = isnan(x), result = where(is_nan, lax::convert_element_type(nan, x.dtype(), false), x);
  Array isposinf_result = isposinf(result);
  result = where(isposinf_result, lax::convert_element_type(positive, x.dtype(), false), result);
  Array isneginf_result = isneginf(result);
  return where(isneginf_result, lax::convert_element_type(negative, x.dtype(), false), result);
}

}  // namespace

Array isposinf(const Array& x) { return is_infinity("isposinf", x, HUGE_VAL); }
Array isneginf(const Array& x) { return is_infinity("isneginf", x, -HUGE_VAL); }

Array isreal(const Array& x) {
  const auto no_imaginary = [](const Array& z) {
    const Array part = imag(z);
    return lax::eq(part, constant_like(part, 0));
  };
  return named("isreal", no_imaginary, x);
}

Array iscomplex(const Array& x) {
  const auto some_imaginary = [](const Array& z) {
    const Array part = imag(z);
    return lax::ne(part, constant_like(part, 0));
  };
  return named("iscomplex", some_imaginary, x);
}

Array nan_to_num(const Array& x, const NanToNumOptions& options) {
  if (!is_inexact(x.dtype())) return checked("nan_to_num", x);
  const DType dtype = real_dtype(x.dtype());
  const FloatInfo info = finfo(dtype);
  const Array positive = options.posinf ? *options.posinf : strong_constant(dtype, info.max);
  const Array negative = options.neginf ? *options.neginf : strong_constant(dtype, info.min);
  const auto replace = [](const Array& z, const Array& nan, const Array& above, const Array& below) {
    if (!is_complex(z.dtype())) return replace_non_finite(z, nan, above, below);
    Array replace_non_finite_z = replace_non_finite(lax::real(z), nan, above, below);
    return lax::complex(replace_non_finite_z, replace_non_finite(lax::imag(z), nan, above, below));
  };
  return named("nan_to_num", replace, x, options.nan, positive, negative);
}

}  // namespace capibara::jax::numpy
