// The arithmetic of Fourier transforms on vectors: complex numbers in two vectors, and transforms of a few of them.
#pragma once

#include "backends/cpu/kernels/fft/fft_vectors.h"

namespace capibara::cpu::fft {

template <class R, int Bytes>
struct Butterflies : Vectors<R, Bytes> {
  using Own = Vectors<R, Bytes>;
  using V = typename Own::V;
  using C = typename Own::C;

  static CAPIBARA_FFT_INLINE C plus(const C& a, const C& b) { return {a.re + b.re, a.im + b.im}; }
  static CAPIBARA_FFT_INLINE C minus(const C& a, const C& b) { return {a.re - b.re, a.im - b.im}; }
  static CAPIBARA_FFT_INLINE C times(const C& a, R re, R im) { return {a.re * re - a.im * im, a.re * im + a.im * re}; }
  static CAPIBARA_FFT_INLINE C times_minus_i(const C& a) { return {a.im, -a.re}; }

  static CAPIBARA_FFT_INLINE void four(const C& a, const C& b, const C& c, const C& d, C* u) {
    const C s = plus(a, c), t = minus(a, c), v = plus(b, d), w = times_minus_i(minus(b, d));
    u[0] = plus(s, v);
    u[1] = plus(t, w);
    u[2] = minus(s, v);
    u[3] = minus(t, w);
  }

  template <int radix>
  static CAPIBARA_FFT_INLINE void butterfly(const C* t, C* u) {
    if constexpr (radix == 2) {
      u[0] = plus(t[0], t[1]);
      u[1] = minus(t[0], t[1]);
    } else if constexpr (radix == 4) {
      four(t[0], t[1], t[2], t[3], u);
    } else if constexpr (radix == 8) {
      constexpr R half = static_cast<R>(0.70710678118654752440);
      C even[4], odd[4];
      four(t[0], t[2], t[4], t[6], even);
      four(t[1], t[3], t[5], t[7], odd);
      const C one = {(odd[1].re + odd[1].im) * half, (odd[1].im - odd[1].re) * half};
      const C two = times_minus_i(odd[2]);
      const C three = {(odd[3].im - odd[3].re) * half, -(odd[3].re + odd[3].im) * half};
      u[0] = plus(even[0], odd[0]);
      u[4] = minus(even[0], odd[0]);
      u[1] = plus(even[1], one);
      u[5] = minus(even[1], one);
      u[2] = plus(even[2], two);
      u[6] = minus(even[2], two);
      u[3] = plus(even[3], three);
      u[7] = minus(even[3], three);
    } else if constexpr (radix == 3) {
      constexpr R sine = static_cast<R>(-0.86602540378443864676);
      const C sum = plus(t[1], t[2]), difference = minus(t[1], t[2]);
      const C middle = {t[0].re - sum.re * static_cast<R>(0.5), t[0].im - sum.im * static_cast<R>(0.5)};
      const C side = {-(difference.im * sine), difference.re * sine};
      u[0] = plus(t[0], sum);
      u[1] = plus(middle, side);
      u[2] = minus(middle, side);
    } else if constexpr (radix == 16) {
      constexpr R half = static_cast<R>(0.70710678118654752440);
      constexpr R c = static_cast<R>(0.92387953251128675613), s = static_cast<R>(0.38268343236508977173);
      C y[4][4];
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) four(t[j], t[j + 4], t[j + 8], t[j + 12], y[j]);
      y[1][1] = times(y[1][1], c, -s);
      y[1][2] = {(y[1][2].re + y[1][2].im) * half, (y[1][2].im - y[1][2].re) * half};
      y[1][3] = times(y[1][3], s, -c);
      y[2][1] = {(y[2][1].re + y[2][1].im) * half, (y[2][1].im - y[2][1].re) * half};
      y[2][2] = times_minus_i(y[2][2]);
      y[2][3] = {(y[2][3].im - y[2][3].re) * half, (y[2][3].re + y[2][3].im) * -half};
      y[3][1] = times(y[3][1], s, -c);
      y[3][2] = {(y[3][2].im - y[3][2].re) * half, (y[3][2].re + y[3][2].im) * -half};
      y[3][3] = times(y[3][3], -c, s);
#pragma GCC unroll 4
      for (int q = 0; q < 4; ++q) {
        C x[4];
        four(y[0][q], y[1][q], y[2][q], y[3][q], x);
#pragma GCC unroll 4
        for (int p = 0; p < 4; ++p) u[q + 4 * p] = x[p];
      }
    } else if constexpr (radix == 7) {
      constexpr R cosines[] = {1, static_cast<R>(0.62348980185873353053), static_cast<R>(-0.22252093395631440429),
                               static_cast<R>(-0.90096886790241912624)};
      constexpr R sines[] = {0, static_cast<R>(-0.78183148246802980871), static_cast<R>(-0.97492791218182360702),
                             static_cast<R>(-0.43388373911755812048)};
      C sums[4], differences[4];
#pragma GCC unroll 3
      for (int r = 1; r < 4; ++r) {
        sums[r] = plus(t[r], t[7 - r]);
        differences[r] = minus(t[r], t[7 - r]);
      }
      u[0] = plus(t[0], plus(sums[1], plus(sums[2], sums[3])));
#pragma GCC unroll 3
      for (int q = 1; q < 4; ++q) {
        C even = t[0], odd{};
#pragma GCC unroll 3
        for (int r = 1; r < 4; ++r) {
          const int at = q * r % 7, folded = at > 3 ? 7 - at : at;
          const R c = cosines[folded], s = at > 3 ? -sines[folded] : sines[folded];
          even.re += sums[r].re * c;
          even.im += sums[r].im * c;
          odd.re -= differences[r].im * s;
          odd.im += differences[r].re * s;
        }
        u[q] = plus(even, odd);
        u[7 - q] = minus(even, odd);
      }
    } else {
      static_assert(radix == 5);
      constexpr R c1 = static_cast<R>(0.30901699437494742410), c2 = static_cast<R>(-0.80901699437494742410);
      constexpr R s1 = static_cast<R>(-0.95105651629515357212), s2 = static_cast<R>(-0.58778525229247312917);
      const C a = plus(t[1], t[4]), b = plus(t[2], t[3]), d = minus(t[1], t[4]), e = minus(t[2], t[3]);
      const C first = {t[0].re + a.re * c1 + b.re * c2, t[0].im + a.im * c1 + b.im * c2};
      const C second = {t[0].re + a.re * c2 + b.re * c1, t[0].im + a.im * c2 + b.im * c1};
      const C x = {-(d.im * s1 + e.im * s2), d.re * s1 + e.re * s2};
      const C y = {-(d.im * s2 - e.im * s1), d.re * s2 - e.re * s1};
      u[0] = {t[0].re + a.re + b.re, t[0].im + a.im + b.im};
      u[1] = plus(first, x);
      u[4] = minus(first, x);
      u[2] = plus(second, y);
      u[3] = minus(second, y);
    }
  }
};

}  // namespace capibara::cpu::fft
