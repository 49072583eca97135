// The selective scan of Mamba and its gradient: vectors of channels step through a chunk together.
//
// A task owns a block of channels of one batch entry. Chunk by chunk it stages the steps of a few channels as
// [steps][channels], and runs them with the states in the cache: the forward pass writes only the output and one state
// per chunk to memory. The backward pass recomputes the states and decays of a chunk and keeps them while gradients
// run through it in reverse. Gradients of B and C are sums over channels: each block adds its own, the blocks are added
// in order, and the blocks follow from the shape alone, so the number of threads changes nothing.
#include <algorithm>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/recurrence/recurrence_elements.h"
#include "backends/cpu/kernels/recurrence/selective_scan_loops.h"
#include "backends/cpu/kernels/scratch.h"
#include "core/runtime/thread_pool.h"
#include "lax/math/denormals.h"

namespace capibara::cpu {

namespace {

constexpr double log2_e = 1.4426950408889634;

struct Extents {
  int64_t batch, length, dim, states, chunk;
  bool has_softplus, gated, resets;

  int64_t chunks() const { return (length + chunk - 1) / chunk; }
  // Channels of a task: enough to make a row of memory worth reading, few enough to leave several tasks.
  int64_t block() const { return dim <= 64 ? 16 : dim <= 512 ? 64 : 128; }
  int64_t blocks() const { return (dim + block() - 1) / block(); }
};

// ---- tasks -------------------------------------------------------------------------------------------------------

// The operands in memory.
template <class T>
struct Inputs {
  using C = SumOf<T>;
  const T *u, *delta, *B, *out, *z;
  const C *A, *D, *bias, *initial;
  const std::uint8_t* reset;

  Inputs(std::byte* const* buffers, const Extents& e)
      : u(at<T>(buffers, 0)),
        delta(at<T>(buffers, 1)),
        B(at<T>(buffers, 3)),
        out(at<T>(buffers, 4)),
        z(e.gated ? at<T>(buffers, 8) : nullptr),
        A(at<C>(buffers, 2)),
        D(at<C>(buffers, 5)),
        bias(at<C>(buffers, 6)),
        initial(at<C>(buffers, 7)),
        reset(e.resets ? at<std::uint8_t>(buffers, e.gated ? 9 : 8) : nullptr) {}

  template <class E>
  static const E* at(std::byte* const* buffers, int i) {
    return reinterpret_cast<const E*>(buffers[i]);
  }
};

constexpr int64_t whole_vector = 16;

// Copies between memory and [steps][width], of which `count` channels exist; the others are zero.
template <class T, class C>
void stage(const T* from, int64_t stride, int64_t steps, int64_t count, int64_t width, C* to) {
  if (count == whole_vector && width == whole_vector) {  // a compile-time length
    for (int64_t t = 0; t < steps; ++t) widen(from + t * stride, whole_vector, to + t * whole_vector);
    return;
  }
  for (int64_t t = 0; t < steps; ++t) {
    widen(from + t * stride, count, to + t * width);
    for (int64_t i = count; i < width; ++i) to[t * width + i] = 0;
  }
}
template <class T, class C>
void unstage(const C* from, int64_t stride, int64_t steps, int64_t count, int64_t width, T* to) {
  if (count == whole_vector && width == whole_vector) {
    for (int64_t t = 0; t < steps; ++t) narrow(from + t * whole_vector, whole_vector, to + t * stride);
    return;
  }
  for (int64_t t = 0; t < steps; ++t) narrow(from + t * width, count, to + t * stride);
}

// Parameters and states of a block of channels, by vectors of `width` channels: [vectors][states][width].
template <class C>
struct Block {
  int64_t first, count, states, width, vectors;

  Block(const Extents& e, int64_t index, int64_t vector_width)
      : first(index * e.block()),
        count(std::min(e.block(), e.dim - first)),
        states(e.states),
        width(vector_width),
        vectors((count + width - 1) / width) {}

  int64_t size() const { return vectors * states * width; }
  int64_t present(int64_t v) const { return std::min(width, count - v * width); }
  // From [channels][states] and back.
  void gather(const C* from, C* to, C factor = 1) const {
    std::fill_n(to, size(), C(0));
    for (int64_t i = 0; i < count; ++i)
      for (int64_t n = 0; n < states; ++n)
        to[(i / width * states + n) * width + i % width] = factor * from[i * states + n];
  }
  void scatter(const C* from, C* to) const {
    for (int64_t i = 0; i < count; ++i)
      for (int64_t n = 0; n < states; ++n) to[i * states + n] = from[(i / width * states + n) * width + i % width];
  }
  // From or to rows of channels, [states][dim], the layout of the states kept at the starts of chunks.
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

// Memory of one task, handed out in pieces.
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
  T* y;  // this one and the others: null if nothing reads them
  SumOf<T>*last, *starts;
};

template <class T>
void run_forward_task(const Extents& e, const ScanCode<SumOf<T>>& code, const Inputs<T>& in, const Outputs<T>& out,
                      int64_t task) {
  using C = SumOf<T>;
  const int64_t b = task / e.blocks(), width = code.forward_width, staged = e.chunk * width;
  const Block<C> block(e, task % e.blocks(), width);
  Pieces<C> memory(2 * block.size() + 2 * block.vectors * width + 5 * staged + 2 * e.chunk * e.states,
                   "selective_scan");
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
    if (out.starts)
      block.scatter_rows(h, e.dim, out.starts + (b * e.chunks() + chunk) * e.states * e.dim + block.first);
    widen(in.B + row * e.states, steps * e.states, B);
    widen(in.out + row * e.states, steps * e.states, columns);
    for (int64_t v = 0; v < block.vectors; ++v) {
      const int64_t at = row * e.dim + block.first + v * width, count = block.present(v);
      stage(in.u + at, e.dim, steps, count, width, u);
      stage(in.delta + at, e.dim, steps, count, width, step);
      if (in.z) stage(in.z + at, e.dim, steps, count, width, z);
      code.make_steps[0](step, nullptr, bias + v * width, steps, e.has_softplus);
      code.multiply(step, u, driven, steps * width);
      const int64_t own = v * e.states * width;
      code.forward({steps, e.states, step, driven, B, columns, A + own, in.reset ? in.reset + row : nullptr, h + own, y,
                    nullptr, nullptr});
      code.finish(y, u, D + v * width, in.z ? z : nullptr, steps);
      if (out.y) unstage(y, e.dim, steps, count, width, out.y + at);
    }
  }
  if (out.last) block.scatter(h, out.last + (b * e.dim + block.first) * e.states);
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
void run_backward_task(const Extents& e, const ScanCode<SumOf<T>>& code, const Inputs<T>& in, const Gradients<T>& out,
                       int64_t task) {
  using C = SumOf<T>;
  const int64_t b = task / e.blocks(), width = code.width, staged = e.chunk * width, columns = e.chunk * e.states;
  const Block<C> block(e, task % e.blocks(), width);
  const int64_t channels = block.vectors * width;
  Pieces<C> memory(
      5 * block.size() + 4 * channels + 9 * staged + 2 * columns + 2 * columns * code.lanes + 2 * columns * width,
      "selective_scan_grad");
  C *scaled = memory.take(block.size()), *A = memory.take(block.size()), *h = memory.take(block.size()),
    *g = memory.take(block.size()), *dA = memory.take(block.size());
  C *D = memory.take(channels), *bias = memory.take(channels), *dD = memory.take(channels),
    *dbias = memory.take(channels);
  C *u = memory.take(staged), *step = memory.take(staged), *driven = memory.take(staged), *y = memory.take(staged),
    *z = memory.take(staged), *dy = memory.take(staged), *derivative = memory.take(staged), *du = memory.take(staged),
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
      code.make_steps[1](step, derivative, bias + v * width, steps, e.has_softplus);
      code.multiply(step, u, driven, steps * width);
      const ScanPass<C> pass = {steps,   e.states, step,         driven,
                                B,       rows,     scaled + own, in.reset ? in.reset + row : nullptr,
                                h + own, y,        decays,       before};
      code.keep(pass);
      if (in.z) {
        stage(in.z + at, e.dim, steps, count, width, z);
        code.open_gate(dy, z, y, u, D + v * width, steps);
        unstage(z, e.dim, steps, count, width, out.dz + at);
      }
      code.backward({pass, dy, u, A + own, g + own, dA + own, du, dstep, dB, dC});
      code.finish_gradients(du, dstep, dy, u, derivative, D + v * width, dD + v * width, dbias + v * width, steps,
                            width);
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
HostKernel forward_kernel(const Extents& e, const Types& results) {
  const bool reads_y = results[0].size() > 0, reads_last = results[1].size() > 0, reads_starts = results[2].size() > 0;
  return [e, reads_y, reads_last, reads_starts, code = scan_code<SumOf<T>>()](std::byte* const* buffers) {
    const math::FlushDenormals flush;
    const int first = 8 + e.gated + e.resets;
    const Inputs<T> in(buffers, e);
    const Outputs<T> out{reads_y ? reinterpret_cast<T*>(buffers[first]) : nullptr,
                         reads_last ? reinterpret_cast<SumOf<T>*>(buffers[first + 1]) : nullptr,
                         reads_starts ? reinterpret_cast<SumOf<T>*>(buffers[first + 2]) : nullptr};
    parallel_for_cost(e.batch * e.blocks(), task_cost(e, 0.7), [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) run_forward_task(e, code, in, out, task);
      return 0;
    });
  };
}

template <class T>
HostKernel backward_kernel(const Extents& e) {
  return [e, code = scan_code<SumOf<T>>()](std::byte* const* buffers) {
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
    parallel_for_cost(e.batch * e.length, 10 + static_cast<double>(2 * e.states * e.blocks()),
                      [&](int64_t begin, int64_t end) {
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
  const Extents e{u[0],
                  u[1],
                  u[2],
                  A[1],
                  attrs.integer("chunk_size"),
                  attrs.boolean("delta_softplus"),
                  attrs.boolean("gated"),
                  attrs.boolean("resets")};
  if (e.batch * e.length * e.dim * e.states == 0) return {};
  return make_for_float(request.inputs[first].dtype, [&]<class T>(Type<T>) {
    return first == 0 ? forward_kernel<T>(e, request.outputs) : backward_kernel<T>(e);
  });
}

HostKernel make_forward(const KernelRequest& request) { return make(request, 0); }
HostKernel make_backward(const KernelRequest& request) { return make(request, 3); }

}  // namespace

KernelMakers selective_scan_makers() {
  return {{"selective_scan", make_forward, true, true}, {"selective_scan_grad", make_backward}};
}

}  // namespace capibara::cpu
