// The steps of Fourier transforms on vectors: element e of all lines of a group is one vector of real and one of
// imaginary parts, so that no step moves numbers between lanes. Steps are Stockham's: results come out in order.
#include "backends/cpu/kernels/products/fft_lanes.h"

#include <utility>

#include "backends/cpu/kernels/products/fft_moves.h"
#include "runtime/processor.h"

namespace capibara::cpu::fft {

namespace {

template <class R, int Bytes>
struct Code : Moves<R, Bytes> {
  using Own = Moves<R, Bytes>;
  using V = typename Own::V;
  using C = typename Own::C;
  using Own::load;
  using Own::read;
  using Own::store;

  // ---- steps -------------------------------------------------------------------------------------------------------

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

  template <int radix>
  static CAPIBARA_FFT_INLINE void step(const Stage& stage, const R* roots, const C* in, C* out) {
    const int64_t inner = stage.inner, outer = stage.outer;
    for (int64_t k = 0; k < outer; ++k) {
      for (int64_t i = 0; i < inner; ++i) {
        const C* from = in + i + inner * radix * k;
        C t[radix], u[radix];
#pragma GCC unroll 8
        for (int r = 0; r < radix; ++r) t[r] = from[inner * r];
        butterfly<radix>(t, u);
        C* to = out + i + inner * k;
        const R* w = roots + 2 * (radix - 1) * i;
        to[0] = u[0];
        if (i == 0) {
#pragma GCC unroll 8
          for (int q = 1; q < radix; ++q) to[inner * outer * q] = u[q];
        } else {
#pragma GCC unroll 8
          for (int q = 1; q < radix; ++q) to[inner * outer * q] = times(u[q], w[2 * q - 2], w[2 * q - 1]);
        }
      }
    }
  }

  // Any odd radix: sums and differences of opposite terms first.
  static CAPIBARA_FFT_INLINE void odd_step(const Stage& stage, const R* roots, const C* in, C* out) {
    constexpr int max_half = 24;
    const int64_t inner = stage.inner, outer = stage.outer, radix = stage.radix, half = (radix - 1) / 2;
    const R* circle = roots + 2 * (radix - 1) * inner;
    for (int64_t k = 0; k < outer; ++k) {
      for (int64_t i = 0; i < inner; ++i) {
        const C* from = in + i + inner * radix * k;
        C sums[max_half], differences[max_half], total = from[0];
        for (int64_t r = 1; r <= half; ++r) {
          sums[r - 1] = plus(from[inner * r], from[inner * (radix - r)]);
          differences[r - 1] = minus(from[inner * r], from[inner * (radix - r)]);
          total = plus(total, sums[r - 1]);
        }
        C* to = out + i + inner * k;
        const R* w = roots + 2 * (radix - 1) * i;
        to[0] = total;
        for (int64_t q = 1; q <= half; ++q) {
          C even = from[0], odd{};
          int64_t at = 0;
          for (int64_t r = 1; r <= half; ++r) {
            at += q;
            if (at >= radix) at -= radix;
            const R c = circle[2 * at], s = circle[2 * at + 1];
            even.re += sums[r - 1].re * c;
            even.im += sums[r - 1].im * c;
            odd.re -= differences[r - 1].im * s;
            odd.im += differences[r - 1].re * s;
          }
          to[inner * outer * q] = times(plus(even, odd), w[2 * q - 2], w[2 * q - 1]);
          const int64_t p = radix - q;
          to[inner * outer * p] = times(minus(even, odd), w[2 * p - 2], w[2 * p - 1]);
        }
      }
    }
  }

  // From `a`, by way of both; returns where the result is.
  static CAPIBARA_FFT_INLINE C* steps(const Plan<R>& plan, C* a, C* b) {
    for (const Stage& stage : plan.stages) {
      const R* roots = plan.roots.data() + stage.roots;
      switch (stage.radix) {
        case 2:
          step<2>(stage, roots, a, b);
          break;
        case 3:
          step<3>(stage, roots, a, b);
          break;
        case 4:
          step<4>(stage, roots, a, b);
          break;
        case 5:
          step<5>(stage, roots, a, b);
          break;
        case 8:
          step<8>(stage, roots, a, b);
          break;
        default:
          odd_step(stage, roots, a, b);
          break;
      }
      std::swap(a, b);
    }
    return a;
  }

  static CAPIBARA_FFT_INLINE C* forward(const Plan<R>& plan, C* a, C* b) {
    if (!plan.is_convolution()) return steps(plan, a, b);
    const Plan<R>& inner = *plan.inner;
    const R* chirp = plan.chirp.data();
    for (int64_t k = 0; k < plan.length; ++k) a[k] = times(a[k], chirp[2 * k], chirp[2 * k + 1]);
    for (int64_t k = plan.length; k < inner.length; ++k) a[k] = C{};
    C* result = nullptr;
    for (int pass = 0; pass < 2; ++pass) {
      result = steps(inner, a, b);
      if (result == b) std::swap(a, b);
      if (pass == 1) break;
      // The way back is the way there of the conjugate.
      for (int64_t k = 0; k < inner.length; ++k) {
        a[k] =
            times(a[k], plan.kernel[static_cast<std::size_t>(2 * k)], plan.kernel[static_cast<std::size_t>(2 * k + 1)]);
        a[k].im = -a[k].im;
      }
    }
    for (int64_t k = 0; k < plan.length; ++k) {
      a[k].im = -a[k].im;
      a[k] = times(a[k], chirp[2 * k], chirp[2 * k + 1]);
    }
    return a;
  }

  // ---- real lines --------------------------------------------------------------------------------------------------

  static CAPIBARA_FFT_INLINE C conjugate(const C& a) { return {a.re, -a.im}; }

  // The spectrum of 2 n real numbers from that of their n pairs, in place; n + 1 elements.
  static CAPIBARA_FFT_INLINE void to_half_spectrum(const Plan<R>& plan, C* z) {
    constexpr R half = static_cast<R>(0.5);
    const int64_t n = plan.length;
    const C first = z[0];
    z[n] = {first.re - first.im, V{}};
    z[0] = {first.re + first.im, V{}};
    for (int64_t k = 1; 2 * k <= n; ++k) {
      const C a = z[k], b = conjugate(z[n - k]);
      const C sum = plus(a, b),
              turned = times(times_minus_i(minus(a, b)), plan.half_roots[static_cast<std::size_t>(2 * k)],
                             plan.half_roots[static_cast<std::size_t>(2 * k + 1)]);
      const C low = plus(sum, turned), high = minus(sum, turned);
      z[k] = {low.re * half, low.im * half};
      z[n - k] = {high.re * half, -(high.im * half)};
    }
  }

  // And back: the n pairs of whose unscaled inverse 2 n real numbers are made, times two.
  static CAPIBARA_FFT_INLINE void from_half_spectrum(const Plan<R>& plan, C* z) {
    const int64_t n = plan.length;
    const V first = z[0].re, last = z[n].re;
    z[0] = {first + last, first - last};
    for (int64_t k = 1; 2 * k <= n; ++k) {
      const C a = z[k], b = conjugate(z[n - k]);
      const C sum = plus(a, b), turned = times(minus(a, b), plan.half_roots[static_cast<std::size_t>(2 * k)],
                                               -plan.half_roots[static_cast<std::size_t>(2 * k + 1)]);
      const C side = {-turned.im, turned.re};
      const C low = plus(sum, side), high = minus(sum, side);
      z[k] = low;
      z[n - k] = conjugate(high);
    }
  }

  static CAPIBARA_FFT_INLINE void exchange(C* z, int64_t length) {
    for (int64_t e = 0; e < length; ++e) std::swap(z[e].re, z[e].im);
  }

  static CAPIBARA_FFT_INLINE void transform(const Group<R>& group) {
    const Plan<R>& plan = *group.plan;
    const int64_t n = plan.length, room = plan.work_length() + 2;
    C *a = reinterpret_cast<C*>(group.work), *b = a + room;
    int64_t in_length = n, out_length = n;
    if (group.kind == Kind::to_real_even) in_length = n + 1;
    if (group.kind == Kind::to_real_odd) in_length = n / 2 + 1;
    if (group.kind == Kind::real_even) out_length = n + 1;
    if (group.kind == Kind::real_odd) out_length = n / 2 + 1;
    load(group.in, group.lanes, in_length, a);
    if (group.kind == Kind::to_real_even) from_half_spectrum(plan, a);
    if (group.kind == Kind::to_real_odd) {
      a[0].im = V{};
      for (int64_t k = 1; k < in_length; ++k) a[n - k] = conjugate(a[k]);
    }
    if (group.swap_in) exchange(a, n);
    C* result = forward(plan, a, b);
    if (group.swap_out) exchange(result, n);
    if (group.kind == Kind::real_even) to_half_spectrum(plan, result);
    if (group.real) {
      for (int64_t e = 0; e < n; ++e) {
        const V re = read(group.real + e * group.roots_step), im = read(group.imag + e * group.roots_step);
        const C value = result[e];
        result[e] = {value.re * re - value.im * im, value.re * im + value.im * re};
      }
    }
    if (group.scale != 1) {
      for (int64_t e = 0; e < out_length; ++e) {
        result[e].re *= group.scale;
        result[e].im *= group.scale;
      }
    }
    store(result, group.lanes, out_length, group.out);
  }
};

#define CAPIBARA_TRANSFORM(NAME, TARGET, BYTES) \
  template <class R>                            \
  TARGET void NAME(const Group<R>& group) {     \
    Code<R, BYTES>::transform(group);           \
  }
CAPIBARA_TRANSFORM(plain_transform, , 16)
#if defined(__x86_64__)
CAPIBARA_TRANSFORM(avx2_transform, __attribute__((target("avx2,fma"))), 32)
CAPIBARA_TRANSFORM(avx512_transform, __attribute__((target("avx512f,avx512dq"))), 64)
#endif

template <class R>
Lanes<R> best_lanes() {
  constexpr int size = static_cast<int>(sizeof(R));
#if defined(__x86_64__)
  if (has_avx512()) return {64 / size, avx512_transform<R>};
  if (has_avx2()) return {32 / size, avx2_transform<R>};
#endif
  return {16 / size, plain_transform<R>};
}

}  // namespace

template <>
const Lanes<float>& lanes() {
  static const Lanes<float> found = best_lanes<float>();
  return found;
}
template <>
const Lanes<double>& lanes() {
  static const Lanes<double> found = best_lanes<double>();
  return found;
}

}  // namespace capibara::cpu::fft
