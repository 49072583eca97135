// Steps within one line: vectors of neighbouring elements, from pairs in memory to pairs in memory.
#include "backends/cpu/kernels/fft/fft_within.h"

#include "backends/cpu/kernels/fft/fft_butterflies.h"
#include "backends/cpu/kernels/targets.h"
#include "core/runtime/processor.h"

namespace capibara::cpu::fft {

namespace {

template <class R, int Bytes>
struct Within : Butterflies<R, Bytes> {
  using Own = Butterflies<R, Bytes>;
  using V = typename Own::V;
  using C = typename Own::C;
  using Own::count;
  using Own::minus;
  using Own::part;
  using Own::parts;
  using Own::plus;
  using Own::read;
  using Own::write;
  using Lanes = std::make_index_sequence<static_cast<std::size_t>(count)>;

  // ---- sources of elements, by vectors, and destinations of results, by elements -----------------------------------

  static CAPIBARA_FFT_INLINE void prefetch(const R* pair_of_vectors) {
    for (int byte = 0; byte < 2 * Bytes; byte += 64)
      __builtin_prefetch(reinterpret_cast<const char*>(pair_of_vectors) + byte);
  }

  struct Work {
    C* z;
    CAPIBARA_FFT_INLINE C operator()(int64_t block) const { return z[block]; }
  };
  struct Planes {
    R *re, *im;
    const R* ahead;
    CAPIBARA_FFT_INLINE C operator()(int64_t block) const {
      return {read(re + block * count), read(im + block * count)};
    }
    CAPIBARA_FFT_INLINE void operator()(int64_t element, const C& value) const {
      write(re + element, value.re);
      write(im + element, value.im);
      prefetch(ahead + 2 * element);
    }
  };
  // The inverse is the transform of pairs with real and imaginary parts exchanged, before and after.
  template <bool exchange>
  struct PairsIn {
    const R* data;
    CAPIBARA_FFT_INLINE C operator()(int64_t block) const {
      const R* at = data + 2 * block * count;
      C value;
      if constexpr (exchange)
        Own::unzip(read(at), read(at + count), value.im, value.re);
      else
        Own::unzip(read(at), read(at + count), value.re, value.im);
      return value;
    }
  };
  template <bool exchange>
  struct PairsOut {
    R* data;
    R scale;
    CAPIBARA_FFT_INLINE void operator()(int64_t element, const C& value) const {
      V low, high;
      if constexpr (exchange)
        Own::zip(value.im * scale, value.re * scale, low, high);
      else
        Own::zip(value.re, value.im, low, high);
      write(data + 2 * element, low);
      write(data + 2 * element + count, high);
    }
  };

  // Results of several lines; a vector has `each` adjacent elements of one line.
  template <bool exchange>
  struct LinesOut {
    R* data;
    R scale;
    int64_t length, each;
    CAPIBARA_FFT_INLINE void operator()(int64_t element, const C& value) const {
      V low, high;
      if constexpr (exchange)
        Own::zip(value.im * scale, value.re * scale, low, high);
      else
        Own::zip(value.re, value.im, low, high);
      R* at = data + 2 * element;
      if (each == count / 2) {
        write(at, low);
        write(at + 2 * length, high);
      } else if constexpr (count >= 8) {
        write_halves(at, low, std::make_index_sequence<static_cast<std::size_t>(count / 2)>());
        write_halves(at + 4 * length, high, std::make_index_sequence<static_cast<std::size_t>(count / 2)>());
      }
    }
    template <std::size_t... i>
    CAPIBARA_FFT_INLINE void write_halves(R* at, const V& value, std::index_sequence<i...>) const {
      typedef R Half __attribute__((vector_size(Bytes / 2), aligned(alignof(R)), may_alias));
      *reinterpret_cast<Half*>(at) = __builtin_shufflevector(value, value, i...);
      *reinterpret_cast<Half*>(at + 2 * length) = __builtin_shufflevector(value, value, (count / 2 + i)...);
    }
  };

  // ---- steps -------------------------------------------------------------------------------------------------------

  static CAPIBARA_FFT_INLINE C times(const C& a, const V& re, const V& im) {
    return {a.re * re - a.im * im, a.re * im + a.im * re};
  }

  template <int radix, class Source>
  static CAPIBARA_FFT_INLINE void step(const WithinStage& stage, const R* roots, const Source& source, C* z) {
    const int64_t blocks = stage.blocks;
    for (int64_t k = 0; k < stage.outer; ++k) {
      for (int64_t i = 0; i < blocks; ++i) {
        const int64_t first = k * radix * blocks + i;
        C t[radix], u[radix];
#pragma GCC unroll 16
        for (int r = 0; r < radix; ++r) t[r] = source(first + r * blocks);
        Own::template butterfly<radix>(t, u);
        const R* w = roots + i * (2 * (radix - 1) * count);
        z[first] = u[0];
#pragma GCC unroll 16
        for (int q = 1; q < radix; ++q)
          z[first + q * blocks] = times(u[q], read(w + (2 * q - 2) * count), read(w + (2 * q - 1) * count));
      }
    }
  }

  template <class Source>
  static CAPIBARA_FFT_INLINE void one_stage(const WithinPlan<R>& plan, const WithinStage& stage, const Source& source,
                                            C* z) {
    const R* roots = plan.roots_at(stage.roots);
    switch (stage.radix) {
      case 2:
        return step<2>(stage, roots, source, z);
      case 3:
        return step<3>(stage, roots, source, z);
      case 4:
        return step<4>(stage, roots, source, z);
      case 5:
        return step<5>(stage, roots, source, z);
      case 7:
        return step<7>(stage, roots, source, z);
      default:
        return step<8>(stage, roots, source, z);
    }
  }

  // Transforms the elements of each vector, as many vectors at once. Element part * p + j is in part p: transforms over
  // p of vectors with parts exchanged, roots, then transforms over j of vectors transposed within their parts.
  template <class Sink>
  static CAPIBARA_FFT_INLINE void last_stage(const WithinPlan<R>& plan, const C* z, const Sink& sink) {
    const int64_t apart = plan.length / count;
    const int32_t* order = plan.order.data();
    V roots_re[parts], roots_im[parts];
#pragma GCC unroll 4
    for (int q = 1; q < parts; ++q) {
      roots_re[q] = read(plan.lane_roots() + (2 * q - 2) * count);
      roots_im[q] = read(plan.lane_roots() + (2 * q - 1) * count);
    }
    for (int64_t k = 0; k < plan.together * apart; k += count) {
      C between[parts][part];
#pragma GCC unroll 1
      for (int g = 0; g < part; ++g) {
        V re[parts], im[parts];
#pragma GCC unroll 4
        for (int c = 0; c < parts; ++c) {
          const C& from = z[order[k + part * c + g]];
          re[c] = from.re;
          im[c] = from.im;
        }
        if constexpr (parts == 1) {
          between[0][g] = {re[0], im[0]};
        } else {
          Own::turn_parts(re);
          Own::turn_parts(im);
          C t[parts], u[parts];
#pragma GCC unroll 4
          for (int p = 0; p < parts; ++p) t[p] = {re[p], im[p]};
          Own::template butterfly<parts>(t, u);
          between[0][g] = u[0];
#pragma GCC unroll 4
          for (int q = 1; q < parts; ++q) between[q][g] = times(u[q], roots_re[q], roots_im[q]);
        }
      }
#pragma GCC unroll 1
      for (int q = 0; q < parts; ++q) {
        V re[part], im[part];
#pragma GCC unroll 4
        for (int g = 0; g < part; ++g) {
          re[g] = between[q][g].re;
          im[g] = between[q][g].im;
        }
        Own::turn_within_parts(re);
        Own::turn_within_parts(im);
        C t[part], u[part];
#pragma GCC unroll 4
        for (int j = 0; j < part; ++j) t[j] = {re[j], im[j]};
        Own::template butterfly<part>(t, u);
#pragma GCC unroll 4
        for (int p = 0; p < part; ++p) sink(k + apart * (q + parts * p), u[p]);
      }
    }
  }

  template <class Source, class Sink>
  static CAPIBARA_FFT_INLINE void steps(const WithinPlan<R>& plan, const Source& source, C* z, const Sink& sink) {
    one_stage(plan, plan.stages.front(), source, z);
    for (std::size_t s = 1; s < plan.stages.size(); ++s) one_stage(plan, plan.stages[s], Work{z}, z);
    last_stage(plan, z, sink);
  }

  // ---- real lines --------------------------------------------------------------------------------------------------

  template <std::size_t... i>
  static CAPIBARA_FFT_INLINE void write_reversed(R* at, const C& value, std::index_sequence<i...>) {
    write(at, __builtin_shufflevector(value.re, value.im, (count - 1 - i / 2 + i % 2 * count)...));
    write(at + count, __builtin_shufflevector(value.re, value.im, (count / 2 - 1 - i / 2 + i % 2 * count)...));
  }
  template <std::size_t... i>
  static CAPIBARA_FFT_INLINE C read_reversed(const R* at, std::index_sequence<i...>) {
    const V low = read(at), high = read(at + count);
    return {__builtin_shufflevector(low, high, (2 * (count - 1 - i))...),
            __builtin_shufflevector(low, high, (2 * (count - 1 - i) + 1)...)};
  }

  // The spectrum of 2 n real numbers from that of their n pairs; n + 1 elements.
  static CAPIBARA_FFT_INLINE void to_half_spectrum(const WithinPlan<R>& plan, const Planes& z, R* out) {
    constexpr R half = static_cast<R>(0.5);
    const int64_t n = plan.length;
    const R *roots_re = plan.half_roots(), *roots_im = roots_re + n / 2;
    z.re[n] = z.re[0];
    z.im[n] = z.im[0];
    for (int64_t k = 0; k < n / 2; k += count) {
      const V a_re = read(z.re + k), a_im = read(z.im + k);
      const int64_t mirror = n - k - count + 1;
      const V b_re = Own::reverse(read(z.re + mirror)), b_im = Own::reverse(read(z.im + mirror));
      const C sum = {a_re + b_re, a_im - b_im};
      const C turned = times(C{a_im + b_im, b_re - a_re}, read(roots_re + k), read(roots_im + k));
      V low, high;
      Own::zip(sum.re * half + turned.re, sum.im * half + turned.im, low, high);
      write(out + 2 * k, low);
      write(out + 2 * k + count, high);
      write_reversed(out + 2 * mirror, C{sum.re * half - turned.re, turned.im - sum.im * half}, Lanes());
    }
    out[0] = z.re[0] + z.im[0];
    out[2 * n] = z.re[0] - z.im[0];
    out[1] = out[2 * n + 1] = 0;
    out[n] = z.re[n / 2];
    out[n + 1] = -z.im[n / 2];
  }

  // The reverse: the n pairs whose unscaled inverse is 2 n real numbers, times two.
  static CAPIBARA_FFT_INLINE void from_half_spectrum(const WithinPlan<R>& plan, const R* in, const Planes& z) {
    const int64_t n = plan.length;
    const R *roots_re = plan.half_roots(), *roots_im = roots_re + n / 2;
    for (int64_t k = 0; k < n / 2; k += count) {
      C a;
      Own::unzip(read(in + 2 * k), read(in + 2 * k + count), a.re, a.im);
      const int64_t mirror = n - k - count + 1;
      const C b = read_reversed(in + 2 * mirror, Lanes());
      const C sum = {a.re + b.re, a.im - b.im};
      const C turned = times(C{a.re - b.re, a.im + b.im}, read(roots_re + k), -read(roots_im + k));
      write(z.re + k, sum.re - turned.im * 2);
      write(z.im + k, sum.im + turned.re * 2);
      write(z.re + mirror, Own::reverse(sum.re + turned.im * 2));
      write(z.im + mirror, Own::reverse(turned.re * 2 - sum.im));
    }
    z.re[0] = in[0] + in[2 * n];
    z.im[0] = in[0] - in[2 * n];
    z.re[n / 2] = 2 * in[n];
    z.im[n / 2] = -2 * in[n + 1];
  }

  static CAPIBARA_FFT_INLINE void transform(const WithinPlan<R>& plan, const Lines<R>& lines) {
    const int64_t n = plan.length;
    C* z = reinterpret_cast<C*>(lines.work);
    for (int64_t i = 0; i < lines.count; i += plan.together) {
      const R* in = lines.in + i * lines.in_step;
      R* out = lines.out + i * lines.out_step;
      const Planes planes = {lines.work + 2 * n, lines.work + 3 * n + 2 * count, out};
      if (lines.kind == Kind::real_even) {
        steps(plan, PairsIn<false>{in}, z, planes);
        to_half_spectrum(plan, planes, out);
      } else if (lines.kind == Kind::to_real_even) {
        from_half_spectrum(plan, in, planes);
        steps(plan, Planes{planes.im, planes.re, nullptr}, z, PairsOut<true>{out, lines.scale});
      } else if (plan.together > 1) {
        if (lines.inverse)
          steps(plan, PairsIn<true>{in}, z, LinesOut<true>{out, lines.scale, n, n / count});
        else
          steps(plan, PairsIn<false>{in}, z, LinesOut<false>{out, 1, n, n / count});
      } else if (lines.inverse) {
        steps(plan, PairsIn<true>{in}, z, PairsOut<true>{out, lines.scale});
      } else {
        steps(plan, PairsIn<false>{in}, z, PairsOut<false>{out, 1});
      }
    }
  }
};

#define CAPIBARA_WITHIN(NAME, TARGET, BYTES)                           \
  template <class R>                                                   \
  TARGET void NAME(const WithinPlan<R>& plan, const Lines<R>& lines) { \
    Within<R, BYTES>::transform(plan, lines);                          \
  }
CAPIBARA_WITHIN(plain_within, , 16)
#if defined(__x86_64__)
CAPIBARA_WITHIN(avx2_within, CAPIBARA_AVX2, 32)
CAPIBARA_WITHIN(avx512_within, CAPIBARA_AVX512, 64)
#endif

}  // namespace

template <class R>
void transform_within(const WithinPlan<R>& plan, const Lines<R>& lines) {
#if defined(__x86_64__)
  if (has_avx512()) return avx512_within<R>(plan, lines);
  if (has_avx2()) return avx2_within<R>(plan, lines);
#endif
  plain_within<R>(plan, lines);
}

template void transform_within<float>(const WithinPlan<float>&, const Lines<float>&);
template void transform_within<double>(const WithinPlan<double>&, const Lines<double>&);

}  // namespace capibara::cpu::fft
