// Table rows for jax.numpy: elementwise functions.
#include <capibara/numpy/creation.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/sorting.h>

#include "library/table/families.h"

namespace capibara::library {

namespace {

namespace numpy = jax::numpy;

using One = Array (*)(const Array&);
using Two = Array (*)(const Array&, const Array&);

template <One function>
Value unary(const Arguments& a) {
  return function(a.array("x"));
}

template <Two function>
Value of_x_y(const Arguments& a) {
  return function(a.array("x"), a.array("y"));
}

template <Two function>
Value of_x1_x2(const Arguments& a) {
  return function(a.array("x1"), a.array("x2"));
}

// The arguments of a universal function, which have no names.
Arrays ufunc_arguments(const Arguments& a, std::size_t count) {
  const Arrays operands = a.arrays("args");
  a.require_absent("out");
  a.require_absent("where");
  if (operands.size() != count) {
    throw TypeError(
        concat(a.function(), "() takes ", count, " positional arguments but ", operands.size(), " were given"));
  }
  return operands;
}

template <One function>
Value ufunc_of_one(const Arguments& a) {
  return function(ufunc_arguments(a, 1)[0]);
}

template <Two function>
Value ufunc_of_two(const Arguments& a) {
  const Arrays operands = ufunc_arguments(a, 2);
  return function(operands[0], operands[1]);
}

template <One function>
Value infinite(const Arguments& a) {
  const Array x = a.array("x");
  a.require_absent("out");
  return function(x);
}

Value raise(const Arguments& a) {
  const Array base = a.array("x1");
  // Python's True is treated as the exponent 1.
  if (const bool* truth = a["x2"].get_if<bool>()) return numpy::power(base, static_cast<int>(*truth));
  return numpy::power(base, a.array("x2"));
}

Value round_decimals(const Arguments& a) {
  const Array x = a.array("a");
  const int64_t decimals = a.integer("decimals");
  a.require_absent("out");
  return numpy::round(x, {.decimals = decimals});
}

Value choose(const Arguments& a) {
  const Array condition = a.array("condition");
  if (!a.given("x") && !a.given("y")) {
    Arrays fill;
    if (a["fill_value"].sequence())
      fill = a.arrays("fill_value");
    else if (a.given("fill_value"))
      fill = {a.array("fill_value")};
    return Value::tuple_of(numpy::nonzero(condition, {.size = a.optional_integer("size"), .fill_value = fill}));
  }
  const Array x = a.array("x"), y = a.array("y");
  if (a.given("size") || a.given("fill_value")) {
    throw ValueError("where: arguments 'size' and 'fill_value' go with the condition alone, got x and y too");
  }
  return numpy::where(condition, x, y);
}

const Function numpy_elementwise_functions[] = {
    // Arithmetic.
    {"add", "*args, out=None, where=None", ufunc_of_two<numpy::add>,
     "The sum of two arrays; of booleans, whether one is true.", 2},
    {"subtract", "*args, out=None, where=None", ufunc_of_two<numpy::subtract>, "The difference of two arrays.", 2},
    {"multiply", "*args, out=None, where=None", ufunc_of_two<numpy::multiply>,
     "The product of two arrays; of booleans, whether both are true.", 2},
    {"true_divide", "x1, x2, /", of_x1_x2<numpy::true_divide>,
     "The quotient of two arrays as a floating-point number."},
    {"divide", "x1, x2, /", of_x1_x2<numpy::divide>, "The quotient of two arrays as a floating-point number."},
    {"floor_divide", "x1, x2, /", of_x1_x2<numpy::floor_divide>, "The quotient rounded toward minus infinity."},
    {"remainder", "x1, x2, /", of_x1_x2<numpy::remainder>,
     "The remainder of floor division; it has the divisor's sign."},
    {"mod", "x1, x2, /", of_x1_x2<numpy::mod>, "The remainder of floor division; it has the divisor's sign."},
    {"fmod", "x1, x2, /", of_x1_x2<numpy::fmod>, "The remainder of truncating division; it has the dividend's sign."},
    {"divmod", "x1, x2, / -> tuple[Array, Array]",
     [](const Arguments& a) -> Value { return numpy::divmod(a.array("x1"), a.array("x2")); },
     "The floor quotient and the remainder."},
    {"power", "x1, x2, /", raise, "x1 raised to the power x2; a known integer exponent multiplies."},
    {"pow", "x1, x2, /", raise, "x1 raised to the power x2; a known integer exponent multiplies."},
    {"float_power", "x, y, /", of_x_y<numpy::float_power>, "x raised to the power y in floating point."},
    {"negative", "*args, out=None, where=None", ufunc_of_one<numpy::negative>, "-x.", 1},
    {"positive", "x, /", unary<numpy::positive>, "+x: the elements unchanged."},
    {"absolute", "x, /", unary<numpy::absolute>, "The absolute value; of complex numbers, the modulus."},
    {"abs", "x, /", unary<numpy::abs>, "The absolute value; of complex numbers, the modulus."},
    {"fabs", "x, /", unary<numpy::fabs>, "The absolute value as a floating-point number."},
    {"sign", "x, /", unary<numpy::sign>, "-1, 0 or 1; of complex numbers, x divided by its modulus."},
    {"square", "x, /", unary<numpy::square>, "x * x."},
    {"reciprocal", "x, /", unary<numpy::reciprocal>, "1 / x."},
    {"heaviside", "x1, x2, /", of_x1_x2<numpy::heaviside>, "The step function: 0 below zero, x2 at zero, 1 above."},
    {"gcd", "x1, x2", of_x1_x2<numpy::gcd>, "The greatest common divisor."},
    {"lcm", "x1, x2", of_x1_x2<numpy::lcm>, "The least common multiple."},
    // Comparisons, choices and logic.
    {"equal", "x, y, /", of_x_y<numpy::equal>, "Whether x equals y."},
    {"not_equal", "x, y, /", of_x_y<numpy::not_equal>, "Whether x differs from y."},
    {"less", "x, y, /", of_x_y<numpy::less>, "Whether x is less than y; complex numbers by real, then imaginary part."},
    {"less_equal", "x, y, /", of_x_y<numpy::less_equal>,
     "Whether x is at most y; complex numbers by real, then imaginary part."},
    {"greater", "x, y, /", of_x_y<numpy::greater>,
     "Whether x is greater than y; complex numbers by real, then imaginary part."},
    {"greater_equal", "x, y, /", of_x_y<numpy::greater_equal>,
     "Whether x is at least y; complex numbers by real, then imaginary part."},
    {"maximum", "*args, out=None, where=None", ufunc_of_two<numpy::maximum>,
     "The greater of two numbers; NaN where one is NaN.", 2},
    {"minimum", "*args, out=None, where=None", ufunc_of_two<numpy::minimum>,
     "The lesser of two numbers; NaN where one is NaN.", 2},
    {"fmax", "x1, x2", of_x1_x2<numpy::fmax>, "The greater of two numbers; the other one where one is NaN."},
    {"fmin", "x1, x2", of_x1_x2<numpy::fmin>, "The lesser of two numbers; the other one where one is NaN."},
    {"clip", "arr=None, /, min=None, max=None",
     [](const Arguments& a) -> Value {
       if (!a.given("arr")) throw ValueError("No input was provided to the clip function.");
       return numpy::clip(a.array("arr"), {.min = a.optional_array("min"), .max = a.optional_array("max")});
     },
     "The elements clamped to [min, max]; either bound may be absent."},
    {"where",
     "condition, x=None, y=None, /, *, size=None, fill_value: ArrayLike | tuple[ArrayLike, ...] = None -> tuple[Array, "
     "...] if x is None else Array",
     choose, "x where the condition is true, else y; with the condition alone, the indices at which it is true."},
    {"logical_and", "*args, out=None, where=None", ufunc_of_two<numpy::logical_and>, "Whether both are nonzero.", 2},
    {"logical_or", "*args, out=None, where=None", ufunc_of_two<numpy::logical_or>, "Whether one of the two is nonzero.",
     2},
    {"logical_xor", "*args, out=None, where=None", ufunc_of_two<numpy::logical_xor>,
     "Whether exactly one of the two is nonzero.", 2},
    {"logical_not", "x, /", unary<numpy::logical_not>, "Whether the number is zero."},
    {"isclose", "a, b, rtol=1e-05, atol=1e-08, equal_nan=False",
     [](const Arguments& a) -> Value {
       return numpy::isclose(a.array("a"), a.array("b"),
                             {.rtol = a.array("rtol"), .atol = a.array("atol"), .equal_nan = a.flag("equal_nan")});
     },
     "Whether |a - b| <= atol + rtol |b|."},
    {"allclose", "a, b, rtol=1e-05, atol=1e-08, equal_nan=False",
     [](const Arguments& a) -> Value {
       return numpy::allclose(a.array("a"), a.array("b"),
                              {.rtol = a.array("rtol"), .atol = a.array("atol"), .equal_nan = a.flag("equal_nan")});
     },
     "Whether |a - b| <= atol + rtol |b| everywhere."},
    // Bits.
    {"bitwise_and", "*args, out=None, where=None", ufunc_of_two<numpy::bitwise_and>,
     "The bits that both integers have.", 2},
    {"bitwise_or", "*args, out=None, where=None", ufunc_of_two<numpy::bitwise_or>,
     "The bits that one of the two integers has.", 2},
    {"bitwise_xor", "*args, out=None, where=None", ufunc_of_two<numpy::bitwise_xor>,
     "The bits that exactly one of the two integers has.", 2},
    {"bitwise_not", "x, /", unary<numpy::bitwise_not>, "All bits inverted; of booleans, not."},
    {"bitwise_invert", "x, /", unary<numpy::bitwise_invert>, "All bits inverted; of booleans, not."},
    {"invert", "x, /", unary<numpy::invert>, "All bits inverted; of booleans, not."},
    {"left_shift", "x, y, /", of_x_y<numpy::left_shift>, "x << y."},
    {"bitwise_left_shift", "x, y, /", of_x_y<numpy::bitwise_left_shift>, "x << y."},
    {"right_shift", "x1, x2, /", of_x1_x2<numpy::right_shift>, "x1 >> x2; signed integers keep their sign."},
    {"bitwise_right_shift", "x1, x2, /", of_x1_x2<numpy::bitwise_right_shift>,
     "x1 >> x2; signed integers keep their sign."},
    {"bitwise_count", "x, /", unary<numpy::bitwise_count>, "The number of one bits in the absolute value."},
    // Exponentials and roots.
    {"exp", "x, /", unary<numpy::exp>, "e raised to the power x."},
    {"exp2", "x, /", unary<numpy::exp2>, "2 raised to the power x."},
    {"expm1", "x, /", unary<numpy::expm1>, "exp(x) - 1, accurate near zero."},
    {"log", "x, /", unary<numpy::log>, "The natural logarithm."},
    {"log2", "x, /", unary<numpy::log2>, "The logarithm to base 2."},
    {"log10", "x, /", unary<numpy::log10>, "The logarithm to base 10."},
    {"log1p", "x, /", unary<numpy::log1p>, "log(1 + x), accurate near zero."},
    {"logaddexp", "*args, out=None, where=None", ufunc_of_two<numpy::logaddexp>,
     "log(exp(x1) + exp(x2)) without overflow.", 2},
    {"logaddexp2", "*args, out=None, where=None", ufunc_of_two<numpy::logaddexp2>,
     "log2(2^x1 + 2^x2) without overflow.", 2},
    {"sqrt", "x, /", unary<numpy::sqrt>, "The square root."},
    {"cbrt", "x, /", unary<numpy::cbrt>, "The cube root."},
    {"hypot", "x1, x2, /", of_x1_x2<numpy::hypot>, "sqrt(x1^2 + x2^2) without overflow."},
    {"i0", "x", unary<numpy::i0>, "The modified Bessel function of the first kind, order zero."},
    // Trigonometry.
    {"sin", "x, /", unary<numpy::sin>, "The sine."},
    {"cos", "x, /", unary<numpy::cos>, "The cosine."},
    {"tan", "x, /", unary<numpy::tan>, "The tangent."},
    {"arcsin", "x, /", unary<numpy::arcsin>, "The inverse sine."},
    {"asin", "x, /", unary<numpy::asin>, "The inverse sine."},
    {"arccos", "x, /", unary<numpy::arccos>, "The inverse cosine."},
    {"acos", "x, /", unary<numpy::acos>, "The inverse cosine."},
    {"arctan", "x, /", unary<numpy::arctan>, "The inverse tangent."},
    {"atan", "x, /", unary<numpy::atan>, "The inverse tangent."},
    {"arctan2", "x1, x2, /", of_x1_x2<numpy::arctan2>, "The angle of the point (x2, x1), in [-pi, pi]."},
    {"atan2", "x1, x2, /", of_x1_x2<numpy::atan2>, "The angle of the point (x2, x1), in [-pi, pi]."},
    {"sinh", "x, /", unary<numpy::sinh>, "The hyperbolic sine."},
    {"cosh", "x, /", unary<numpy::cosh>, "The hyperbolic cosine."},
    {"tanh", "x, /", unary<numpy::tanh>, "The hyperbolic tangent."},
    {"arcsinh", "x, /", unary<numpy::arcsinh>, "The inverse hyperbolic sine."},
    {"asinh", "x, /", unary<numpy::asinh>, "The inverse hyperbolic sine."},
    {"arccosh", "x, /", unary<numpy::arccosh>, "The inverse hyperbolic cosine."},
    {"acosh", "x, /", unary<numpy::acosh>, "The inverse hyperbolic cosine."},
    {"arctanh", "x, /", unary<numpy::arctanh>, "The inverse hyperbolic tangent."},
    {"atanh", "x, /", unary<numpy::atanh>, "The inverse hyperbolic tangent."},
    {"sinc", "x, /", unary<numpy::sinc>, "sin(pi x) / (pi x), and 1 at zero."},
    {"deg2rad", "x, /", unary<numpy::deg2rad>, "Converts degrees to radians."},
    {"radians", "x, /", unary<numpy::radians>, "Converts degrees to radians."},
    {"rad2deg", "x, /", unary<numpy::rad2deg>, "Converts radians to degrees."},
    {"degrees", "x, /", unary<numpy::degrees>, "Converts radians to degrees."},
    // Rounding.
    {"floor", "x, /", unary<numpy::floor>, "The largest integer not above x."},
    {"ceil", "x, /", unary<numpy::ceil>, "The least integer not below x."},
    {"trunc", "x", unary<numpy::trunc>, "x rounded toward zero."},
    {"rint", "x, /", unary<numpy::rint>, "The nearest integer; ties go to the even one."},
    {"round", "a, decimals=0, out=None", round_decimals,
     "The nearest number with this many decimals; ties go to the even one."},
    {"around", "a, decimals=0, out=None", round_decimals,
     "The nearest number with this many decimals; ties go to the even one."},
    {"modf", "x, /, out=None -> tuple[Array, Array]",
     [](const Arguments& a) -> Value {
       a.require_absent("out");
       return numpy::modf(a.array("x"));
     },
     "The fractional and the integer part, both with the sign of x."},
    // The parts of numbers.
    {"real", "val, /", [](const Arguments& a) -> Value { return numpy::real(a.array("val")); }, "The real part."},
    {"imag", "val, /", [](const Arguments& a) -> Value { return numpy::imag(a.array("val")); }, "The imaginary part."},
    {"conjugate", "x, /", unary<numpy::conjugate>, "The complex conjugate."},
    {"conj", "x, /", unary<numpy::conj>, "The complex conjugate."},
    {"angle", "z, deg=False",
     [](const Arguments& a) -> Value { return numpy::angle(a.array("z"), {.deg = a.flag("deg")}); },
     "The angle of a complex number in the plane, in radians or degrees."},
    {"signbit", "x, /", unary<numpy::signbit>, "Whether the sign bit is set, as it is for -0.0."},
    {"copysign", "x1, x2, /", of_x1_x2<numpy::copysign>, "The magnitude of x1 with the sign of x2."},
    {"frexp", "x, / -> tuple[Array, Array]", [](const Arguments& a) -> Value { return numpy::frexp(a.array("x")); },
     "The mantissa in [0.5, 1) and the exponent e of x = mantissa * 2^e."},
    {"ldexp", "x1, x2, /", of_x1_x2<numpy::ldexp>, "x1 * 2^x2."},
    {"nextafter", "x, y, /", of_x_y<numpy::nextafter>, "The floating-point number next to x in the direction of y."},
    {"spacing", "x, /", unary<numpy::spacing>, "The distance from x to the floating-point number next to it."},
    // Kinds of numbers.
    {"isfinite", "x, /", unary<numpy::isfinite>, "Whether x is neither infinite nor NaN."},
    {"isinf", "x, /", unary<numpy::isinf>, "Whether x is infinite."},
    {"isnan", "x, /", unary<numpy::isnan>, "Whether x is NaN."},
    {"isposinf", "x, /, out=None", infinite<numpy::isposinf>, "Whether x is positive infinity."},
    {"isneginf", "x, /, out=None", infinite<numpy::isneginf>, "Whether x is negative infinity."},
    {"isreal", "x", unary<numpy::isreal>, "Whether the imaginary part is zero."},
    {"iscomplex", "x", unary<numpy::iscomplex>, "Whether the imaginary part is not zero."},
    {"nan_to_num", "x, copy=True, nan=0.0, posinf=None, neginf=None",
     [](const Arguments& a) -> Value {
       return numpy::nan_to_num(
           a.array("x"),
           {.nan = a.array("nan"), .posinf = a.optional_array("posinf"), .neginf = a.optional_array("neginf")});
     },
     "x with NaN and infinities replaced by finite values."},
};

}  // namespace

Family numpy_elementwise() { return numpy_elementwise_functions; }

}  // namespace capibara::library
