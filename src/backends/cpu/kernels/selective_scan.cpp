// The selective scan of Mamba and its reverse derivative: vectors of channels go through a chunk of steps together.
//
// A task owns a block of channels of one batch element. Chunk by chunk it stages the steps of a few channels as
// [steps][channels], and runs them with the states in the cache: forward nothing but the output and one state for each
// chunk leaves it. Backward the states and decays of a chunk are computed again and kept while the gradients go through
// it in the other direction. Gradients of B and C are sums over channels: each block adds its own, the blocks are added
// in order, and blocks follow from the shape alone, so the number of threads changes nothing.
#include <algorithm>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/recurrence_lanes.h"
#include "backends/cpu/kernels/scratch.h"
#include "lax/math/denormals.h"
#include "runtime/thread_pool.h"

namespace capibara::cpu {

namespace {

template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

constexpr double log2_e = 1.4426950408889634;

struct Extents {
  int64_t batch, length, dim, states, chunk;
  bool has_softplus, gated, resets;

  int64_t chunks() const { return (length + chunk - 1) / chunk; }
  // Channels of a task: enough of them that a row of memory is worth a visit, few enough that there are tasks.
  int64_t block() const { return dim <= 64 ? 16 : dim <= 512 ? 64 : 128; }
  int64_t blocks() const { return (dim + block() - 1) / block(); }
};

// ---- vectors of channels through one chunk -----------------------------------------------------------------------

// `width` channels; arrays are [steps][width], [states][width], [steps][states][width].
template <class C>
struct Pass {
  int64_t steps, states;
  const C *step, *driven;      // step * u
  const C *B, *C_;             // [steps][states]
  const C* A;                  // times log2(e)
  const std::uint8_t* reset;   // [steps], or null
  C* h;                        // before the chunk, then after it
  C* y;                        // without skip and gate
  C *decays, *before;          // backward: kept; the states before each step
};

template <class C, int Bytes, int K, bool Keep>
CAPIBARA_INLINE void run_forward(const Pass<C>& p) {
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

// What goes backward through a chunk, after run_forward kept its decays and states.
template <class C>
struct Back {
  const Pass<C>& forward;
  const C *dy, *u;      // [steps][width]; dy behind the gate
  const C* A;           // [states][width], as it is
  C *g, *dA;            // [states][width]: gradient of the state after the chunk, then before it; added to
  C *du, *dstep;        // [steps][width]: without the skip
  C *dB, *dC;           // [steps][states][lanes]: added to
};

template <class C, int Bytes, int K>
CAPIBARA_INLINE void run_backward(const Back<C>& p) {
  using L = SumLanes<C, Bytes>;
  using V = typename L::V;
  constexpr int width = K * L::count;
  const Pass<C>& f = p.forward;
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

// The steps of a chunk from delta, [steps][width] in place; where asked for, the derivative of the softplus.
template <class C, int Bytes>
CAPIBARA_INLINE void make_steps(C* step, C* slope, const C* bias, int64_t steps, int64_t width, bool has_softplus) {
  using L = SumLanes<C, Bytes>;
  for (int64_t t = 0; t < steps; ++t) {
    for (int64_t i = 0; i < width; i += L::count) {
      const typename L::V raw = L::load(step + t * width + i) + L::load(bias + i);
      L::store(step + t * width + i, has_softplus ? L::softplus(raw) : raw);
      if (slope) L::store(slope + t * width + i, has_softplus ? L::sigmoid(raw) : L::all(1));
    }
  }
}

template <class C, int Bytes>
CAPIBARA_INLINE void multiply(const C* x, const C* y, C* out, int64_t count) {
  using L = SumLanes<C, Bytes>;
  for (int64_t i = 0; i < count; i += L::count) L::store(out + i, L::load(x + i) * L::load(y + i));
}

// y = (y + D * u) * silu(z); no gate where z is null.
template <class C, int Bytes>
CAPIBARA_INLINE void finish(C* y, const C* u, const C* D, const C* z, int64_t steps, int64_t width) {
  using L = SumLanes<C, Bytes>;
  for (int64_t t = 0; t < steps; ++t) {
    for (int64_t i = 0; i < width; i += L::count) {
      const int64_t at = t * width + i;
      typename L::V value = L::load(y + at) + L::load(D + i) * L::load(u + at);
      if (z) {
        const typename L::V gate = L::load(z + at);
        value = value * (gate * L::sigmoid(gate));
      }
      L::store(y + at, value);
    }
  }
}

// The way back through the gate: z becomes its gradient, dy that of the sum behind it; y is the output without the skip.
template <class C, int Bytes>
CAPIBARA_INLINE void open_gate(C* dy, C* z, const C* y, const C* u, const C* D, int64_t steps, int64_t width) {
  using L = SumLanes<C, Bytes>;
  for (int64_t t = 0; t < steps; ++t) {
    for (int64_t i = 0; i < width; i += L::count) {
      const int64_t at = t * width + i;
      const typename L::V gate = L::load(z + at), sigmoid = L::sigmoid(gate), slope = L::load(dy + at);
      const typename L::V value = L::load(y + at) + L::load(D + i) * L::load(u + at);
      L::store(z + at, slope * value * (sigmoid * (C(1) + gate * (C(1) - sigmoid))));
      L::store(dy + at, slope * (gate * sigmoid));
    }
  }
}

// du += D * dy and the sums over steps of dD and dbias; dstep becomes the gradient of delta.
template <class C, int Bytes>
CAPIBARA_INLINE void finish_gradients(C* du, C* dstep, const C* dy, const C* u, const C* slope, const C* D, C* dD,
                                      C* dbias, int64_t steps, int64_t width) {
  using L = SumLanes<C, Bytes>;
  for (int64_t i = 0; i < width; i += L::count) {
    typename L::V sum_D = L::load(dD + i), sum_bias = L::load(dbias + i);
    for (int64_t t = steps - 1; t >= 0; --t) {
      const int64_t at = t * width + i;
      const typename L::V grad = L::load(dy + at), delta = L::load(dstep + at) * L::load(slope + at);
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

template <class C>
struct Code {
  int forward_width, width, lanes;  // channels that go forward together, and backward
  void (*forward)(const Pass<C>&);
  void (*keep)(const Pass<C>&);
  void (*backward)(const Back<C>&);
  void (*make_steps)(C*, C*, const C*, int64_t, int64_t, bool);
  void (*multiply)(const C*, const C*, C*, int64_t);
  void (*finish)(C*, const C*, const C*, const C*, int64_t, int64_t);
  void (*open_gate)(C*, C*, const C*, const C*, const C*, int64_t, int64_t);
  void (*finish_gradients)(C*, C*, const C*, const C*, const C*, const C*, C*, C*, int64_t, int64_t);
};

#define CAPIBARA_SCAN(NAME, TARGET, BYTES, FORWARD, BACKWARD)                                                          \
  template <class C>                                                                                                   \
  struct NAME {                                                                                                        \
    TARGET static void forward(const Pass<C>& p) { run_forward<C, BYTES, FORWARD, false>(p); }                         \
    TARGET static void keep(const Pass<C>& p) { run_forward<C, BYTES, BACKWARD, true>(p); }                            \
    TARGET static void backward(const Back<C>& p) { run_backward<C, BYTES, BACKWARD>(p); }                             \
    TARGET static void steps(C* s, C* d, const C* b, int64_t n, int64_t w, bool p) {                                   \
      make_steps<C, BYTES>(s, d, b, n, w, p);                                                                          \
    }                                                                                                                  \
    TARGET static void times(const C* x, const C* y, C* out, int64_t n) { multiply<C, BYTES>(x, y, out, n); }          \
    TARGET static void end(C* y, const C* u, const C* d, const C* z, int64_t n, int64_t w) {                           \
      finish<C, BYTES>(y, u, d, z, n, w);                                                                              \
    }                                                                                                                  \
    TARGET static void gate(C* dy, C* z, const C* y, const C* u, const C* d, int64_t n, int64_t w) {                   \
      open_gate<C, BYTES>(dy, z, y, u, d, n, w);                                                                       \
    }                                                                                                                  \
    TARGET static void ends(C* du, C* ds, const C* dy, const C* u, const C* s, const C* d, C* dd, C* db, int64_t n,    \
                            int64_t w) {                                                                               \
      finish_gradients<C, BYTES>(du, ds, dy, u, s, d, dd, db, n, w);                                                   \
    }                                                                                                                  \
    static Code<C> code() {                                                                                            \
      constexpr int lanes = SumLanes<C, BYTES>::count;                                                                 \
      return {FORWARD * lanes, BACKWARD * lanes, lanes, forward, keep, backward, steps, times, end, gate, ends};       \
    }                                                                                                                  \
  };
CAPIBARA_SCAN(PlainScan, , 16, 4, 2)
#if defined(__x86_64__)
CAPIBARA_SCAN(Avx2Scan, __attribute__((target("avx2,fma"))), 32, 2, 2)
CAPIBARA_SCAN(Avx512Scan, __attribute__((target("avx512f,avx512dq,avx512bw"))), 64, 2, 1)
#endif

template <class C>
Code<C> code_of() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")) return Avx512Scan<C>::code();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Avx2Scan<C>::code();
#endif
  return PlainScan<C>::code();
}

// ---- tasks -------------------------------------------------------------------------------------------------------

// The operands, as they lie in memory.
template <class T>
struct Inputs {
  using C = SumOf<T>;
  const T *u, *delta, *B, *out, *z;
  const C *A, *D, *bias, *initial;
  const std::uint8_t* reset;

  Inputs(std::byte* const* buffers, const Extents& e)
      : u(at<T>(buffers, 0)), delta(at<T>(buffers, 1)), B(at<T>(buffers, 3)), out(at<T>(buffers, 4)),
        z(e.gated ? at<T>(buffers, 8) : nullptr), A(at<C>(buffers, 2)), D(at<C>(buffers, 5)), bias(at<C>(buffers, 6)),
        initial(at<C>(buffers, 7)), reset(e.resets ? at<std::uint8_t>(buffers, e.gated ? 9 : 8) : nullptr) {}

  template <class E>
  static const E* at(std::byte* const* buffers, int i) {
    return reinterpret_cast<const E*>(buffers[i]);
  }
};

// Copies between memory and [steps][width], of which `count` channels exist; the others are zero.
template <class T, class C>
void stage(const T* from, int64_t stride, int64_t steps, int64_t count, int64_t width, C* to) {
  for (int64_t t = 0; t < steps; ++t) {
    widen(from + t * stride, count, to + t * width);
    for (int64_t i = count; i < width; ++i) to[t * width + i] = 0;
  }
}
template <class T, class C>
void unstage(const C* from, int64_t stride, int64_t steps, int64_t count, int64_t width, T* to) {
  for (int64_t t = 0; t < steps; ++t) narrow(from + t * width, count, to + t * stride);
}

// Parameters and states of a block of channels, by vectors of `width` channels: [vectors][states][width].
template <class C>
struct Block {
  int64_t first, count, states, width, vectors;

  Block(const Extents& e, int64_t index, int64_t vector_width)
      : first(index * e.block()), count(std::min(e.block(), e.dim - first)), states(e.states), width(vector_width),
        vectors((count + width - 1) / width) {}

  int64_t size() const { return vectors * states * width; }
  int64_t present(int64_t v) const { return std::min(width, count - v * width); }
  // From [channels][states] and back.
  void gather(const C* from, C* to, C factor = 1) const {
    std::fill_n(to, size(), C(0));
    for (int64_t i = 0; i < count; ++i)
      for (int64_t n = 0; n < states; ++n) to[(i / width * states + n) * width + i % width] = factor * from[i * states + n];
  }
  void scatter(const C* from, C* to) const {
    for (int64_t i = 0; i < count; ++i)
      for (int64_t n = 0; n < states; ++n) to[i * states + n] = from[(i / width * states + n) * width + i % width];
  }
  // From or to rows of channels, [states][dim], as states at the starts of chunks are kept.
  void gather_rows(const C* from, int64_t dim, C* to) const {
    std::fill_n(to, size(), C(0));
    for (int64_t v = 0; v < vectors; ++v)
      for (int64_t n = 0; n < states; ++n)
        std::copy_n(from + n * dim + v * width, present(v), to + (v * states + n) * width);
  }
  void scatter_rows(const C* from, int64_t dim, C* to) const {
    for (int64_t v = 0; v < vectors; ++v)
      for (int64_t n = 0; n < states; ++n)
        std::copy_n(from + (v * states + n) * width, present(v), to + n * dim + v * width);
  }
  void gather_vector(const C* from, C* to) const {
    std::fill_n(to, vectors * width, C(0));
    std::copy_n(from + first, count, to);
  }
};

// Memory of one task, handed out piece by piece.
template <class C>
class Pieces {
 public:
  Pieces(int64_t count, const char* words) : memory_(count, words), next_(memory_.data()) {}
  C* take(int64_t count) {
    C* own = next_;
    next_ += count;
    return own;
  }

 private:
  Scratch<C> memory_;
  C* next_;
};

template <class T>
struct Outputs {
  T* y;
  SumOf<T>*last, *starts;
};

template <class T>
void run_forward_task(const Extents& e, const Code<SumOf<T>>& code, const Inputs<T>& in, const Outputs<T>& out,
                      int64_t task) {
  using C = SumOf<T>;
  const int64_t b = task / e.blocks(), width = code.forward_width, staged = e.chunk * width;
  const Block<C> block(e, task % e.blocks(), width);
  Pieces<C> memory(2 * block.size() + 2 * block.vectors * width + 5 * staged + 2 * e.chunk * e.states, "selective_scan");
  C *A = memory.take(block.size()), *h = memory.take(block.size());
  C *D = memory.take(block.vectors * width), *bias = memory.take(block.vectors * width);
  C *u = memory.take(staged), *step = memory.take(staged), *driven = memory.take(staged), *y = memory.take(staged),
    *z = memory.take(staged);
  C *B = memory.take(e.chunk * e.states), *columns = memory.take(e.chunk * e.states);
  block.gather(in.A + block.first * e.states, A, static_cast<C>(log2_e));
  block.gather(in.initial + (b * e.dim + block.first) * e.states, h);
  block.gather_vector(in.D, D);
  block.gather_vector(in.bias, bias);
  for (int64_t chunk = 0; chunk < e.chunks(); ++chunk) {
    const int64_t t0 = chunk * e.chunk, steps = std::min(e.chunk, e.length - t0), row = b * e.length + t0;
    block.scatter_rows(h, e.dim, out.starts + (b * e.chunks() + chunk) * e.states * e.dim + block.first);
    widen(in.B + row * e.states, steps * e.states, B);
    widen(in.out + row * e.states, steps * e.states, columns);
    for (int64_t v = 0; v < block.vectors; ++v) {
      const int64_t at = row * e.dim + block.first + v * width, count = block.present(v);
      stage(in.u + at, e.dim, steps, count, width, u);
      stage(in.delta + at, e.dim, steps, count, width, step);
      if (in.z) stage(in.z + at, e.dim, steps, count, width, z);
      code.make_steps(step, nullptr, bias + v * width, steps, width, e.has_softplus);
      code.multiply(step, u, driven, steps * width);
      const int64_t own = v * e.states * width;
      code.forward({steps, e.states, step, driven, B, columns, A + own, in.reset ? in.reset + row : nullptr, h + own, y,
                    nullptr, nullptr});
      code.finish(y, u, D + v * width, in.z ? z : nullptr, steps, width);
      unstage(y, e.dim, steps, count, width, out.y + at);
    }
  }
  block.scatter(h, out.last + (b * e.dim + block.first) * e.states);
}

template <class T>
struct Gradients {
  const T* dy;
  const SumOf<T>*dlast, *starts;
  T *du, *ddelta, *dz;
  SumOf<T>*dA, *dD, *dbias, *dinitial;
  SumOf<T>*dB, *dC;  // [batch][blocks][length][states]
};

template <class T>
void run_backward_task(const Extents& e, const Code<SumOf<T>>& code, const Inputs<T>& in, const Gradients<T>& out,
                       int64_t task) {
  using C = SumOf<T>;
  const int64_t b = task / e.blocks(), width = code.width, staged = e.chunk * width, columns = e.chunk * e.states;
  const Block<C> block(e, task % e.blocks(), width);
  const int64_t channels = block.vectors * width;
  Pieces<C> memory(5 * block.size() + 4 * channels + 9 * staged + 2 * columns + 2 * columns * code.lanes +
                       2 * columns * width,
                   "selective_scan_grad");
  C *scaled = memory.take(block.size()), *A = memory.take(block.size()), *h = memory.take(block.size()),
    *g = memory.take(block.size()), *dA = memory.take(block.size());
  C *D = memory.take(channels), *bias = memory.take(channels), *dD = memory.take(channels),
    *dbias = memory.take(channels);
  C *u = memory.take(staged), *step = memory.take(staged), *driven = memory.take(staged), *y = memory.take(staged),
    *z = memory.take(staged), *dy = memory.take(staged), *slope = memory.take(staged), *du = memory.take(staged),
    *dstep = memory.take(staged);
  C *B = memory.take(columns), *rows = memory.take(columns);
  C *dB = memory.take(columns * code.lanes), *dC = memory.take(columns * code.lanes);
  C *decays = memory.take(columns * width), *before = memory.take(columns * width);
  block.gather(in.A + block.first * e.states, A);
  block.gather(in.A + block.first * e.states, scaled, static_cast<C>(log2_e));
  block.gather(out.dlast + (b * e.dim + block.first) * e.states, g);
  block.gather_vector(in.D, D);
  block.gather_vector(in.bias, bias);
  std::fill_n(dA, block.size(), C(0));
  std::fill_n(dD, 2 * channels, C(0));
  for (int64_t chunk = e.chunks() - 1; chunk >= 0; --chunk) {
    const int64_t t0 = chunk * e.chunk, steps = std::min(e.chunk, e.length - t0), row = b * e.length + t0;
    block.gather_rows(out.starts + (b * e.chunks() + chunk) * e.states * e.dim + block.first, e.dim, h);
    widen(in.B + row * e.states, steps * e.states, B);
    widen(in.out + row * e.states, steps * e.states, rows);
    std::fill_n(dB, 2 * columns * code.lanes, C(0));
    for (int64_t v = 0; v < block.vectors; ++v) {
      const int64_t at = row * e.dim + block.first + v * width, count = block.present(v), own = v * e.states * width;
      stage(in.u + at, e.dim, steps, count, width, u);
      stage(in.delta + at, e.dim, steps, count, width, step);
      stage(out.dy + at, e.dim, steps, count, width, dy);
      code.make_steps(step, slope, bias + v * width, steps, width, e.has_softplus);
      code.multiply(step, u, driven, steps * width);
      const Pass<C> pass = {steps,  e.states, step, driven, B, rows, scaled + own, in.reset ? in.reset + row : nullptr,
                            h + own, y,       decays, before};
      code.keep(pass);
      if (in.z) {
        stage(in.z + at, e.dim, steps, count, width, z);
        code.open_gate(dy, z, y, u, D + v * width, steps, width);
        unstage(z, e.dim, steps, count, width, out.dz + at);
      }
      code.backward({pass, dy, u, A + own, g + own, dA + own, du, dstep, dB, dC});
      code.finish_gradients(du, dstep, dy, u, slope, D + v * width, dD + v * width, dbias + v * width, steps, width);
      unstage(du, e.dim, steps, count, width, out.du + at);
      unstage(dstep, e.dim, steps, count, width, out.ddelta + at);
    }
    const int64_t partial = ((b * e.blocks() + task % e.blocks()) * e.length + t0) * e.states;
    for (int64_t i = 0; i < steps * e.states; ++i) {
      C sum_B = 0, sum_C = 0;
      for (int lane = 0; lane < code.lanes; ++lane) {
        sum_B += dB[i * code.lanes + lane];
        sum_C += dC[i * code.lanes + lane];
      }
      out.dB[partial + i] = sum_B;
      out.dC[partial + i] = sum_C;
    }
  }
  const int64_t own = b * e.dim + block.first;
  block.scatter(g, out.dinitial + own * e.states);
  block.scatter(dA, out.dA + own * e.states);
  std::copy_n(dD, block.count, out.dD + own);
  std::copy_n(dbias, block.count, out.dbias + own);
}

// ---- kernels -----------------------------------------------------------------------------------------------------

double task_cost(const Extents& e, double per_state) {
  return 1000 + static_cast<double>(e.length * std::min(e.block(), e.dim) * (e.states + 4)) * per_state;
}

template <class T>
HostKernel forward_kernel(const Extents& e) {
  return [e, code = code_of<SumOf<T>>()](std::byte* const* buffers) {
    const math::FlushDenormals flush;
    const int first = 8 + e.gated + e.resets;
    const Inputs<T> in(buffers, e);
    const Outputs<T> out{reinterpret_cast<T*>(buffers[first]), reinterpret_cast<SumOf<T>*>(buffers[first + 1]),
                         reinterpret_cast<SumOf<T>*>(buffers[first + 2])};
    parallel_for_cost(e.batch * e.blocks(), task_cost(e, 0.7), [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) run_forward_task(e, code, in, out, task);
      return 0;
    });
  };
}

template <class T>
HostKernel backward_kernel(const Extents& e) {
  return [e, code = code_of<SumOf<T>>()](std::byte* const* buffers) {
    using C = SumOf<T>;
    const math::FlushDenormals flush;
    const int first = 11 + e.gated + e.resets;
    const Inputs<T> in(buffers + 3, e);
    auto sums = [&](int i) { return reinterpret_cast<C*>(buffers[first + i]); };
    auto rows = [&](int i) { return reinterpret_cast<T*>(buffers[first + i]); };
    const int64_t columns = e.length * e.states, partial = e.batch * e.blocks() * columns;
    const Scratch<C> partial_sums(2 * partial, "selective_scan_grad");
    const Gradients<T> out{reinterpret_cast<const T*>(buffers[0]),
                           reinterpret_cast<const C*>(buffers[1]),
                           reinterpret_cast<const C*>(buffers[2]),
                           rows(0),
                           rows(1),
                           e.gated ? rows(8) : nullptr,
                           sums(2),
                           sums(5),
                           sums(6),
                           sums(7),
                           partial_sums.data(),
                           partial_sums.data() + partial};
    parallel_for_cost(e.batch * e.blocks(), task_cost(e, 1.6), [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) run_backward_task(e, code, in, out, task);
      return 0;
    });
    parallel_for_cost(e.batch * e.length, 10 + static_cast<double>(2 * e.states * e.blocks()), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t at = (row / e.length * e.blocks() * e.length + row % e.length) * e.states;
        for (int64_t n = 0; n < e.states; ++n) {
          C sum_B = 0, sum_C = 0;
          for (int64_t k = 0; k < e.blocks(); ++k) {
            sum_B += out.dB[at + k * columns + n];
            sum_C += out.dC[at + k * columns + n];
          }
          rows(3)[row * e.states + n] = from_sum<T>(sum_B);
          rows(4)[row * e.states + n] = from_sum<T>(sum_C);
        }
      }
      return 0;
    });
  };
}

HostKernel make(const KernelRequest& request, std::size_t first) {
  const Shape &u = request.inputs[first].shape, &A = request.inputs[first + 2].shape;
  const Attrs& attrs = request.attrs;
  const Extents e{u[0], u[1], u[2], A[1], attrs.integer("chunk_size"), attrs.boolean("delta_softplus"),
                  attrs.boolean("gated"), attrs.boolean("resets")};
  if (e.batch * e.length * e.dim * e.states == 0) return {};
  return make_for_float(request.inputs[first].dtype, [&]<class T>(Type<T>) {
    return first == 0 ? forward_kernel<T>(e) : backward_kernel<T>(e);
  });
}

HostKernel make_forward(const KernelRequest& request) { return make(request, 0); }
HostKernel make_backward(const KernelRequest& request) { return make(request, 3); }

}  // namespace

KernelMakers selective_scan_makers() {
  return {{"selective_scan", make_forward}, {"selective_scan_grad", make_backward}};
}

}  // namespace capibara::cpu
