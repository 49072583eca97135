// The linear recurrence h[t] = a[t] * h[t - 1] + b[t]: rows of contiguous columns, or many sequences at once.
//
// With many columns per step, a block of them runs through all steps with h in the cache; the loop is memory-bound.
// With few, eight sequences run side by side, since each is bound by the latency of its previous step.
#include <algorithm>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/recurrence/recurrence_elements.h"
#include "core/runtime/thread_pool.h"
#include "lax/math/denormals.h"

namespace capibara::cpu {

namespace {

struct Extents {
  int64_t batch, length, inner;
  bool reverse;

  int64_t row(int64_t t) const { return (reverse ? length - 1 - t : t) * inner; }
};

constexpr int64_t block = 256, side_by_side = 8;

template <class T>
void run_columns(const Extents& e, const T* a, const T* b, const T* initial, T* out, int64_t count) {
  using C = SumOf<T>;
  C h[block];
  widen(initial, count, h);
  for (int64_t t = 0; t < e.length; ++t) {
    const int64_t row = e.row(t);
    const T* __restrict factors = a + row;
    const T* __restrict inputs = b + row;
    T* __restrict results = out + row;
    for (int64_t i = 0; i < count; ++i) {
      h[i] = as_sum<C>(factors[i]) * h[i] + as_sum<C>(inputs[i]);
      results[i] = from_sum<T>(h[i]);
    }
  }
}

// Sequences [first, first + Count) of the batch * inner sequences.
template <class T, int Count>
void run_sequences(const Extents& e, const T* a, const T* b, const T* initial, T* out, int64_t first) {
  using C = SumOf<T>;
  C h[Count];
  int64_t start[Count];
  for (int s = 0; s < Count; ++s) {
    const int64_t sequence = first + s;
    h[s] = as_sum<C>(initial[sequence]);
    start[s] = sequence / e.inner * e.length * e.inner + sequence % e.inner;
  }
  for (int64_t t = 0; t < e.length; ++t) {
    const int64_t row = e.row(t);
#pragma GCC unroll 8
    for (int s = 0; s < Count; ++s) {
      const int64_t at = start[s] + row;
      h[s] = as_sum<C>(a[at]) * h[s] + as_sum<C>(b[at]);
      out[at] = from_sum<T>(h[s]);
    }
  }
}

template <class T>
HostKernel kernel_for(const Extents& e) {
  return [e](std::byte* const* buffers) {
    const math::FlushDenormals flush;
    const T *a = reinterpret_cast<const T*>(buffers[0]), *b = reinterpret_cast<const T*>(buffers[1]),
            *initial = reinterpret_cast<const T*>(buffers[2]);
    T* out = reinterpret_cast<T*>(buffers[3]);
    const double steps = static_cast<double>(e.length);
    if (e.inner >= side_by_side) {
      const int64_t blocks = (e.inner + block - 1) / block;
      const double cost = 100 + steps * static_cast<double>(std::min(block, e.inner)) * 0.4;
      parallel_for_cost(e.batch * blocks, cost, [&](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
          const int64_t own = task / blocks, column = task % blocks * block, at = own * e.length * e.inner + column;
          run_columns(e, a + at, b + at, initial + own * e.inner + column, out + at, std::min(block, e.inner - column));
        }
        return 0;
      });
      return;
    }
    const int64_t sequences = e.batch * e.inner, groups = (sequences + side_by_side - 1) / side_by_side;
    parallel_for_cost(groups, 100 + steps * 8, [&](int64_t begin, int64_t end) {
      for (int64_t group = begin; group < end; ++group) {
        const int64_t first = group * side_by_side;
        if (first + side_by_side <= sequences) {
          run_sequences<T, side_by_side>(e, a, b, initial, out, first);
        } else {
          for (int64_t s = first; s < sequences; ++s) run_sequences<T, 1>(e, a, b, initial, out, s);
        }
      }
      return 0;
    });
  };
}

HostKernel make_recurrence(const KernelRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  const Extents e{shape[0], shape[1], shape[2], request.attrs.boolean("reverse")};
  if (request.inputs[0].size() == 0) return {};
  return make_for_float(request.inputs[0].dtype, [&]<class T>(Type<T>) { return kernel_for<T>(e); });
}

}  // namespace

KernelMakers linear_recurrence_makers() { return {{"linear_recurrence", make_recurrence}}; }

}  // namespace capibara::cpu
