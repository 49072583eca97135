// jax.numpy's elementwise functions: arithmetic, comparisons, logic, bits, roots, exponentials, trigonometry.
//
// Operands are promoted and broadcast as in NumPy and JAX; functions into the real line convert integers to floats.
#pragma once

#include <capibara/array.h>

#include <optional>
#include <utility>

namespace capibara::jax::numpy {

// ---- arithmetic ---------------------------------------------------------------------------------------------------
// The sum of two arrays; of booleans, whether one is true.
Array add(const Array& x, const Array& y);
// The difference of two arrays.
Array subtract(const Array& x, const Array& y);
// The product of two arrays; of booleans, whether both are true.
Array multiply(const Array& x, const Array& y);
// The quotient of two arrays as a floating-point number.
Array true_divide(const Array& x1, const Array& x2);
// The quotient of two arrays as a floating-point number.
inline Array divide(const Array& x1, const Array& x2) { return true_divide(x1, x2); }
// The quotient rounded toward minus infinity.
Array floor_divide(const Array& x1, const Array& x2);
// The remainder of floor division; it has the divisor's sign.
Array remainder(const Array& x1, const Array& x2);
// The remainder of floor division; it has the divisor's sign.
inline Array mod(const Array& x1, const Array& x2) { return remainder(x1, x2); }
// The remainder of truncating division; it has the dividend's sign.
Array fmod(const Array& x1, const Array& x2);
// The floor quotient and the remainder.
std::pair<Array, Array> divmod(const Array& x1, const Array& x2);
// x1 raised to the power x2; a known integer exponent multiplies. Integers raised to unknown powers use six bits of
// the exponent, as in JAX.
Array power(const Array& x1, const Array& x2);
// x1 raised to the power x2; a known integer exponent multiplies.
inline Array pow(const Array& x1, const Array& x2) { return power(x1, x2); }
// x raised to the power y in floating point.
Array float_power(const Array& x, const Array& y);
// -x.
Array negative(const Array& x);
// +x: the elements unchanged.
Array positive(const Array& x);
// The absolute value; of complex numbers, the modulus.
Array absolute(const Array& x);
// The absolute value; of complex numbers, the modulus.
inline Array abs(const Array& x) { return absolute(x); }
// The absolute value as a floating-point number.
Array fabs(const Array& x);
// -1, 0 or 1; of complex numbers, x divided by its modulus.
Array sign(const Array& x);
// x * x.
Array square(const Array& x);
// 1 / x.
Array reciprocal(const Array& x);
// The step function: 0 below zero, x2 at zero, 1 above.
Array heaviside(const Array& x1, const Array& x2);
// The greatest common divisor.
Array gcd(const Array& x1, const Array& x2);
// The least common multiple.
Array lcm(const Array& x1, const Array& x2);

// ---- comparisons, choices and logic -------------------------------------------------------------------------------
// Whether x equals y.
Array equal(const Array& x, const Array& y);
// Whether x differs from y.
Array not_equal(const Array& x, const Array& y);
// Whether x is less than y; complex numbers by real, then imaginary part.
Array less(const Array& x, const Array& y);
// Whether x is at most y; complex numbers by real, then imaginary part.
Array less_equal(const Array& x, const Array& y);
// Whether x is greater than y; complex numbers by real, then imaginary part.
Array greater(const Array& x, const Array& y);
// Whether x is at least y; complex numbers by real, then imaginary part.
Array greater_equal(const Array& x, const Array& y);
// The greater of two numbers; NaN where one is NaN.
Array maximum(const Array& x, const Array& y);
// The lesser of two numbers; NaN where one is NaN.
Array minimum(const Array& x, const Array& y);
// The greater of two numbers; the other one where one is NaN.
Array fmax(const Array& x1, const Array& x2);
// The lesser of two numbers; the other one where one is NaN.
Array fmin(const Array& x1, const Array& x2);
struct ClipOptions {
  std::optional<Array> min, max;
};
// The elements clamped to [min, max]; either bound may be absent.
Array clip(const Array& arr, const ClipOptions& options);
// x where the condition is true, else y; with the condition alone, the indices at which it is true.
Array where(const Array& condition, const Array& x, const Array& y);
// Whether both are nonzero.
Array logical_and(const Array& x, const Array& y);
// Whether one of the two is nonzero.
Array logical_or(const Array& x, const Array& y);
// Whether exactly one of the two is nonzero.
Array logical_xor(const Array& x, const Array& y);
// Whether the number is zero.
Array logical_not(const Array& x);
struct CloseOptions {
  Array rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false;
};
// Whether |a - b| <= atol + rtol |b|.
Array isclose(const Array& a, const Array& b, const CloseOptions& options = {});

// ---- bits ---------------------------------------------------------------------------------------------------------
// The bits that both integers have.
Array bitwise_and(const Array& x, const Array& y);
// The bits that one of the two integers has.
Array bitwise_or(const Array& x, const Array& y);
// The bits that exactly one of the two integers has.
Array bitwise_xor(const Array& x, const Array& y);
// All bits inverted; of booleans, not.
Array bitwise_not(const Array& x);
// All bits inverted; of booleans, not.
inline Array bitwise_invert(const Array& x) { return bitwise_not(x); }
// All bits inverted; of booleans, not.
inline Array invert(const Array& x) { return bitwise_not(x); }
// x << y.
Array left_shift(const Array& x, const Array& y);
// x << y.
inline Array bitwise_left_shift(const Array& x, const Array& y) { return left_shift(x, y); }
// x1 >> x2; signed integers keep their sign.
Array right_shift(const Array& x1, const Array& x2);
// x1 >> x2; signed integers keep their sign.
inline Array bitwise_right_shift(const Array& x1, const Array& x2) { return right_shift(x1, x2); }
// The number of one bits in the absolute value. The result is uint8.
Array bitwise_count(const Array& x);

// ---- exponentials and roots ---------------------------------------------------------------------------------------
// e raised to the power x.
Array exp(const Array& x);
// 2 raised to the power x.
Array exp2(const Array& x);
// exp(x) - 1, accurate near zero.
Array expm1(const Array& x);
// The natural logarithm.
Array log(const Array& x);
// The logarithm to base 2.
Array log2(const Array& x);
// The logarithm to base 10.
Array log10(const Array& x);
// log(1 + x), accurate near zero.
Array log1p(const Array& x);
// log(exp(x1) + exp(x2)) without overflow.
Array logaddexp(const Array& x1, const Array& x2);
// log2(2^x1 + 2^x2) without overflow.
Array logaddexp2(const Array& x1, const Array& x2);
// The square root.
Array sqrt(const Array& x);
// The cube root.
Array cbrt(const Array& x);
// sqrt(x1^2 + x2^2) without overflow.
Array hypot(const Array& x1, const Array& x2);
// The modified Bessel function of the first kind, order zero.
Array i0(const Array& x);

// ---- trigonometry -------------------------------------------------------------------------------------------------
// The sine.
Array sin(const Array& x);
// The cosine.
Array cos(const Array& x);
// The tangent.
Array tan(const Array& x);
// The inverse sine.
Array arcsin(const Array& x);
// The inverse cosine.
Array arccos(const Array& x);
// The inverse tangent.
Array arctan(const Array& x);
// The angle of the point (x2, x1), in [-pi, pi].
Array arctan2(const Array& x1, const Array& x2);
// The hyperbolic sine.
Array sinh(const Array& x);
// The hyperbolic cosine.
Array cosh(const Array& x);
// The hyperbolic tangent.
Array tanh(const Array& x);
// The inverse hyperbolic sine.
Array arcsinh(const Array& x);
// The inverse hyperbolic cosine.
Array arccosh(const Array& x);
// The inverse hyperbolic tangent.
Array arctanh(const Array& x);
// The inverse sine.
inline Array asin(const Array& x) { return arcsin(x); }
// The inverse cosine.
inline Array acos(const Array& x) { return arccos(x); }
// The inverse tangent.
inline Array atan(const Array& x) { return arctan(x); }
// The angle of the point (x2, x1), in [-pi, pi].
inline Array atan2(const Array& x1, const Array& x2) { return arctan2(x1, x2); }
// The inverse hyperbolic sine.
inline Array asinh(const Array& x) { return arcsinh(x); }
// The inverse hyperbolic cosine.
inline Array acosh(const Array& x) { return arccosh(x); }
// The inverse hyperbolic tangent.
inline Array atanh(const Array& x) { return arctanh(x); }
// sin(pi x) / (pi x), and 1 at zero.
Array sinc(const Array& x);
// Converts degrees to radians.
Array deg2rad(const Array& x);
// Converts degrees to radians.
inline Array radians(const Array& x) { return deg2rad(x); }
// Converts radians to degrees.
Array rad2deg(const Array& x);
// Converts radians to degrees.
inline Array degrees(const Array& x) { return rad2deg(x); }

// ---- rounding -----------------------------------------------------------------------------------------------------
// The largest integer not above x.
Array floor(const Array& x);
// The least integer not below x.
Array ceil(const Array& x);
// x rounded toward zero.
Array trunc(const Array& x);
// The nearest integer; ties go to the even one. Integers become floats.
Array rint(const Array& x);
struct RoundOptions {
  int64_t decimals = 0;
};
// The nearest number with this many decimals; ties go to the even one.
Array round(const Array& a, const RoundOptions& options = {});
// The nearest number with this many decimals; ties go to the even one.
inline Array around(const Array& a, const RoundOptions& options = {}) { return round(a, options); }
// The fractional and the integer part, both with the sign of x.
std::pair<Array, Array> modf(const Array& x);

// ---- the parts of numbers -----------------------------------------------------------------------------------------
// The real part.
Array real(const Array& val);
// The imaginary part.
Array imag(const Array& val);
// The complex conjugate.
Array conjugate(const Array& x);
// The complex conjugate.
inline Array conj(const Array& x) { return conjugate(x); }
struct AngleOptions {
  bool deg = false;
};
// The angle of a complex number in the plane, in radians or degrees.
Array angle(const Array& z, const AngleOptions& options = {});
// Whether the sign bit is set, as it is for -0.0.
Array signbit(const Array& x);
// The magnitude of x1 with the sign of x2.
Array copysign(const Array& x1, const Array& x2);
// The mantissa in [0.5, 1) and the exponent e of x = mantissa * 2^e. The exponent is int32.
std::pair<Array, Array> frexp(const Array& x);
// x1 * 2^x2.
Array ldexp(const Array& x1, const Array& x2);
// The floating-point number next to x in the direction of y.
Array nextafter(const Array& x, const Array& y);
// The distance from x to the floating-point number next to it. Measured away from zero.
Array spacing(const Array& x);

// ---- kinds of numbers ---------------------------------------------------------------------------------------------
// Whether x is neither infinite nor NaN.
Array isfinite(const Array& x);
// Whether x is infinite.
Array isinf(const Array& x);
// Whether x is NaN.
Array isnan(const Array& x);
// Whether x is positive infinity.
Array isposinf(const Array& x);
// Whether x is negative infinity.
Array isneginf(const Array& x);
// Whether the imaginary part is zero.
Array isreal(const Array& x);
// Whether the imaginary part is not zero.
Array iscomplex(const Array& x);
struct NanToNumOptions {
  Array nan = 0.0;
  std::optional<Array> posinf = std::nullopt, neginf = std::nullopt;  // by default the greatest and least finite value
};
// x with NaN and infinities replaced by finite values.
Array nan_to_num(const Array& x, const NanToNumOptions& options = {});

}  // namespace capibara::jax::numpy
