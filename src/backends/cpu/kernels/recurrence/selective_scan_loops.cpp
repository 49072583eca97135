// The loops of the selective scan: each operation for a few vectors of channels, step by step, with the states in the
// cache.
#include "backends/cpu/kernels/recurrence/selective_scan_loops.h"

#include <algorithm>

#include "backends/cpu/kernels/recurrence/recurrence_lanes.h"
#include "backends/cpu/kernels/targets.h"
#include "core/runtime/processor.h"

namespace capibara::cpu {

namespace {

// ---- vectors of channels through one chunk -----------------------------------------------------------------------

template <class C, int Bytes, int K, bool Keep>
CAPIBARA_INLINE void run_forward(const ScanPass<C>& p) {
  using L = SumLanes<C, Bytes>;
  using V = typename L::V;
  constexpr int width = K * L::count;
  const C* const A = p.A;
  C *const h = p.h, *decays = p.decays, *before = p.before;
  const int64_t states = p.states;
  for (int64_t t = 0; t < p.steps; ++t) {
    if (p.reset && p.reset[t]) std::fill_n(h, states * width, C(0));
    V step[K], driven[K], y[K];
#pragma GCC unroll 4
    for (int k = 0; k < K; ++k) {
      step[k] = L::load(p.step + t * width + k * L::count);
      driven[k] = L::load(p.driven + t * width + k * L::count);
      y[k] = V{};
    }
    const C *B = p.B + t * states, *out = p.C_ + t * states;
    for (int64_t n = 0; n < states; ++n) {
      const C b = B[n], c = out[n];
      V decay[K];
#pragma GCC unroll 4
      for (int k = 0; k < K; ++k) decay[k] = step[k] * L::load(A + n * width + k * L::count);
      L::exp2(decay);
#pragma GCC unroll 4
      for (int k = 0; k < K; ++k) {
        const int64_t at = n * width + k * L::count;
        const V old = L::load(h + at), next = decay[k] * old + driven[k] * b;
        if constexpr (Keep) {
          L::store(decays + at, decay[k]);
          L::store(before + at, old);
        }
        L::store(h + at, next);
        y[k] += next * c;
      }
    }
    decays += states * width;
    before += states * width;
#pragma GCC unroll 4
    for (int k = 0; k < K; ++k) L::store(p.y + t * width + k * L::count, y[k]);
  }
}

template <class C, int Bytes, int K>
CAPIBARA_INLINE void run_backward(const ScanBack<C>& p) {
  using L = SumLanes<C, Bytes>;
  using V = typename L::V;
  constexpr int width = K * L::count;
  const ScanPass<C>& f = p.forward;
  const C *const A = p.A, *decays = f.decays, *before = f.before;
  C *const gradient = p.g, *const dA = p.dA;
  const int64_t states = f.states;
  for (int64_t t = f.steps - 1; t >= 0; --t) {
    V step[K], driven[K], dy[K], from_B[K], from_A[K];
#pragma GCC unroll 4
    for (int k = 0; k < K; ++k) {
      const int64_t at = t * width + k * L::count;
      step[k] = L::load(f.step + at);
      driven[k] = L::load(f.driven + at);
      dy[k] = L::load(p.dy + at);
      from_B[k] = from_A[k] = V{};
    }
    const C *B = f.B + t * states, *out = f.C_ + t * states;
    C *const dB = p.dB + t * states * L::count, *const dC = p.dC + t * states * L::count;
    for (int64_t n = 0; n < states; ++n) {
      const C b = B[n], c = out[n];
      V sum_B = L::load(dB + n * L::count), sum_C = L::load(dC + n * L::count);
#pragma GCC unroll 4
      for (int k = 0; k < K; ++k) {
        const int64_t at = n * width + k * L::count, kept = t * states * width + at;
        const V decay = L::load(decays + kept), old = L::load(before + kept);
        const V g = L::load(gradient + at) + dy[k] * c, faded = g * decay, kept_by_decay = faded * old;
        const V state = decay * old + driven[k] * b;
        sum_B += g * driven[k];
        sum_C += dy[k] * state;
        from_B[k] += g * b;
        from_A[k] += kept_by_decay * L::load(A + at);
        L::store(dA + at, L::load(dA + at) + kept_by_decay * step[k]);
        L::store(gradient + at, faded);
      }
      L::store(dB + n * L::count, sum_B);
      L::store(dC + n * L::count, sum_C);
    }
    if (f.reset && f.reset[t]) std::fill_n(gradient, states * width, C(0));
#pragma GCC unroll 4
    for (int k = 0; k < K; ++k) {
      const int64_t at = t * width + k * L::count;
      L::store(p.du + at, step[k] * from_B[k]);
      L::store(p.dstep + at, L::load(p.u + at) * from_B[k] + from_A[k]);
    }
  }
}

// ---- steps and gates ---------------------------------------------------------------------------------------------

// Computes the steps of a chunk from delta, [steps][width] in place; if requested, also the derivative of the softplus.
template <class C, int Bytes, int K>
CAPIBARA_INLINE void make_steps(C* step, C* derivative, const C* bias, int64_t steps, bool has_softplus) {
  using L = SumLanes<C, Bytes>;
  for (int64_t t = 0; t < steps; ++t, step += K * L::count) {
    typename L::V raw[K], derivatives[K];
#pragma GCC unroll 4
    for (int k = 0; k < K; ++k) derivatives[k] = raw[k] = L::load(step + k * L::count) + L::load(bias + k * L::count);
    if (has_softplus) L::softplus(raw);
    for (int k = 0; k < K; ++k) L::store(step + k * L::count, raw[k]);
    if (!derivative) continue;
    if (has_softplus) L::sigmoid(derivatives);
    for (int k = 0; k < K; ++k)
      L::store(derivative + (t * K + k) * L::count, has_softplus ? derivatives[k] : L::all(1));
  }
}

template <class C, int Bytes>
CAPIBARA_INLINE void multiply(const C* x, const C* y, C* out, int64_t count) {
  using L = SumLanes<C, Bytes>;
  for (int64_t i = 0; i < count; i += L::count) L::store(out + i, L::load(x + i) * L::load(y + i));
}

// y = (y + D * u) * silu(z); no gate if z is null.
template <class C, int Bytes, int K>
CAPIBARA_INLINE void finish(C* y, const C* u, const C* D, const C* z, int64_t steps) {
  using L = SumLanes<C, Bytes>;
  for (int64_t at = 0; at < steps * K * L::count; at += K * L::count) {
    typename L::V value[K], gate[K];
#pragma GCC unroll 4
    for (int k = 0; k < K; ++k)
      value[k] = L::load(y + at + k * L::count) + L::load(D + k * L::count) * L::load(u + at + k * L::count);
    if (z) {
      for (int k = 0; k < K; ++k) gate[k] = L::load(z + at + k * L::count);
      L::sigmoid(gate);
      for (int k = 0; k < K; ++k) value[k] = value[k] * (L::load(z + at + k * L::count) * gate[k]);
    }
    for (int k = 0; k < K; ++k) L::store(y + at + k * L::count, value[k]);
  }
}

// The gate's backward pass: z becomes its gradient, dy that of the gated sum; y is the output without the
// skip.
template <class C, int Bytes, int K>
CAPIBARA_INLINE void open_gate(C* dy, C* z, const C* y, const C* u, const C* D, int64_t steps) {
  using L = SumLanes<C, Bytes>;
  for (int64_t at = 0; at < steps * K * L::count; at += K * L::count) {
    typename L::V sigmoid[K];
    for (int k = 0; k < K; ++k) sigmoid[k] = L::load(z + at + k * L::count);
    L::sigmoid(sigmoid);
#pragma GCC unroll 4
    for (int k = 0; k < K; ++k) {
      const int64_t own = at + k * L::count;
      const typename L::V gate = L::load(z + own), cotangent = L::load(dy + own);
      const typename L::V value = L::load(y + own) + L::load(D + k * L::count) * L::load(u + own);
      L::store(z + own, cotangent * value * (sigmoid[k] * (C(1) + gate * (C(1) - sigmoid[k]))));
      L::store(dy + own, cotangent * (gate * sigmoid[k]));
    }
  }
}

// du += D * dy and the sums over steps of dD and dbias; dstep becomes the gradient of delta.
template <class C, int Bytes>
CAPIBARA_INLINE void finish_gradients(C* du, C* dstep, const C* dy, const C* u, const C* derivative, const C* D, C* dD,
                                      C* dbias, int64_t steps, int64_t width) {
  using L = SumLanes<C, Bytes>;
  for (int64_t i = 0; i < width; i += L::count) {
    typename L::V sum_D = L::load(dD + i), sum_bias = L::load(dbias + i);
    for (int64_t t = steps - 1; t >= 0; --t) {
      const int64_t at = t * width + i;
      const typename L::V grad = L::load(dy + at), delta = L::load(dstep + at) * L::load(derivative + at);
      L::store(du + at, L::load(du + at) + L::load(D + i) * grad);
      L::store(dstep + at, delta);
      sum_D += grad * L::load(u + at);
      sum_bias += delta;
    }
    L::store(dD + i, sum_D);
    L::store(dbias + i, sum_bias);
  }
}

// ---- the widest vectors of this processor ------------------------------------------------------------------------

#define CAPIBARA_SCAN(NAME, TARGET, BYTES, FORWARD, BACKWARD)                                                       \
  template <class C>                                                                                                \
  struct NAME {                                                                                                     \
    TARGET static void forward(const ScanPass<C>& p) { run_forward<C, BYTES, FORWARD, false>(p); }                  \
    TARGET static void keep(const ScanPass<C>& p) { run_forward<C, BYTES, BACKWARD, true>(p); }                     \
    TARGET static void backward(const ScanBack<C>& p) { run_backward<C, BYTES, BACKWARD>(p); }                      \
    template <int K>                                                                                                \
    TARGET static void steps(C* s, C* d, const C* b, int64_t n, bool p) {                                           \
      make_steps<C, BYTES, K>(s, d, b, n, p);                                                                       \
    }                                                                                                               \
    TARGET static void times(const C* x, const C* y, C* out, int64_t n) { multiply<C, BYTES>(x, y, out, n); }       \
    TARGET static void end(C* y, const C* u, const C* d, const C* z, int64_t n) {                                   \
      finish<C, BYTES, FORWARD>(y, u, d, z, n);                                                                     \
    }                                                                                                               \
    TARGET static void gate(C* dy, C* z, const C* y, const C* u, const C* d, int64_t n) {                           \
      open_gate<C, BYTES, BACKWARD>(dy, z, y, u, d, n);                                                             \
    }                                                                                                               \
    TARGET static void ends(C* du, C* ds, const C* dy, const C* u, const C* s, const C* d, C* dd, C* db, int64_t n, \
                            int64_t w) {                                                                            \
      finish_gradients<C, BYTES>(du, ds, dy, u, s, d, dd, db, n, w);                                                \
    }                                                                                                               \
    static ScanCode<C> code() {                                                                                     \
      constexpr int lanes = SumLanes<C, BYTES>::count;                                                              \
      return {FORWARD * lanes,                                                                                      \
              BACKWARD * lanes,                                                                                     \
              lanes,                                                                                                \
              forward,                                                                                              \
              keep,                                                                                                 \
              backward,                                                                                             \
              {steps<FORWARD>, steps<BACKWARD>},                                                                    \
              times,                                                                                                \
              end,                                                                                                  \
              gate,                                                                                                 \
              ends};                                                                                                \
    }                                                                                                               \
  };
CAPIBARA_SCAN(PlainScan, , 16, 4, 2)
#if defined(__x86_64__)
CAPIBARA_SCAN(Avx2Scan, CAPIBARA_AVX2, 32, 2, 2)
CAPIBARA_SCAN(Avx512Scan, CAPIBARA_AVX512, 64, 2, 1)
#endif

}  // namespace

template <class C>
ScanCode<C> scan_code() {
#if defined(__x86_64__)
  if (has_avx512()) return Avx512Scan<C>::code();
  if (has_avx2()) return Avx2Scan<C>::code();
#endif
  return PlainScan<C>::code();
}

template ScanCode<float> scan_code<float>();
template ScanCode<double> scan_code<double>();

}  // namespace capibara::cpu
