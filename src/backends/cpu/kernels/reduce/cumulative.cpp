// Cumulative operations: each lane is folded in order and rounded at each step; lanes are distributed to threads.
//
// A few long lanes are summed in blocks of fixed length, whatever the number of threads: each block separately, then
// the sums before it are added.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/scratch.h"
#include "backends/cpu/kernels/without_sign.h"
#include "backends/reference/running_folds.h"
#include "core/array/element.h"
#include "core/runtime/thread_pool.h"
#include "lax/math/denormals.h"

namespace capibara::cpu {

namespace {

struct LogAddExp {
  template <class C>
  C operator()(C x, C y) const {
    C delta = x - y;
    if (std::isnan(delta)) return x + y;
    return reference::choose_extreme<true>(x, y) + std::log1p(std::exp(-std::fabs(delta)));
  }
};

// Sums and products of four lanes (two of eight bytes) at once: vectors of adjacent elements are transposed and back.
template <class C>
struct Across {
  static constexpr int lanes = 16 / sizeof(C);
  using Lane =
      typename std::conditional_t<std::is_integral_v<C>, std::make_unsigned<C>, Type<C>>::type;  // integers wrap
  typedef Lane Vector __attribute__((vector_size(16)));

  static Vector read(const C* at) {
    Vector value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  static void transpose(Vector* rows) {
    if constexpr (lanes == 2) {
      const Vector a = rows[0], b = rows[1];
      rows[0] = __builtin_shufflevector(a, b, 0, 2);
      rows[1] = __builtin_shufflevector(a, b, 1, 3);
    } else {
      const Vector a = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5),
                   b = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
      const Vector c = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5),
                   d = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
      rows[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
      rows[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
      rows[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
      rows[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
    }
  }

  // Sums start from zero: a sum of negative zeros is positive (reference::first_of_fold).
  template <bool Product, class T>
  static T begun(const T& first) {
    if constexpr (Product || std::is_integral_v<C>)
      return first;
    else
      return first + T{};
  }

  // Folds `lanes` lanes, `stride` elements apart; `length` is a multiple of `lanes`. `before`, if any, is added
  // in front of each lane in `out`. `last` receives the totals of the lanes alone; nothing is written if `out` is null.
  template <bool Product, bool Reverse>
  static void fold(const C* in, C* out, int64_t stride, int64_t length, const C* before, C* last) {
    Vector running{}, ahead{};
    for (int k = 0; k < lanes; ++k) ahead[k] = before ? static_cast<Lane>(before[k]) : Lane{};
    for (int64_t step = 0; step < length; step += lanes) {
      const int64_t at = Reverse ? length - lanes - step : step;
      Vector rows[lanes];
      for (int k = 0; k < lanes; ++k) rows[k] = read(in + k * stride + at);
      transpose(rows);
      for (int i = 0; i < lanes; ++i) {
        Vector& row = rows[Reverse ? lanes - 1 - i : i];
        if (step == 0 && i == 0)
          running = begun<Product>(row);
        else if constexpr (Product)
          running *= row;
        else
          running += row;
        row = before ? ahead + running : running;
      }
      if (!out) continue;
      transpose(rows);
      for (int k = 0; k < lanes; ++k) std::memcpy(out + k * stride + at, &rows[k], 16);
    }
    if (last) std::memcpy(last, &running, 16);
  }
};

template <class C>
inline constexpr bool goes_across = std::is_same_v<C, float> || std::is_same_v<C, double> ||
                                    (std::is_integral_v<C> && !std::is_same_v<C, bool> &&
                                     (sizeof(C) == 4 || sizeof(C) == 8));

struct LanesOfAxis {
  DType dtype;
  int64_t outer, length, inner;
  bool reverse;
  bool stored = false;  // buffers hold elements of the compute type

  // Folds `Together` lanes of adjacent elements, so that their dependency chains overlap.
  template <int Together, class C, class Fold>
  void run_rows(const C* in, C* out, Fold&& fold) const {
    const int64_t step = reverse ? -1 : 1, start = reverse ? length - 1 : 0;
    C running[Together];
    for (int k = 0; k < Together; ++k)
      out[k * length + start] = running[k] = fold(in[k * length + start], in[k * length + start], true);
    for (int64_t i = 1, at = start + step; i < length; ++i, at += step) {
#pragma GCC unroll 4
      for (int k = 0; k < Together; ++k)
        out[k * length + at] = running[k] = fold(running[k], in[k * length + at], false);
    }
  }

  // Calls fold(running, element, first) along every lane.
  template <class C, class Fold>
  void run(const std::byte* in, std::byte* out, double step_cost, Fold&& fold) const {
    if (inner == 1 && length > 0 && stored) {
      constexpr int64_t together = 4;
      const C* from = reinterpret_cast<const C*>(in);
      C* to = reinterpret_cast<C*>(out);
      parallel_for_cost((outer + together - 1) / together,
                        step_cost * static_cast<double>(length * std::min(outer, together)),
                        [&](int64_t begin, int64_t end) {
                          int64_t row = begin * together;
                          const int64_t last = std::min(outer, end * together);
                          for (; row + together <= last; row += together)
                            run_rows<together>(from + row * length, to + row * length, fold);
                          for (; row < last; ++row) run_rows<1>(from + row * length, to + row * length, fold);
                          return 0;
                        });
      return;
    }
    constexpr int64_t piece = 64;  // lanes per task
    const int64_t pieces = (inner + piece - 1) / piece, size = storage_size(dtype);
    const double cost = step_cost * static_cast<double>(length * std::min(inner, piece));
    parallel_for_cost(outer * pieces, cost, [&](int64_t begin, int64_t end) {
      C running[piece], elements[piece];
      for (int64_t task = begin; task < end; ++task) {
        const int64_t o = task / pieces, lane = task % pieces * piece, count = std::min(piece, inner - lane);
        for (int64_t step = 0; step < length; ++step) {
          const int64_t at = (o * length + (reverse ? length - 1 - step : step)) * inner + lane;
          const C* row = elements;
          if (stored)
            row = reinterpret_cast<const C*>(in) + at;
          else
            load_range<C>(dtype, in + at * size, count, elements);
          for (int64_t k = 0; k < count; ++k) running[k] = fold(running[k], row[k], step == 0);
          if (stored)
            std::copy_n(running, count, reinterpret_cast<C*>(out) + at);
          else
            store_range<C>(dtype, out + at * size, count, running);
        }
      }
      return 0;
    });
  }
};

// Contiguous lanes, of a type that vectors support.
template <class C, bool Product>
struct LaneFolds {
  int64_t outer, length;
  bool reverse;
  static constexpr int64_t together = Across<C>::lanes, block = 4096;

  void fold(const C* in, C* out, int64_t stride, int64_t count, const C* before, C* last) const {
    if (reverse)
      Across<C>::template fold<Product, true>(in, out, stride, count, before, last);
    else
      Across<C>::template fold<Product, false>(in, out, stride, count, before, last);
  }

  // Vectors of lanes; the remaining lanes and steps are folded element by element.
  void run_lanes(const C* in, C* out) const {
    const int64_t whole = length / together * together, groups = (outer + together - 1) / together;
    parallel_for_cost(groups, 0.4 * static_cast<double>(length * together), [&](int64_t begin, int64_t end) {
      for (int64_t group = begin; group < end; ++group) {
        const int64_t first = group * together;
        if (first + together > outer || whole == 0) {
          for (int64_t lane = first; lane < std::min(outer, first + together); ++lane)
            one_by_one(in + lane * length, out + lane * length, 0, length, nullptr);
          continue;
        }
        // The part whose length is a multiple of the vector's is at the start of the fold.
        const int64_t start = reverse ? length - whole : 0;
        C last[together];
        fold(in + first * length + start, out + first * length + start, length, whole, nullptr, last);
        for (int64_t k = 0; k < together; ++k)
          one_by_one(in + (first + k) * length, out + (first + k) * length, whole, length, last + k);
      }
      return 0;
    });
  }

  // Steps [from, to) of one lane; `before`: the result of the steps before them, null if there are none.
  void one_by_one(const C* in, C* out, int64_t from, int64_t to, const C* before) const {
    using Lane = typename Across<C>::Lane;
    Lane running = before ? static_cast<Lane>(*before) : Lane{};
    for (int64_t step = from; step < to; ++step) {
      const int64_t at = reverse ? length - 1 - step : step;
      const Lane element = static_cast<Lane>(in[at]);
      if (step == 0)
        running = Across<C>::template begun<Product>(element);
      else if constexpr (Product)
        running *= element;
      else
        running += element;
      out[at] = static_cast<C>(running);
    }
  }

  // A few long lanes: sums of blocks, then prefix sums of these, then the elements.
  void run_blocks(const C* in, C* out) const requires(!Product) {
    using Lane = typename Across<C>::Lane;
    constexpr int64_t span = block * together;  // blocks that are folded at once
    const int64_t spans = length / span, blocks = spans * together;
    Scratch<C> sums(blocks, "cumulative sums");
    for (int64_t lane = 0; lane < outer; ++lane) {
      const C* from = in + lane * length;
      C* to = out + lane * length;
      // Whole blocks are at the start of the fold: for a reversed lane, at its end.
      const int64_t start = reverse ? length - blocks * block : 0;
      parallel_for_cost(spans, 0.2 * span, [&](int64_t begin, int64_t end) {
        for (int64_t s = begin; s < end; ++s)
          fold(from + start + s * span, nullptr, block, block, nullptr, sums.data() + s * together);
        return 0;
      });
      Lane before = static_cast<Lane>(-0.0);
      if constexpr (std::is_integral_v<C>) before = 0;
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t at = reverse ? blocks - 1 - b : b;
        const Lane own = static_cast<Lane>(sums[at]);
        sums[at] = static_cast<C>(before);
        before += own;
      }
      parallel_for_cost(spans, 0.4 * span, [&](int64_t begin, int64_t end) {
        for (int64_t s = begin; s < end; ++s)
          fold(from + start + s * span, to + start + s * span, block, block, sums.data() + s * together, nullptr);
        return 0;
      });
      const C carried = static_cast<C>(before);
      one_by_one(from, to, blocks * block, length, &carried);
    }
  }

  void run(const C* in, C* out) const {
    if constexpr (!Product) {
      if (outer < together && length >= 16 * block * together) return run_blocks(in, out);
    }
    run_lanes(in, out);
  }
};

// Adjacent lanes, of a type that vectors support: sixteen vectors of them stay in registers.
template <class C, bool Product>
struct ColumnFolds {
  int64_t outer, length, inner;
  bool reverse;
  using Vector = typename Across<C>::Vector;
  static constexpr int64_t width = 16 / sizeof(C), vectors = 16, piece = width * vectors;

  void run(const C* in, C* out) const {
    const int64_t pieces = (inner + piece - 1) / piece;
    parallel_for_cost(outer * pieces, 0.3 * static_cast<double>(length * std::min(inner, piece)),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t task = begin; task < end; ++task) {
                          const int64_t lane = task % pieces * piece,
                                        start = (task / pieces * length + (reverse ? length - 1 : 0)) * inner + lane;
                          const int64_t count = std::min(piece, inner - lane);
                          int64_t done = 0;
                          if (count == piece) some<vectors>(in + start, out + start), done = piece;
                          for (; done + width <= count; done += width) some<1>(in + start + done, out + start + done);
                          for (; done < count; ++done) one(in + start + done, out + start + done);
                        }
                        return 0;
                      });
  }

 private:
  template <int64_t Count>
  void some(const C* in, C* out) const {
    const int64_t stride = reverse ? -inner : inner;
    Vector running[Count];
    for (int64_t k = 0; k < Count; ++k) {
      running[k] = Across<C>::template begun<Product>(Across<C>::read(in + k * width));
      std::memcpy(out + k * width, &running[k], 16);
    }
    for (int64_t step = 1; step < length; ++step) {
      in += stride;
      out += stride;
      // Each vector is written as soon as it is known: all reads before all writes takes four times as long.
#pragma GCC unroll 16
      for (int64_t k = 0; k < Count; ++k) {
        if constexpr (Product)
          running[k] *= Across<C>::read(in + k * width);
        else
          running[k] += Across<C>::read(in + k * width);
        std::memcpy(out + k * width, &running[k], 16);
      }
    }
  }
  void one(const C* in, C* out) const {
    using Lane = typename Across<C>::Lane;
    const int64_t stride = reverse ? -inner : inner;
    Lane running = Across<C>::template begun<Product>(static_cast<Lane>(*in));
    for (int64_t step = 0;;) {
      *out = static_cast<C>(running);
      if (++step == length) return;
      in += stride;
      out += stride;
      if constexpr (Product)
        running *= static_cast<Lane>(*in);
      else
        running += static_cast<Lane>(*in);
    }
  }
};

LanesOfAxis lanes_of(const KernelRequest& request) {
  const ArrayType& x = request.inputs[0];
  const int64_t axis = request.attrs.integer("axis");
  LanesOfAxis lanes{x.dtype, 1, x.shape[static_cast<std::size_t>(axis)], 1, request.attrs.boolean("reverse")};
  for (int64_t d = 0; d < x.rank(); ++d)
    (d < axis   ? lanes.outer
     : d > axis ? lanes.inner
                : lanes.length) *= d == axis ? 1 : x.shape[static_cast<std::size_t>(d)];
  return lanes;
}

template <Monoid M, class C>
HostKernel cumulative_kernel(const LanesOfAxis& lanes) {
  if constexpr (goes_across<C> && (M == Monoid::add || M == Monoid::mul)) {
    if (lanes.inner > 1 && lanes.length > 0 && lanes.stored) {
      const ColumnFolds<C, M == Monoid::mul> folds{lanes.outer, lanes.length, lanes.inner, lanes.reverse};
      return [folds](std::byte* const* buffers) {
        const math::FlushDenormals flush;
        folds.run(reinterpret_cast<const C*>(buffers[0]), reinterpret_cast<C*>(buffers[1]));
      };
    }
    if (lanes.inner == 1 && lanes.length > 0 && lanes.stored) {
      const LaneFolds<C, M == Monoid::mul> folds{lanes.outer, lanes.length, lanes.reverse};
      return [folds](std::byte* const* buffers) {
        const math::FlushDenormals flush;
        folds.run(reinterpret_cast<const C*>(buffers[0]), reinterpret_cast<C*>(buffers[1]));
      };
    }
  }
  return [lanes](std::byte* const* buffers) {
    const math::FlushDenormals flush;
    lanes.run<C>(buffers[0], buffers[1], 1.5, [](const C& running, const C& element, bool first) {
      return first ? reference::first_of_fold<M>(element) : reference::folded<M>(running, element);
    });
  };
}

template <Monoid M>
HostKernel make_cumulative(const KernelRequest& request) {
  if (request.inputs[0].dtype != request.outputs[0].dtype) return {};
  LanesOfAxis lanes = lanes_of(request);
  if (lanes.length == 1) {  // single elements are their own results
    const auto bytes = static_cast<std::size_t>(request.inputs[0].size() * storage_size(lanes.dtype));
    return [bytes](std::byte* const* buffers) { std::memcpy(buffers[1], buffers[0], bytes); };
  }
  return visit_compute(lanes.dtype, [&]<class C>(Type<C>) -> HostKernel {
    lanes.stored = stored_as<C>(lanes.dtype);
    return cumulative_kernel<M, std::conditional_t<M == Monoid::max || M == Monoid::min, C, WithoutSign<C>>>(lanes);
  });
}

HostKernel make_cumlogsumexp(const KernelRequest& request) {
  LanesOfAxis lanes = lanes_of(request);
  if (!is_floating(lanes.dtype)) return {};
  return visit_compute(lanes.dtype, [&]<class C>(Type<C>) -> HostKernel {
    if constexpr (std::is_floating_point_v<C>) {
      lanes.stored = stored_as<C>(lanes.dtype);
      return [lanes](std::byte* const* buffers) {
        lanes.run<C>(buffers[0], buffers[1], 20, [](C running, C element, bool first) {
          return first ? element + C(0) : LogAddExp{}(running, element);  // folding with log 0 makes -0 a 0
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
