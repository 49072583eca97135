// sin, cos, tan and atan2 without libm and without branches, for generated code that computes many lanes at once.
//
// Arguments are reduced by multiples of pi/2 in three parts (Cody and Waite), exact by fused products; single precision
// does it in doubles. From 2^30 on libm is called. Largest errors are measured in docs/cpu_math.md.
#pragma once

#include "lax/math/value.h"

namespace capibara::math::in_lanes {

namespace detail {

// Polynomials in z = r^2 on |r| <= pi/4: (sin(r) / r - 1) / z and (cos(r) - 1 + z/2) / z^2.
inline constexpr double sine_tail[] = {1.5896666468025057e-10,  -2.5050755963189062e-08, 2.7557313678695777e-06,
                                       -0.00019841269829771313, 0.00833333333332237,     -0.16666666666666632};
inline constexpr double cosine_tail[] = {-1.1359559875607723e-11, 2.0875721636189844e-09, -2.7557314340768627e-07,
                                         2.4801587289443932e-05,  -0.0013888888888874066, 0.0416666666666666};
inline constexpr double middle_sine_tail[] = {2.7182746434761463e-06, -0.00019839331023809655, 0.008333329374244271,
                                              -0.1666666664152837};
inline constexpr double middle_cosine_tail[] = {-2.720988924454479e-07, 2.4799515842699428e-05, -0.0013888883737837251,
                                                0.04166666662264996};
inline constexpr double short_sine_tail[] = {-0.00019516975548902686, 0.008332175835036496, -0.166666549086225};
inline constexpr double short_cosine_tail[] = {2.443808547459069e-05, -0.0013887364442103781, 0.04166664680652901};

inline constexpr double reducible = 1073741824;  // 2^30

// x = `turns` pi/2 + (r + low) with |r| <= pi/4; in double precision. `turns` is in the last bits of a large number.
template <class V>
struct Reduced {
  V turns, r, low;
};
inline constexpr double large = 6755399441055744;  // 1.5 * 2^52: its last place is 1
template <class V>
Reduced<V> reduce(V x) {
  V turns = multiply_add(x, constant(0.6366197723675814, x), constant(large, x));
  V k = constant(large, x) - turns;
  V first = multiply_add(k, constant(1.5707963267948966, x), x);
  V r = multiply_add(k, constant(6.123233995736766e-17, x), first);
  // The rounding error of r, and the third part of pi/2. Near multiples of pi/2 the difference itself is rounded.
  V difference = first - r, lost = (first - difference) - r;
  V low = multiply_add(k, constant(6.123233995736766e-17, x), difference) + lost;
  return {turns, r, multiply_add(k, constant(-1.4973849048591698e-33, x), low)};
}

// For arguments of single precision, whose distance from a multiple of pi/2 is never that small.
template <class V>
Reduced<V> short_reduce(V x) {
  V turns = multiply_add(x, constant(0.6366197723675814, x), constant(large, x));
  V k = constant(large, x) - turns;
  V r = multiply_add(k, constant(1.5707963267948966, x), x);
  r = multiply_add(k, constant(6.123233995736766e-17, x), r);
  return {turns, r, r};
}

// sin and cos of r + low.
template <class V>
V sine(V r, V low) {
  V z = r * r;
  V correction = low * multiply_add(z, constant(-0.5, r), constant(1, r));
  return r + multiply_add(r * z, polynomial(z, sine_tail), correction);
}
template <class V>
V cosine(V r, V low) {
  V z = r * r, one = constant(1, r), half = z * constant(0.5, r), w = one - half;
  return w + (((one - w) - half) + multiply_add(z * z, polynomial(z, cosine_tail), -(r * low)));
}

// The same in single precision.
template <class V>
V short_sine(V r) {
  V z = r * r;
  return multiply_add(r * z, polynomial(z, short_sine_tail), r);
}
template <class V>
V short_cosine(V r) {
  V z = r * r, one = constant(1, r), half = z * constant(0.5, r), w = one - half;
  return w + multiply_add(z * z, polynomial(z, short_cosine_tail), (one - w) - half);
}

// True if the number of quarter periods is odd: sine and cosine are exchanged.
template <class W>
auto is_odd(W turns) {
  return Operations<W>::has_bit(turns, 0);
}

// The sine, or the cosine a quarter period ahead, from those of r: with the sign of the quadrant.
template <class V, class W>
V by_quarter(W turns, V sine_of_r, V cosine_of_r, bool ahead) {
  V size = ahead ? select(is_odd(turns), sine_of_r, cosine_of_r) : select(is_odd(turns), cosine_of_r, sine_of_r);
  if (ahead) turns = turns + constant(1, turns);
  return Operations<V>::negated_by_bit(size, turns, 1);
}

template <class V>
V sine_or_cosine(V x, bool ahead) {
  if (is_double(x)) {
    auto [turns, r, low] = reduce(x);
    return by_quarter(turns, sine(r, low), cosine(r, low), ahead);
  }
  auto [turns, r, low] = short_reduce(widen(x));
  V angle = narrow(r, x);
  return by_quarter(turns, short_sine(angle), short_cosine(angle), ahead);
}

template <class V>
Condition<V> is_irreducible(V x) {
  return logical_not(lt(abs(x), constant(reducible, x)));
}

}  // namespace detail

// For arguments below 2^30.
template <class V>
V reducible_sin(V x) {
  V near = detail::sine_or_cosine(x, false);
  // Keeps the sign of zero.
  return select(lt(abs(x), constant(is_double(x) ? 7.450580596923828e-9 : 1.220703125e-4, x)), x, near);
}
template <class V>
V reducible_cos(V x) {
  return detail::sine_or_cosine(x, true);
}

template <class V>
V sin(V x) {
  return rarely(detail::is_irreducible(x), reducible_sin(x), [&] { return Operations<V>::library_sin(x); });
}

template <class V>
V cos(V x) {
  return rarely(detail::is_irreducible(x), reducible_cos(x), [&] { return Operations<V>::library_cos(x); });
}

namespace detail {

template <class V>
V tangent(V turns, V sine_of_r, V cosine_of_r) {
  auto odd = is_odd(turns);
  return select(odd, -cosine_of_r, sine_of_r) / select(odd, sine_of_r, cosine_of_r);
}

}  // namespace detail

template <class V>
V tan(V x) {
  V near = x;
  if (is_double(x)) {
    auto [turns, r, low] = detail::reduce(x);
    near = detail::tangent(turns, detail::sine(r, low), detail::cosine(r, low));
  } else {
    auto [turns, r, low] = detail::short_reduce(widen(x));
    auto z = r * r;
    auto sine = multiply_add(r * z, polynomial(z, detail::middle_sine_tail), r);
    auto cosine = multiply_add(z * z, polynomial(z, detail::middle_cosine_tail),
                               multiply_add(z, constant(-0.5, z), constant(1, z)));
    near = narrow(detail::tangent(turns, sine, cosine), x);
  }
  V result = select(lt(abs(x), constant(is_double(x) ? 7.450580596923828e-9 : 1.220703125e-4, x)), x, near);
  return rarely(detail::is_irreducible(x), result, [&] { return Operations<V>::library_tan(x); });
}

namespace detail {

// The angle of (x, y), for finite, infinite and zero numbers; in double precision, with the arc tangent's `tail`.
template <class V, class Coefficients>
V angle(V y, V x, const Coefficients& tail) {
  V zero = constant(0, x), one = constant(1, x), two = constant(2, x), four = constant(4, x);
  V height = abs(y), width = abs(x);
  auto steep = gt(height, width);
  V large = select(steep, height, width), small = select(steep, width, height);
  // The sum of the largest numbers must not overflow; inf / inf counts as 1, and 0 / 0 as 0.
  V scale = select(gt(large, constant(1e300, x)), constant(0x1p-20, x), one);
  large = large * scale;
  small = small * scale;
  auto both_infinite = eq(small, constant(infinity, x));
  large = select(both_infinite, one, select(eq(large, zero), one, large));
  small = select(both_infinite, one, small);
  // Beyond tan(pi/8): atan(q) = pi/4 + atan((q - 1) / (q + 1)).
  auto upper = gt(small, large * constant(0.41421356237309504880, x));
  V t = select(upper, small - large, small) / select(upper, small + large, large);
  V z = t * t, eighths = select(upper, one, zero);
  // The angle is a multiple of pi/4 plus or minus atan(t).
  auto backwards = lt(copysign(one, x), zero);
  eighths = select(steep, two - eighths, eighths);
  eighths = select(backwards, four - eighths, eighths);
  V step = select(steep, -t, t);
  step = select(backwards, -step, step);
  // pi/4 in two parts, small multiples of the first being exact.
  V low = multiply_add(step * z, polynomial(z, tail), eighths * constant(2.6951514290790595e-15, x));
  V result = multiply_add(eighths, constant(0.7853981633974456, x), step + low);
  return copysign(result, y);
}

inline constexpr double arc_tail[] = {0.015195465447097082,  -0.033474789429014835, 0.04503564807383667,
                                      -0.052184084477446956, 0.058770224730318454,  -0.066662268310926,
                                      0.0769228276400531,    -0.09090908144782366,  0.11111111088185396,
                                      -0.1428571428538814,   0.1999999999999767,    -0.33333333333333326};
inline constexpr double short_arc_tail[] = {0.047461341604996474, -0.08477417607097967, 0.1104492530855701,
                                            -0.14282029224878773, 0.19999904764425314,  -0.3333333251017413};

}  // namespace detail

template <class V>
V atan2(V y, Same<V> x) {
  V result = y;
  if (is_double(x))
    result = detail::angle(y, x, detail::arc_tail);
  else
    result = narrow(detail::angle(widen(y), widen(x), detail::short_arc_tail), x);
  return select(logical_or(is_nan(x), is_nan(y)), x + y, result);
}

}  // namespace capibara::math::in_lanes
