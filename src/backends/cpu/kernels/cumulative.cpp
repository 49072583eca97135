// Cumulative operations: each lane is folded in order and rounded at each step; lanes are shared out among threads.
#include <algorithm>
#include <cmath>

#include "array/element.h"
#include "backends/cpu/kernels/families.h"
#include "backends/reference/regions.h"
#include "runtime/thread_pool.h"

namespace capibara::cpu {

namespace {

using reference::is_complex_number;

struct LogAddExp {
  template <class C>
  C operator()(C x, C y) const {
    C delta = x - y;
    if (std::isnan(delta)) return x + y;
    return reference::choose_extreme<true>(x, y) + std::log1p(std::exp(-std::fabs(delta)));
  }
};

struct Lanes {
  DType dtype;
  int64_t outer, length, inner;
  bool reverse;

  // Folds `Together` lanes of neighbouring elements, whose chains of operations overlap.
  template <int Together, class C, class Fold>
  void run_rows(const C* in, C* out, Fold&& fold) const {
    const int64_t step = reverse ? -1 : 1, start = reverse ? length - 1 : 0;
    C running[Together];
    for (int k = 0; k < Together; ++k) out[k * length + start] = running[k] = fold(in[k * length + start], in[k * length + start], true);
    for (int64_t i = 1, at = start + step; i < length; ++i, at += step) {
#pragma GCC unroll 4
      for (int k = 0; k < Together; ++k) out[k * length + at] = running[k] = fold(running[k], in[k * length + at], false);
    }
  }

  // Calls fold(running, element, first) along every lane.
  template <class C, class Fold>
  void run(const std::byte* in, std::byte* out, double step_cost, Fold&& fold) const {
    if (inner == 1 && length > 0 && stored_as<C>(dtype)) {
      constexpr int64_t together = 4;
      const C* from = reinterpret_cast<const C*>(in);
      C* to = reinterpret_cast<C*>(out);
      parallel_for_cost((outer + together - 1) / together, step_cost * static_cast<double>(length * std::min(outer, together)), [&](int64_t begin, int64_t end) {
        int64_t row = begin * together;
        const int64_t last = std::min(outer, end * together);
        for (; row + together <= last; row += together) run_rows<together>(from + row * length, to + row * length, fold);
        for (; row < last; ++row) run_rows<1>(from + row * length, to + row * length, fold);
        return 0;
      });
      return;
    }
    constexpr int64_t piece = 64;  // lanes that one task carries along
    const int64_t pieces = (inner + piece - 1) / piece, size = storage_size(dtype);
    const double cost = step_cost * static_cast<double>(length * std::min(inner, piece));
    parallel_for_cost(outer * pieces, cost, [&](int64_t begin, int64_t end) {
      C running[piece], elements[piece];
      for (int64_t task = begin; task < end; ++task) {
        const int64_t o = task / pieces, lane = task % pieces * piece, count = std::min(piece, inner - lane);
        const bool stored = stored_as<C>(dtype);
        for (int64_t step = 0; step < length; ++step) {
          const int64_t at = (o * length + (reverse ? length - 1 - step : step)) * inner + lane;
          const C* row = elements;
          if (stored) row = reinterpret_cast<const C*>(in) + at;
          else load_range<C>(dtype, in + at * size, count, elements);
          for (int64_t k = 0; k < count; ++k) running[k] = fold(running[k], row[k], step == 0);
          if (stored) std::copy_n(running, count, reinterpret_cast<C*>(out) + at);
          else store_range<C>(dtype, out + at * size, count, running);
        }
      }
      return 0;
    });
  }
};

Lanes lanes_of(const KernelRequest& request) {
  const ArrayType& x = request.inputs[0];
  const int64_t axis = request.attrs.integer("axis");
  Lanes lanes{x.dtype, 1, x.shape[static_cast<std::size_t>(axis)], 1, request.attrs.boolean("reverse")};
  for (int64_t d = 0; d < x.rank(); ++d) (d < axis ? lanes.outer : d > axis ? lanes.inner : lanes.length) *= d == axis ? 1 : x.shape[static_cast<std::size_t>(d)];
  return lanes;
}

template <Monoid M>
HostKernel make_cumulative(const KernelRequest& request) {
  if (request.inputs[0].dtype != request.outputs[0].dtype) return {};
  Lanes lanes = lanes_of(request);
  return visit_compute(lanes.dtype, [&]<class C>(Type<C>) -> HostKernel {
    return [lanes](std::byte* const* buffers) {
      lanes.run<C>(buffers[0], buffers[1], 1.5, [](const C& running, const C& element, bool first) {
        return first ? element : reference::combine<M>(running, element);
      });
    };
  });
}

HostKernel make_cumlogsumexp(const KernelRequest& request) {
  Lanes lanes = lanes_of(request);
  if (!is_floating(lanes.dtype)) return {};
  return visit_compute(lanes.dtype, [&]<class C>(Type<C>) -> HostKernel {
    if constexpr (std::is_floating_point_v<C>) {
      return [lanes](std::byte* const* buffers) {
        lanes.run<C>(buffers[0], buffers[1], 20, [](C running, C element, bool first) {
          return first ? element + C(0) : LogAddExp{}(running, element);  // the fold with log 0 turns -0 into 0
        });
      };
    } else {
      return {};
    }
  });
}

}  // namespace

KernelMakers cumulative_makers() {
  return {{"cumsum", make_cumulative<Monoid::add>},
          {"cumprod", make_cumulative<Monoid::mul>},
          {"cummax", make_cumulative<Monoid::max>},
          {"cummin", make_cumulative<Monoid::min>},
          {"cumlogsumexp", make_cumlogsumexp}};
}

}  // namespace capibara::cpu
