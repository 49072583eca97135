// Vectorised steps of Fourier transforms: element e of all lines of a group is one vector of real and one of
// imaginary parts, so that no step moves numbers between lanes. Steps work in place, and the last one writes results in
// order: directly to columns in memory if that is their destination.
#include "backends/cpu/kernels/fft/fft_lanes.h"

#include <cstring>
#include <utility>

#include "backends/cpu/kernels/fft/fft_butterflies.h"
#include "backends/cpu/kernels/targets.h"
#include "core/runtime/processor.h"

// Loads and stores of groups of lines, in each memory layout.

namespace capibara::cpu::fft {

template <class R, int Bytes>
struct Moves : Butterflies<R, Bytes> {
  using Own = Butterflies<R, Bytes>;
  using V = typename Own::V;
  using C = typename Own::C;
  using Own::count;
  using Own::read;
  using Own::turn;
  using Own::unzip;
  using Own::write;
  using Own::zip;

  static CAPIBARA_FFT_INLINE void load_rows(const Side<R>& from, int64_t lanes, int64_t length, C* to) {
    constexpr int pairs = count / 2;
    alignas(64) static constexpr R nothing[count] = {};
    int64_t e = 0;
    for (; e + pairs <= length; e += pairs) {
      V block[count];
      for (int lane = 0; lane < count; ++lane)
        block[lane] = read(lane < lanes ? from.data + lane * from.step + 2 * e : nothing);
      turn(block);
#pragma GCC unroll 8
      for (int k = 0; k < pairs; ++k) to[e + k] = C{block[2 * k], block[2 * k + 1]};
    }
    for (; e < length; ++e) {
      C value{};
      for (int64_t lane = 0; lane < lanes; ++lane) {
        value.re[lane] = from.data[lane * from.step + 2 * e];
        value.im[lane] = from.data[lane * from.step + 2 * e + 1];
      }
      to[e] = value;
    }
  }

  static CAPIBARA_FFT_INLINE void load(const Side<R>& from, int64_t lanes, int64_t length, C* to) {
    switch (from.form) {
      case Form::rows:
        return load_rows(from, lanes, length, to);
      case Form::columns:
        for (int64_t e = 0; e < length; ++e) {
          const R* at = from.data + e * from.step;
          R padded[2 * count] = {};
          if (lanes < count) {
            std::memcpy(padded, at, static_cast<std::size_t>(2 * lanes) * sizeof(R));
            at = padded;
          }
          const V low = read(at), high = read(at + count);
          unzip(low, high, to[e].re, to[e].im);
        }
        return;
      case Form::planes:
        for (int64_t e = 0; e < length; ++e) to[e] = {read(from.data + e * from.step), read(from.imag + e * from.step)};
        return;
      case Form::real_rows:
        for (int64_t e = 0; e < length; ++e) {
          C value{};
          for (int64_t lane = 0; lane < lanes; ++lane) value.re[lane] = from.data[lane * from.step + e];
          to[e] = value;
        }
        return;
      case Form::turned:
        return;
    }
  }

  static CAPIBARA_FFT_INLINE void store_rows(const C* from, int64_t lanes, int64_t length, const Side<R>& to) {
    constexpr int pairs = count / 2;
    int64_t e = 0;
    for (; e + pairs <= length; e += pairs) {
      V block[count];
#pragma GCC unroll 8
      for (int k = 0; k < pairs; ++k) {
        block[2 * k] = from[e + k].re;
        block[2 * k + 1] = from[e + k].im;
      }
      turn(block);
      for (int64_t lane = 0; lane < lanes; ++lane) write(to.data + lane * to.step + 2 * e, block[lane]);
    }
    for (; e < length; ++e) {
      for (int64_t lane = 0; lane < lanes; ++lane) {
        to.data[lane * to.step + 2 * e] = from[e].re[lane];
        to.data[lane * to.step + 2 * e + 1] = from[e].im[lane];
      }
    }
  }

  static CAPIBARA_FFT_INLINE void store_turned(const C* from, int64_t lanes, int64_t length, const Side<R>& to) {
    for (int64_t e = 0; e < length; e += count) {
      V re[count], im[count];
      for (int k = 0; k < count; ++k) {
        re[k] = e + k < length ? from[e + k].re : V{};
        im[k] = e + k < length ? from[e + k].im : V{};
      }
      turn(re);
      turn(im);
      for (int64_t lane = 0; lane < lanes; ++lane) {
        write(to.data + lane * to.step + e, re[lane]);
        write(to.imag + lane * to.step + e, im[lane]);
      }
    }
  }

  static CAPIBARA_FFT_INLINE void store(const C* from, int64_t lanes, int64_t length, const Side<R>& to) {
    switch (to.form) {
      case Form::rows:
        return store_rows(from, lanes, length, to);
      case Form::turned:
        return store_turned(from, lanes, length, to);
      case Form::columns:
        for (int64_t e = 0; e < length; ++e) {
          V low, high;
          zip(from[e].re, from[e].im, low, high);
          R* at = to.data + e * to.step;
          if (lanes == count) {
            write(at, low);
            write(at + count, high);
          } else {
            R whole[2 * count];
            write(whole, low);
            write(whole + count, high);
            std::memcpy(at, whole, static_cast<std::size_t>(2 * lanes) * sizeof(R));
          }
        }
        return;
      case Form::real_rows:
        for (int64_t e = 0; e < length; ++e) {
          for (int64_t lane = 0; lane < lanes; ++lane) to.data[lane * to.step + e] = from[e].re[lane];
        }
        return;
      case Form::planes:
        return;
    }
  }
};

namespace {

template <class R, int Bytes>
struct Code : Moves<R, Bytes> {
  using Own = Moves<R, Bytes>;
  using V = typename Own::V;
  using C = typename Own::C;
  using Own::count;
  using Own::load;
  using Own::minus;
  using Own::plus;
  using Own::read;
  using Own::store;
  using Own::times;
  using Own::times_minus_i;

  // ---- destinations of results -------------------------------------------------------------------------------------

  struct Work {
    C* z;
    CAPIBARA_FFT_INLINE void write(int64_t e, const C& value) const { z[e] = value; }
    CAPIBARA_FFT_INLINE void adjust(C*, int64_t) const {}
  };
  struct Columns {
    R* data;
    int64_t step;
    bool exchange;  // real and imaginary parts
    R scale;
    CAPIBARA_FFT_INLINE void write(int64_t e, const C& value) const {
      V low, high;
      Own::zip(value.re, value.im, low, high);
      Own::write(data + e * step, low);
      Own::write(data + e * step + count, high);
    }
    // Once for all elements of a butterfly.
    CAPIBARA_FFT_INLINE void adjust(C* values, int64_t radix) const {
      if (scale != 1) {
#pragma GCC unroll 8
        for (int64_t r = 0; r < radix; ++r) values[r] = {values[r].re * scale, values[r].im * scale};
      }
      if (exchange) {
#pragma GCC unroll 8
        for (int64_t r = 0; r < radix; ++r) std::swap(values[r].re, values[r].im);
      }
    }
  };
  // Multiplies results by roots stored in planes.
  struct Rooted {
    C* z;
    const R *re, *im;
    int64_t step;
    CAPIBARA_FFT_INLINE void write(int64_t e, const C& value) const {
      const V c = Own::read(re + e * step), s = Own::read(im + e * step);
      z[e] = {value.re * c - value.im * s, value.re * s + value.im * c};
    }
    CAPIBARA_FFT_INLINE void adjust(C*, int64_t) const {}
  };

  // ---- steps -------------------------------------------------------------------------------------------------------

  // `blocks` transforms of radix * inner elements each, in place.
  template <int radix>
  static CAPIBARA_FFT_INLINE void step(int64_t blocks, int64_t inner, const R* roots, C* z) {
    for (int64_t k = 0; k < blocks; ++k) {
      for (int64_t i = 0; i < inner; ++i) {
        C* at = z + i + inner * radix * k;
        C t[radix], u[radix];
#pragma GCC unroll 8
        for (int r = 0; r < radix; ++r) t[r] = at[inner * r];
        Own::template butterfly<radix>(t, u);
        const R* w = roots + 2 * (radix - 1) * i;
        at[0] = u[0];
        if (i == 0) {
#pragma GCC unroll 8
          for (int q = 1; q < radix; ++q) at[inner * q] = u[q];
        } else {
#pragma GCC unroll 8
          for (int q = 1; q < radix; ++q) at[inner * q] = times(u[q], w[2 * q - 2], w[2 * q - 1]);
        }
      }
    }
  }

  // The last step: `bases` has the index of each block's first result; its results are `apart` elements apart.
  template <int radix, class Sink>
  static CAPIBARA_FFT_INLINE void last_step(int64_t blocks, const C* z, const int32_t* bases, int64_t apart,
                                            const Sink& sink) {
    for (int64_t k = 0; k < blocks; ++k) {
      C t[radix], u[radix];
#pragma GCC unroll 8
      for (int r = 0; r < radix; ++r) t[r] = z[radix * k + r];
      Own::template butterfly<radix>(t, u);
      sink.adjust(u, radix);
#pragma GCC unroll 8
      for (int q = 0; q < radix; ++q) sink.write(bases[k] + apart * q, u[q]);
    }
  }

  // Any odd radix: sums and differences of opposite terms first. `z` is read with the stride `inner`.
  static constexpr int max_half = 24;
  static CAPIBARA_FFT_INLINE void odd_butterfly(int64_t radix, const R* circle, const C* z, int64_t inner, C* u) {
    const int64_t half = (radix - 1) / 2;
    C sums[max_half], differences[max_half];
    const C middle = z[0];
    C total = middle;
    for (int64_t r = 1; r <= half; ++r) {
      sums[r - 1] = plus(z[inner * r], z[inner * (radix - r)]);
      differences[r - 1] = minus(z[inner * r], z[inner * (radix - r)]);
      total = plus(total, sums[r - 1]);
    }
    u[0] = total;
    for (int64_t q = 1; q <= half; ++q) {
      C even = middle, odd{};
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
      u[q] = plus(even, odd);
      u[radix - q] = minus(even, odd);
    }
  }
  static CAPIBARA_FFT_INLINE void odd_step(const Stage& stage, int64_t blocks, const R* roots, C* z) {
    const int64_t inner = stage.inner, radix = stage.radix;
    C u[2 * max_half + 1];
    for (int64_t k = 0; k < blocks; ++k) {
      for (int64_t i = 0; i < inner; ++i) {
        C* at = z + i + inner * radix * k;
        odd_butterfly(radix, roots + 2 * (radix - 1) * inner, at, inner, u);
        const R* w = roots + 2 * (radix - 1) * i;
        at[0] = u[0];
        for (int64_t q = 1; q < radix; ++q) at[inner * q] = times(u[q], w[2 * q - 2], w[2 * q - 1]);
      }
    }
  }

  static CAPIBARA_FFT_INLINE void stage_in_place(const Stage& stage, int64_t blocks, const R* roots, C* z) {
    switch (stage.radix) {
      case 2:
        return step<2>(blocks, stage.inner, roots, z);
      case 3:
        return step<3>(blocks, stage.inner, roots, z);
      case 4:
        return step<4>(blocks, stage.inner, roots, z);
      case 5:
        return step<5>(blocks, stage.inner, roots, z);
      case 7:
        return step<7>(blocks, stage.inner, roots, z);
      case 8:
        return step<8>(blocks, stage.inner, roots, z);
      default:
        return odd_step(stage, blocks, roots, z);
    }
  }
  template <class Sink>
  static CAPIBARA_FFT_INLINE void last_stage(const Stage& stage, int64_t blocks, const R* roots, const C* z,
                                             const int32_t* bases, const Sink& sink) {
    switch (stage.radix) {
      case 2:
        return last_step<2>(blocks, z, bases, stage.outer, sink);
      case 3:
        return last_step<3>(blocks, z, bases, stage.outer, sink);
      case 4:
        return last_step<4>(blocks, z, bases, stage.outer, sink);
      case 5:
        return last_step<5>(blocks, z, bases, stage.outer, sink);
      case 7:
        return last_step<7>(blocks, z, bases, stage.outer, sink);
      case 8:
        return last_step<8>(blocks, z, bases, stage.outer, sink);
      default:
        C u[2 * max_half + 1];
        for (int64_t k = 0; k < blocks; ++k) {
          odd_butterfly(stage.radix, roots + 2 * (stage.radix - 1), z + stage.radix * k, 1, u);
          sink.adjust(u, stage.radix);
          for (int64_t q = 0; q < stage.radix; ++q) sink.write(bases[k] + stage.outer * q, u[q]);
        }
    }
  }

  // Steps in place in `a`; results go to `columns` or `rooted`, whichever is not null, else to `b`.
  static CAPIBARA_FFT_INLINE void steps(const Plan<R>& plan, C* a, C* b, const Columns* columns, const Rooted* rooted) {
    if (plan.stages.empty()) {
      b[0] = a[0];
      return;
    }
    const Stage* stages = plan.stages.data();
    const R* roots = plan.roots.data();
    const std::size_t last = plan.stages.size() - 1;
    // Blocks of transforms that fit the L1 cache go through all their steps before the next block.
    constexpr int64_t max_block = (16 << 10) / static_cast<int64_t>(sizeof(C));
    std::size_t split = 0;
    while (split < last && plan.length / stages[split].outer > max_block) ++split;
    const int64_t blocks = stages[split].outer, length = plan.length / blocks;
    // Block -1: the steps over all elements that precede those of blocks.
    for (int64_t block = split > 0 ? -1 : 0; block < blocks; ++block) {
      const bool all = block < 0;
      C* z = all ? a : a + block * length;
      for (std::size_t s = all ? 0 : split; s < (all ? split : last); ++s)
        stage_in_place(stages[s], all ? stages[s].outer : stages[s].outer / blocks, roots + stages[s].roots, z);
      if (all) continue;
      const Stage& stage = stages[last];
      const int64_t within = stage.outer / blocks;
      const int32_t* bases = plan.bases.data() + block * within;
      if (columns)
        last_stage(stage, within, roots + stage.roots, z, bases, *columns);
      else if (rooted)
        last_stage(stage, within, roots + stage.roots, z, bases, *rooted);
      else
        last_stage(stage, within, roots + stage.roots, z, bases, Work{b});
    }
  }

  static CAPIBARA_FFT_INLINE void multiply(C* z, const R* roots, int64_t length, bool conjugate_before,
                                           bool conjugate_after) {
    for (int64_t k = 0; k < length; ++k) {
      if (conjugate_before) z[k].im = -z[k].im;
      z[k] = times(z[k], roots[2 * k], roots[2 * k + 1]);
      if (conjugate_after) z[k].im = -z[k].im;
    }
  }

  // Transforms `a`, with `b` as scratch; returns which of them has the result.
  static CAPIBARA_FFT_INLINE C* forward(const Plan<R>& plan, C* a, C* b, const Columns* columns, const Rooted* rooted) {
    const bool convolution = plan.is_convolution();
    const Plan<R>& inner = convolution ? *plan.inner : plan;
    if (convolution) {
      multiply(a, plan.chirp.data(), plan.length, false, false);
      for (int64_t k = plan.length; k < inner.length; ++k) a[k] = C{};
    }
    for (int pass = 0;; ++pass) {
      steps(inner, a, b, columns, rooted);
      if (!convolution) return b;
      std::swap(a, b);
      if (pass == 1) break;
      // The inverse transform is the forward transform of the conjugate.
      multiply(a, plan.kernel.data(), inner.length, false, true);
    }
    multiply(a, plan.chirp.data(), plan.length, true, false);
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

  // The reverse: the n pairs whose unscaled inverse is 2 n real numbers, times two.
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
    const bool direct = group.kind == Kind::complex && !plan.is_convolution() && !plan.stages.empty();
    const bool rooted = direct && group.real && !group.swap_out;
    // Out of order only if a vector of pairs fills whole cache lines.
    const bool columns =
        direct && !group.real && group.out.form == Form::columns && group.lanes == count && 2 * Bytes >= 64;
    const Columns columns_out = {group.out.data, group.out.step, group.swap_out, group.scale};
    const Rooted rooted_out = {b, group.real, group.imag, group.roots_step};
    C* result = forward(plan, a, b, columns ? &columns_out : nullptr, rooted ? &rooted_out : nullptr);
    if (columns) return;
    if (group.swap_out) exchange(result, n);
    if (group.kind == Kind::real_even) to_half_spectrum(plan, result);
    if (group.real && !rooted) {
      const Rooted in_place = {result, group.real, group.imag, group.roots_step};
      for (int64_t e = 0; e < n; ++e) in_place.write(e, result[e]);
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
CAPIBARA_TRANSFORM(avx2_transform, CAPIBARA_AVX2, 32)
CAPIBARA_TRANSFORM(avx512_transform, CAPIBARA_AVX512, 64)
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
