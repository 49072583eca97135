// jax.numpy's functions of single elements: arithmetic, comparisons, logic, bits, roots, exponentials, trigonometry.
//
// Operands are promoted and broadcast as NumPy and JAX do it; functions into the real line turn integers into floats.
#pragma once

#include <capibara/array.h>

#include <optional>
#include <utility>

namespace capibara::jax::numpy {

// ---- arithmetic ---------------------------------------------------------------------------------------------------
Array add(const Array& x, const Array& y);  // of booleans: or
Array subtract(const Array& x, const Array& y);
Array multiply(const Array& x, const Array& y);  // of booleans: and
Array true_divide(const Array& x1, const Array& x2);
inline Array divide(const Array& x1, const Array& x2) { return true_divide(x1, x2); }
Array floor_divide(const Array& x1, const Array& x2);
Array remainder(const Array& x1, const Array& x2);  // the sign of the divisor, as Python's %
inline Array mod(const Array& x1, const Array& x2) { return remainder(x1, x2); }
Array fmod(const Array& x1, const Array& x2);  // the sign of the dividend, as C's
std::pair<Array, Array> divmod(const Array& x1, const Array& x2);
// A known integer exponent multiplies; integers raised to unknown powers keep six bits of the exponent, as in JAX.
Array power(const Array& x1, const Array& x2);
inline Array pow(const Array& x1, const Array& x2) { return power(x1, x2); }
Array float_power(const Array& x, const Array& y);
Array negative(const Array& x);
Array positive(const Array& x);
Array absolute(const Array& x);
inline Array abs(const Array& x) { return absolute(x); }
Array fabs(const Array& x);
Array sign(const Array& x);
Array square(const Array& x);
Array reciprocal(const Array& x);
Array heaviside(const Array& x1, const Array& x2);  // 0 below zero, x2 at zero, 1 above
Array gcd(const Array& x1, const Array& x2);
Array lcm(const Array& x1, const Array& x2);

// ---- comparisons, choices and logic -------------------------------------------------------------------------------
Array equal(const Array& x, const Array& y);
Array not_equal(const Array& x, const Array& y);
Array less(const Array& x, const Array& y);
Array less_equal(const Array& x, const Array& y);
Array greater(const Array& x, const Array& y);
Array greater_equal(const Array& x, const Array& y);
Array maximum(const Array& x, const Array& y);  // NaN wins
Array minimum(const Array& x, const Array& y);
Array fmax(const Array& x1, const Array& x2);  // NaN loses
Array fmin(const Array& x1, const Array& x2);
struct ClipOptions {
  std::optional<Array> min, max;
};
Array clip(const Array& arr, const ClipOptions& options);
Array where(const Array& condition, const Array& x, const Array& y);
Array logical_and(const Array& x, const Array& y);
Array logical_or(const Array& x, const Array& y);
Array logical_xor(const Array& x, const Array& y);
Array logical_not(const Array& x);
struct CloseOptions {
  Array rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false;
};
Array isclose(const Array& a, const Array& b, const CloseOptions& options = {});

// ---- bits ---------------------------------------------------------------------------------------------------------
Array bitwise_and(const Array& x, const Array& y);
Array bitwise_or(const Array& x, const Array& y);
Array bitwise_xor(const Array& x, const Array& y);
Array bitwise_not(const Array& x);
inline Array bitwise_invert(const Array& x) { return bitwise_not(x); }
inline Array invert(const Array& x) { return bitwise_not(x); }
Array left_shift(const Array& x, const Array& y);
inline Array bitwise_left_shift(const Array& x, const Array& y) { return left_shift(x, y); }
Array right_shift(const Array& x1, const Array& x2);  // signed operands keep their sign
inline Array bitwise_right_shift(const Array& x1, const Array& x2) { return right_shift(x1, x2); }
Array bitwise_count(const Array& x);  // ones in the absolute value, as uint8

// ---- exponentials and roots ---------------------------------------------------------------------------------------
Array exp(const Array& x);
Array exp2(const Array& x);
Array expm1(const Array& x);
Array log(const Array& x);
Array log2(const Array& x);
Array log10(const Array& x);
Array log1p(const Array& x);
Array logaddexp(const Array& x1, const Array& x2);
Array logaddexp2(const Array& x1, const Array& x2);
Array sqrt(const Array& x);
Array cbrt(const Array& x);
Array hypot(const Array& x1, const Array& x2);
Array i0(const Array& x);  // the modified Bessel function of order zero

// ---- trigonometry -------------------------------------------------------------------------------------------------
Array sin(const Array& x);
Array cos(const Array& x);
Array tan(const Array& x);
Array arcsin(const Array& x);
Array arccos(const Array& x);
Array arctan(const Array& x);
Array arctan2(const Array& x1, const Array& x2);
Array sinh(const Array& x);
Array cosh(const Array& x);
Array tanh(const Array& x);
Array arcsinh(const Array& x);
Array arccosh(const Array& x);
Array arctanh(const Array& x);
inline Array asin(const Array& x) { return arcsin(x); }
inline Array acos(const Array& x) { return arccos(x); }
inline Array atan(const Array& x) { return arctan(x); }
inline Array atan2(const Array& x1, const Array& x2) { return arctan2(x1, x2); }
inline Array asinh(const Array& x) { return arcsinh(x); }
inline Array acosh(const Array& x) { return arccosh(x); }
inline Array atanh(const Array& x) { return arctanh(x); }
Array sinc(const Array& x);  // sin(pi x) / (pi x)
Array deg2rad(const Array& x);
inline Array radians(const Array& x) { return deg2rad(x); }
Array rad2deg(const Array& x);
inline Array degrees(const Array& x) { return rad2deg(x); }

// ---- rounding -----------------------------------------------------------------------------------------------------
Array floor(const Array& x);
Array ceil(const Array& x);
Array trunc(const Array& x);
Array rint(const Array& x);  // to even at ties; integers become floats
struct RoundOptions {
  int64_t decimals = 0;
};
Array round(const Array& a, const RoundOptions& options = {});  // to even at ties
inline Array around(const Array& a, const RoundOptions& options = {}) { return round(a, options); }
std::pair<Array, Array> modf(const Array& x);  // fraction and whole part, both of x's sign

// ---- the parts of numbers -----------------------------------------------------------------------------------------
Array real(const Array& val);
Array imag(const Array& val);
Array conjugate(const Array& x);
inline Array conj(const Array& x) { return conjugate(x); }
struct AngleOptions {
  bool deg = false;
};
Array angle(const Array& z, const AngleOptions& options = {});
Array signbit(const Array& x);
Array copysign(const Array& x1, const Array& x2);
std::pair<Array, Array> frexp(const Array& x);  // mantissa in [0.5, 1) and int32 exponent
Array ldexp(const Array& x1, const Array& x2);  // x1 * 2^x2
Array nextafter(const Array& x, const Array& y);
Array spacing(const Array& x);  // the distance to the next number away from zero

// ---- kinds of numbers ---------------------------------------------------------------------------------------------
Array isfinite(const Array& x);
Array isinf(const Array& x);
Array isnan(const Array& x);
Array isposinf(const Array& x);
Array isneginf(const Array& x);
Array isreal(const Array& x);
Array iscomplex(const Array& x);
struct NanToNumOptions {
  Array nan = 0.0;
  std::optional<Array> posinf = std::nullopt, neginf = std::nullopt;  // by default the greatest and least finite value
};
Array nan_to_num(const Array& x, const NanToNumOptions& options = {});

}  // namespace capibara::jax::numpy
