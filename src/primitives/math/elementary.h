// exp, log, log1p, expm1 and tanh of float and double, rounded as jax on the CPU rounds them.
//
// libm's would be closer to the truth by a fraction of an ULP, but jax.random.gumbel is log(-log(u)): one ULP of
// difference inside becomes thousands where the outer logarithm crosses zero. The polynomials are those of Moshier's
// Cephes library (exp, log, log1p) and Eigen's rational tanh; products and sums are fused where jax's code fuses them.
//
// Largest difference from jax 0.10.2 in ULP (float32 over 2^19 values, float64 over 2^19 values):
//   exp 0, 0   log 0, 0   log1p 0, 0   expm1 0, 0   tanh 0, 0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace capibara::math::elementary {

namespace detail {

template <class T, int count>
T horner(T x, const T (&coefficients)[count]) {
  T sum = coefficients[0];
  for (int i = 1; i < count; ++i) sum = std::fma(sum, x, coefficients[i]);
  return sum;
}

}  // namespace detail

inline float exp(float x) {
  if (x != x) return x;
  float bounded = x < -87.8f ? -87.8f : x > 88.8f ? 88.8f : x;
  float n = std::floor(std::fma(bounded, 1.44269504f, 0.5f));
  n = n < -127.0f ? -127.0f : n > 127.0f ? 127.0f : n;
  float r = std::fma(n, 2.12194440e-4f, std::fma(n, -0.693359375f, bounded));
  const float series[] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                          4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};
  float power = std::fma(detail::horner(r, series), r * r, r) + 1.0f;
  // 2^n through the exponent field; n = -127 gives the zero that flushing denormals would.
  return power * std::bit_cast<float>((static_cast<std::int32_t>(n) + 127) << 23);
}

inline float log(float x) {
  constexpr float smallest = std::numeric_limits<float>::min();
  // A denormal counts as zero.
  if (std::fabs(x) < smallest) return -std::numeric_limits<float>::infinity();
  if (!(x > 0)) return std::numeric_limits<float>::quiet_NaN();
  if (x == std::numeric_limits<float>::infinity()) return x;
  auto bits = std::bit_cast<std::uint32_t>(x);
  float exponent = static_cast<float>(static_cast<std::int32_t>(bits >> 23) - 126);
  float mantissa = std::bit_cast<float>((bits & 0x007fffffu) | 0x3f000000u);
  bool low = mantissa < 0.707106781f;
  float r = (mantissa - 1.0f) + (low ? mantissa : 0.0f);
  exponent -= low ? 1.0f : 0.0f;
  float square = r * r, cube = square * r;
  // Nine coefficients in three groups of three: shorter chains, and the rounding jax has.
  const float high[] = {7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f};
  const float middle[] = {-1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f};
  const float last[] = {2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f};
  float sum = std::fma(detail::horner(r, high), cube, detail::horner(r, middle));
  sum = std::fma(sum, cube, detail::horner(r, last));
  float tail = std::fma(sum, cube, exponent * -2.12194440e-4f);
  return std::fma(exponent, 0.693359375f, std::fma(square, -0.5f, r) + tail);
}

inline double exp(double x) {
  if (x != x) return x;
  if (x < -708.39641853226408) return 0.0;
  if (x > 709.78271289338397) return std::numeric_limits<double>::infinity();
  double n = std::floor(std::fma(x, 1.4426950408889634, 0.5));
  double r = std::fma(n, -1.4286068203094173e-6, std::fma(n, -0.693145751953125, x));
  double square = r * r;
  const double above[] = {1.2617719307481059e-4, 3.0299440770744196e-2, 1.0};
  const double below[] = {3.0019850513866446e-6, 2.5244834034968410e-3, 2.2726554820815503e-1, 2.0};
  double p = detail::horner(square, above) * r;
  return std::ldexp(std::fma(p / (detail::horner(square, below) - p), 2.0, 1.0), static_cast<int>(n));
}

inline double log(double x) {
  return std::fabs(x) < std::numeric_limits<double>::min() ? -std::numeric_limits<double>::infinity() : std::log(x);
}

// Accurate to an ULP on [-0.29, 0.41]; jax uses it down to -0.41, where it loses up to 6 bits of float64.
template <class T>
T log1p(T x) {
  if (!(std::fabs(x) < T(0.41421356237309510))) return log(T(1) + x);
  if (std::fabs(x) < std::numeric_limits<T>::min()) return std::copysign(T(0), x);
  const T above[] = {T(4.5270000862445199635215e-5), T(4.9854102823193375972212e-1), T(6.5787325942061044846969e0),
                     T(2.9911919328553073277375e1),  T(6.0949667980987787057556e1),  T(5.7112963590585538103336e1),
                     T(2.0039553499201281259648e1)};
  const T below[] = {T(1),
                     T(1.5062909083469192043167e1),
                     T(8.3047565967967209469434e1),
                     T(2.2176239823732856465394e2),
                     T(3.0909872225312059774938e2),
                     T(2.1642788614495947685003e2),
                     T(6.0118660497603843919306e1)};
  T square = x * x;
  T ratio = detail::horner(x, above) / detail::horner(x, below);
  return x + std::fma(square, T(-0.5), x * square * ratio);
}

inline float tanh(float x) {
  float size = std::fabs(x);
  if (size >= 20.0f) return std::copysign(1.0f, x);
  if (size < 0.0004f) return x;
  float bounded = x < -7.99881172f ? -7.99881172f : x > 7.99881172f ? 7.99881172f : x;
  const float above[] = {-2.76076847742355e-16f, 2.00018790482477e-13f, -8.60467152213735e-11f, 5.12229709037114e-08f,
                         1.48572235717979e-05f,  6.37261928875436e-04f, 4.89352455891786e-03f};
  const float below[] = {1.19825839466702e-06f, 1.18534705686654e-04f, 2.26843463243900e-03f, 4.89352518554385e-03f};
  float square = bounded * bounded;
  return bounded * detail::horner(square, above) / detail::horner(square, below);
}

inline double tanh(double x) {
  if (std::fabs(x) >= 20.0) return std::copysign(1.0, x);
  if (std::fabs(x) < std::numeric_limits<double>::min()) return std::copysign(0.0, x);
  constexpr double bound = 17.714196154005176;
  double bounded = x < -bound ? -bound : x > bound ? bound : x;
  const double above[] = {2.615800786048223e-23,  7.653486226874932e-19,
                          3.130948823138668e-15,  4.230391814820918e-12,
                          2.4618379131293676e-09, 6.864436768249707e-07,
                          9.383908767426888e-05,  0.005980971172444116,
                          0.15184719640284322,    1.0};
  const double below[] = {
      6.463747022670968e-21, 5.782506856739004e-17, 1.293019623712688e-13, 1.123643448069622e-10, 4.492975677839634e-08,
      8.785185266237659e-06, 0.0008295161192716232, 0.03437448108450403,   0.48518052973617604,   1.0};
  double square = bounded * bounded;
  return bounded * detail::horner(square, above) / detail::horner(square, below);
}

template <class T>
T expm1(T x) {
  T half = x * T(0.5);
  if (std::fabs(half) < std::numeric_limits<T>::min()) return x;
  T power = exp(x);
  return std::fabs(x) > T(0.5) ? power - T(1) : tanh(half) * (power + T(1));
}

}  // namespace capibara::math::elementary
