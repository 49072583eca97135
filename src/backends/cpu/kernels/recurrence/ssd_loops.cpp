// The loops of the state space dual: exponentials of differences, a few vectors at a time so that they overlap.
#include "backends/cpu/kernels/recurrence/ssd_loops.h"

#include <algorithm>
#include <type_traits>

#include "backends/cpu/kernels/recurrence/recurrence_lanes.h"
#include "backends/cpu/kernels/targets.h"
#include "core/runtime/processor.h"

namespace capibara::cpu {

namespace {

// Vectors of exponentials computed in one iteration.
constexpr int at_once = 4;

template <class C, int Bytes>
struct DualLoops {
  using L = SumLanes<C, Bytes>;
  using V = typename L::V;

  // Indices of the targets: start, start + 1, ...
  static CAPIBARA_INLINE V counted(int64_t start) {
    V value;
    for (int i = 0; i < L::count; ++i) value[i] = static_cast<C>(start + i);
    return value;
  }

  // Sources [begin, begin + Sources), K vectors of targets. Stores past a row of `height` are overwritten by the next.
  template <int K, int Sources, bool Masked>
  static CAPIBARA_INLINE void weigh_some(const DualPanel<C>& p, const V (&target)[K], int64_t begin) {
    V decay[Sources * K];
#pragma GCC unroll 4
    for (int i = 0; i < Sources * K; ++i) decay[i] = target[i % K] - p.sums[begin + i / K];
    L::exp2(decay);
#pragma GCC unroll 4
    for (int i = 0; i < Sources * K; ++i) {
      const int64_t source = begin + i / K, at = p.target + i % K * L::count;
      V weight = decay[i] * L::load(p.scores + source * p.stride + at);
      if constexpr (Masked) {
        const V own = L::all(static_cast<C>(source));
        weight = counted(at) >= own ? weight : V{};
        if (p.first) weight = L::load(p.first + at) <= own ? weight : V{};
      }
      L::store(p.out + source * p.height + i % K * L::count, weight);
    }
  }

  template <int K>
  static CAPIBARA_INLINE void weigh_vectors(const DualPanel<C>& p) {
    constexpr int sources = at_once / K;
    V target[K];
    for (int k = 0; k < K; ++k) target[k] = L::load(p.sums + p.target + k * L::count);
    int64_t s = 0;
    const int64_t unmasked = p.first ? 0 : std::min(p.target, p.sources);
    for (; s + sources <= unmasked; s += sources) weigh_some<K, sources, false>(p, target, s);
    for (; s < p.sources; ++s) weigh_some<K, 1, true>(p, target, s);
  }

  static CAPIBARA_INLINE void weigh(const DualPanel<C>& p) {
    const int64_t vectors = (p.height + L::count - 1) / L::count;
    if (vectors == 1)
      weigh_vectors<1>(p);
    else if (vectors == 2)
      weigh_vectors<2>(p);
    else
      weigh_vectors<4>(p);
  }

  // Calls change(vectors of values, offset) for `at_once` vectors, or as many as the arrays are padded to.
  template <class Change>
  static CAPIBARA_INLINE void each(C* values, int64_t count, Change&& change) {
    constexpr int some = std::min<int>(at_once, dual_vector / L::count);
    for (int64_t at = 0; at < count; at += some * L::count) {
      V own[some];
      for (int k = 0; k < some; ++k) own[k] = L::load(values + at + k * L::count);
      change(own, at);
      for (int k = 0; k < some; ++k) L::store(values + at + k * L::count, own[k]);
    }
  }
  static CAPIBARA_INLINE void make_steps(C* step, C bias, int64_t count, bool has_softplus) {
    each(
        step, count, [&](auto& own, int64_t) __attribute__((always_inline)) {
          for (V& one : own) one = one + bias;
          if (has_softplus) L::softplus(own);
        });
  }
  static CAPIBARA_INLINE void exponentials(C* values, int64_t count) {
    each(
        values, count, [](auto& own, int64_t) __attribute__((always_inline)) { L::exp2(own); });
  }
  static CAPIBARA_INLINE void gate(C* y, const C* z, int64_t count) {
    each(
        y, count, [&](auto& own, int64_t at) __attribute__((always_inline)) {
          constexpr int some = sizeof(own) / sizeof(V);
          V share[some];
          for (int k = 0; k < some; ++k) share[k] = L::load(z + at + k * L::count);
          L::sigmoid(share);
          for (int k = 0; k < some; ++k) own[k] = own[k] * (L::load(z + at + k * L::count) * share[k]);
        });
  }
  // Scales rows of whole vectors.
  static CAPIBARA_INLINE void scale(C* rows, const C* factors, int64_t count, int64_t width) {
    for (int64_t q = 0; q < count; ++q) {
      const V factor = L::all(factors[q]);
      for (int64_t i = 0; i < width; i += L::count)
        L::store(rows + q * width + i, L::load(rows + q * width + i) * factor);
    }
  }

  // Calls one(number of vectors, as a constant) for panels of one to three vectors.
  template <class One>
  static CAPIBARA_INLINE void for_width(const DualColumns& c, One&& one) {
    if (c.width == 3 * L::count)
      one(std::integral_constant<int, 3>{});
    else if (c.width == 2 * L::count)
      one(std::integral_constant<int, 2>{});
    else
      one(std::integral_constant<int, 1>{});
  }

  // A few rows of x at a time: rows of steps are far apart in memory, rows of panels are close.
  static CAPIBARA_INLINE void drive(const DualDrive<C>& d, std::span<const DualColumns> panels) {
    constexpr int64_t strip = 8;
    for (int64_t q0 = 0; q0 < d.steps; q0 += strip) {
      const int64_t q1 = std::min(d.steps, q0 + strip);
      for (const DualColumns& c : panels) {
        const C *x = d.x + c.start - panels.front().start, *step = d.step, *decay = d.decay;
        C *driven = d.driven + c.start * d.panel_rows, *to_state = d.to_state + c.start * d.panel_rows;
        const int64_t stride = d.stride;
        for_width(
            c, [=](auto vectors) __attribute__((always_inline)) {
              constexpr int count = decltype(vectors)::value;
              for (int64_t q = q0; q < q1; ++q) {
                const V factor = L::all(step[q]), later = L::all(decay[q]);
#pragma GCC unroll 3
                for (int i = 0; i < count; ++i) {
                  const V value = L::load(x + q * stride + i * L::count) * factor;
                  L::store(driven + (q * count + i) * L::count, value);
                  L::store(to_state + (q * count + i) * L::count, value * later);
                }
              }
            });
      }
    }
  }

  static CAPIBARA_INLINE void pass_on(const DualState<C>& s, std::span<const DualColumns> panels) {
    constexpr int64_t strip = 8;
    const V factor = L::all(s.factor);
    for (int64_t n0 = 0; n0 < s.states; n0 += strip) {
      const int64_t n1 = std::min(s.states, n0 + strip), dim = s.dim;
      for (const DualColumns& c : panels) {
        C *state = s.state + c.start * s.panel_rows, *kept = s.kept ? s.kept + c.start : nullptr;
        if (kept && c.own < c.width) {
          for (int64_t n = n0; n < n1; ++n) std::copy_n(state + n * c.width, c.own, kept + n * dim);
          kept = nullptr;
        }
        for_width(
            c, [=](auto vectors) __attribute__((always_inline)) {
              constexpr int count = decltype(vectors)::value;
              for (int64_t n = n0; n < n1; ++n) {
#pragma GCC unroll 3
                for (int i = 0; i < count; ++i) {
                  C* from = state + (n * count + i) * L::count;
                  const V value = L::load(from);
                  if (kept) L::store(kept + n * dim + i * L::count, value);
                  L::store(from, value * factor);
                }
              }
            });
      }
    }
  }
};

// ---- the widest vectors of this processor ------------------------------------------------------------------------

#define CAPIBARA_DUAL(NAME, TARGET, BYTES)                                                                      \
  template <class C>                                                                                            \
  struct NAME {                                                                                                 \
    using Loops = DualLoops<C, BYTES>;                                                                          \
    TARGET static void weigh(const DualPanel<C>& p) { Loops::weigh(p); }                                        \
    TARGET static void steps(C* step, C bias, int64_t n, bool p) { Loops::make_steps(step, bias, n, p); }       \
    TARGET static void powers(C* values, int64_t n) { Loops::exponentials(values, n); }                         \
    TARGET static void gate(C* y, const C* z, int64_t n) { Loops::gate(y, z, n); }                              \
    TARGET static void scale(C* rows, const C* f, int64_t n, int64_t w) { Loops::scale(rows, f, n, w); }        \
    TARGET static void drive(const DualDrive<C>& d, std::span<const DualColumns> p) { Loops::drive(d, p); }     \
    TARGET static void pass_on(const DualState<C>& s, std::span<const DualColumns> p) { Loops::pass_on(s, p); } \
    static DualCode<C> code() { return {weigh, steps, powers, gate, scale, drive, pass_on}; }                   \
  };
CAPIBARA_DUAL(PlainDual, , 16)
#if defined(__x86_64__)
CAPIBARA_DUAL(Avx2Dual, CAPIBARA_AVX2, 32)
CAPIBARA_DUAL(Avx512Dual, CAPIBARA_AVX512, 64)
#endif

}  // namespace

template <class C>
DualCode<C> dual_code() {
#if defined(__x86_64__)
  if (has_avx512()) return Avx512Dual<C>::code();
  if (has_avx2()) return Avx2Dual<C>::code();
#endif
  return PlainDual<C>::code();
}

template DualCode<float> dual_code<float>();
template DualCode<double> dual_code<double>();

}  // namespace capibara::cpu
