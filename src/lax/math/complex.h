// Elementary functions of complex numbers, over any value that has the real ones.
//
// Each follows the formula that jax uses for its real and imaginary part, so that infinities, NaN and signed zeros
// appear in the same cases. Largest difference from jax 0.10.2 in ULP of the larger part, here and in complex_*.h:
// complex64 3 (division, pow), 2 (expm1), else 1; complex128 1.
#pragma once

#include "lax/math/exponential.h"
#include "lax/math/trigonometric.h"
#include "lax/math/value.h"

namespace capibara::math {

template <class V>
struct Complex {
  V real, imag;
};
template <class V>
Complex(V, V) -> Complex<V>;

template <class V>
Complex<V> operator+(Complex<V> x, Complex<V> y) {
  return {x.real + y.real, x.imag + y.imag};
}
template <class V>
Complex<V> operator-(Complex<V> x, Complex<V> y) {
  return {x.real - y.real, x.imag - y.imag};
}
template <class V>
Complex<V> operator-(Complex<V> x) {
  return {-x.real, -x.imag};
}
template <class V>
Complex<V> operator*(Complex<V> x, Complex<V> y) {
  return {x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real};
}

template <class V>
Complex<V> select(Condition<V> condition, Complex<V> yes, Complex<V> no) {
  return {select(condition, yes.real, no.real), select(condition, yes.imag, no.imag)};
}

template <class V>
Complex<V> conj(Complex<V> x) {
  return {x.real, -x.imag};
}

// Ordered by the real parts, then by the imaginary ones.
template <class V>
Condition<V> eq(Complex<V> x, Complex<V> y) {
  return logical_and(eq(x.real, y.real), eq(x.imag, y.imag));
}
template <class V>
Condition<V> ne(Complex<V> x, Complex<V> y) {
  return logical_or(ne(x.real, y.real), ne(x.imag, y.imag));
}
namespace detail {
template <class C>
C choose(C condition, C yes, C no) {
  return logical_or(logical_and(condition, yes), logical_and(logical_not(condition), no));
}
}  // namespace detail
template <class V>
Condition<V> lt(Complex<V> x, Complex<V> y) {
  return detail::choose(eq(x.real, y.real), lt(x.imag, y.imag), lt(x.real, y.real));
}
template <class V>
Condition<V> le(Complex<V> x, Complex<V> y) {
  return detail::choose(eq(x.real, y.real), le(x.imag, y.imag), le(x.real, y.real));
}
template <class V>
Condition<V> gt(Complex<V> x, Complex<V> y) {
  return detail::choose(eq(x.real, y.real), gt(x.imag, y.imag), gt(x.real, y.real));
}
template <class V>
Condition<V> ge(Complex<V> x, Complex<V> y) {
  return detail::choose(eq(x.real, y.real), ge(x.imag, y.imag), ge(x.real, y.real));
}
template <class V>
Complex<V> maximum(Complex<V> x, Complex<V> y) {
  return select(gt(x, y), x, y);
}
template <class V>
Complex<V> minimum(Complex<V> x, Complex<V> y) {
  return select(lt(x, y), x, y);
}

namespace detail {

// An infinite part becomes +-1, a finite one +-0.
template <class V>
V infinity_sign(V x) {
  return copysign(select(eq(abs(x), constant(infinity, x)), constant(1, x), constant(0, x)), x);
}

}  // namespace detail

// Smith's method, then the infinities and zeros listed in Annex G of the C standard, where both parts are NaN.
template <class V>
Complex<V> operator/(Complex<V> x, Complex<V> y) {
  V zero = constant(0, x.real), inf = constant(infinity, x.real);
  V slope = y.imag / y.real, width = y.real + slope * y.imag;
  Complex<V> by_real{(x.real + x.imag * slope) / width, (x.imag - x.real * slope) / width};
  V rise = y.real / y.imag, height = y.imag + rise * y.real;
  Complex<V> by_imag{(x.real * rise + x.imag) / height, (x.imag * rise - x.real) / height};
  V c_size = abs(y.real), d_size = abs(y.imag), a_size = abs(x.real), b_size = abs(x.imag);
  Complex<V> quotient = select(lt(c_size, d_size), by_imag, by_real);

  V signed_infinity = copysign(inf, y.real);
  Complex<V> over_zero{signed_infinity * x.real, signed_infinity * x.imag};
  V a = detail::infinity_sign(x.real), b = detail::infinity_sign(x.imag);
  Complex<V> infinite{inf * (a * y.real + b * y.imag), inf * (b * y.real - a * y.imag)};
  V c = detail::infinity_sign(y.real), d = detail::infinity_sign(y.imag);
  Complex<V> vanishing{zero * (x.real * c + x.imag * d), zero * (x.imag * c - x.real * d)};

  auto a_infinite = eq(a_size, inf), b_infinite = eq(b_size, inf), c_infinite = eq(c_size, inf),
       d_infinite = eq(d_size, inf);
  auto x_finite = logical_and(lt(a_size, inf), lt(b_size, inf)),
       y_finite = logical_and(lt(c_size, inf), lt(d_size, inf));
  Complex<V> special = quotient;
  special = select(logical_and(x_finite, logical_or(c_infinite, d_infinite)), vanishing, special);
  special = select(logical_and(y_finite, logical_or(a_infinite, b_infinite)), infinite, special);
  auto y_is_zero = logical_and(eq(c_size, zero), eq(d_size, zero));
  auto x_has_number = logical_or(eq(x.real, x.real), eq(x.imag, x.imag));
  special = select(logical_and(y_is_zero, x_has_number), over_zero, special);
  return select(logical_and(is_nan(quotient.real), is_nan(quotient.imag)), special, quotient);
}

template <class V>
V abs(Complex<V> x) {
  V a = abs(x.real), b = abs(x.imag);
  V large = maximum(a, b), small = minimum(a, b);
  V ratio = small / large;
  V size = large * sqrt(constant(1, a) + ratio * ratio);
  // 0 / 0 and inf / inf.
  return select(is_nan(size), small, size);
}

template <class V>
Complex<V> sign(Complex<V> x) {
  V zero = constant(0, x.real), size = abs(x);
  auto is_zero = logical_and(eq(x.real, zero), eq(x.imag, zero));
  return select(is_zero, x, Complex<V>{x.real / size, x.imag / size});
}

template <class V>
Complex<V> square(Complex<V> x) {
  auto balanced = logical_and(is_finite(x.real), eq(abs(x.real), abs(x.imag)));
  V difference = (x.real - x.imag) * (x.real + x.imag);
  return {select(balanced, constant(0, x.real), difference), constant(2, x.real) * (x.real * x.imag)};
}

template <class V>
Complex<V> exp(Complex<V> x) {
  V half = exp(x.real * constant(0.5, x.real)), whole = exp(x.real);
  // e^x may overflow where e^x cos(y) does not.
  auto overflows = eq(whole, constant(infinity, whole));
  V c = cos(x.imag), s = sin(x.imag), zero = constant(0, whole);
  return {select(overflows, half * c * half, whole * c),
          select(eq(x.imag, zero), zero, select(overflows, half * s * half, whole * s))};
}

template <class V>
Complex<V> exp2(Complex<V> x) {
  return exp(x * Complex<V>{constant(log_two, x.real), constant(0, x.real)});
}

// (1 + expm1(a)) cos(b) - 1 without cancellation: cos(b) - 1 = -2 sin(b/2)^2.
template <class V>
Complex<V> expm1(Complex<V> x) {
  V one = constant(1, x.real), zero = constant(0, x.real);
  V growth = expm1(x.real), s = sin(x.imag * constant(0.5, x.real));
  V turn = zero - constant(2, x.real) * (s * s);
  V imag = (growth + one) * sin(x.imag);
  return {growth * (turn + one) + turn, select(eq(x.imag, zero), zero, imag)};
}

template <class V>
Complex<V> logistic(Complex<V> x) {
  Complex<V> one{constant(1, x.real), constant(0, x.real)};
  return one / (one + exp(-x));
}

namespace detail {

// x^2 and its rounding error, by Veltkamp's splitting.
template <class V>
std::pair<V, V> exact_square(V x) {
  V square = x * x;
  V scaled = x * constant(is_double(x) ? 134217729.0 : 4097.0, x);
  V high = scaled + (x - scaled);
  V low = x - high;
  V cross = high * low;
  return {square, ((high * high - square) + cross + cross) + low * low};
}

// Adds `term` to `sum` and the rounding error to `error`.
template <class V>
void accumulate(V& sum, V& error, V term) {
  V total = sum + term;
  V taken = total - sum;
  error = error + ((sum - (total - taken)) + (term - taken));
  sum = total;
}

// log(hypot(a, b)), good far from the unit circle.
template <class V>
V log_hypot(V a, V b) {
  V large = maximum(a, b), small = minimum(a, b);
  V ratio = select(eq(small, large), constant(1, a), small / large);
  return log(large) + constant(0.5, a) * log1p(ratio * ratio);
}

}  // namespace detail

// Near the unit circle log|x| is log1p(|x|^2 - 1) / 2, with the squares kept exact.
template <class V>
Complex<V> log(Complex<V> x) {
  V half = constant(0.5, x.real);
  auto [a, a_error] = detail::exact_square(x.real);
  auto [b, b_error] = detail::exact_square(x.imag);
  auto b_larger = gt(b, a);
  V sum = select(b_larger, b, a), error = constant(0, x.real);
  detail::accumulate(sum, error, constant(-1, x.real));
  detail::accumulate(sum, error, select(b_larger, a, b));
  detail::accumulate(sum, error, b_error);
  detail::accumulate(sum, error, a_error);
  V excess = sum + error;
  V near = half * log1p(excess), far = detail::log_hypot(abs(x.real), abs(x.imag));
  return {select(lt(abs(excess), half), near, far), atan2(x.imag, x.real)};
}

template <class V>
Complex<V> log1p(Complex<V> x) {
  V half = constant(0.5, x.real), one = constant(1, x.real);
  V shifted = one + x.real;
  auto [a, a_error] = detail::exact_square(x.real);
  auto [b, b_error] = detail::exact_square(x.imag);
  V sum = x.real + x.real, error = constant(0, x.real);
  detail::accumulate(sum, error, b);
  detail::accumulate(sum, error, a);
  detail::accumulate(sum, error, b_error);
  detail::accumulate(sum, error, a_error);
  V general = half * log1p(sum + error);
  V near_pole = half * log(shifted * shifted + x.imag * x.imag);
  V a_size = abs(x.real), b_size = abs(x.imag);
  V huge = constant(is_double(x.real) ? 1.3407807929942596e152 : 1.8446743e17, x.real);
  V real = select(lt(abs(shifted) + b_size, constant(0.2, x.real)), near_pole, general);
  real = select(gt(maximum(a_size, b_size), huge), detail::log_hypot(a_size, b_size), real);
  return {real, atan2(x.imag, shifted)};
}

// |x|^c e^(-d arg) rotated by c arg + d log|x|, for y = c + di; zero, one and infinity to a real power are exact.
template <class V>
Complex<V> pow(Complex<V> x, Complex<V> y) {
  V zero = constant(0, x.real), one = constant(1, x.real), inf = constant(infinity, x.real);
  V size = abs(x), angle = atan2(x.imag, x.real);
  V scale = pow(size, y.real) * exp(-y.imag * angle);
  V turn = y.real * angle + y.imag * log(size);
  Complex<V> result{scale * cos(turn), scale * sin(turn)};
  auto exponent_real = eq(y.imag, zero), base_real = eq(x.imag, zero);
  auto exponent_zero = logical_and(exponent_real, eq(y.real, zero));
  Complex<V> complex_one{one, zero}, complex_zero{zero, zero};
  auto zero_base = logical_and(logical_and(eq(size, zero), exponent_real), ge(y.real, zero));
  result = select(zero_base, complex_zero, result);
  result = select(exponent_zero, complex_one, result);
  result = select(logical_and(eq(x.real, one), base_real), complex_one, result);
  auto infinite_base = logical_and(logical_and(eq(x.real, inf), base_real), exponent_real);
  result = select(logical_and(infinite_base, gt(y.real, zero)), Complex<V>{inf, zero}, result);
  return select(logical_and(infinite_base, lt(y.real, zero)), complex_zero, result);
}

}  // namespace capibara::math
