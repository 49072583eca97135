// Vectorised steps of spiking neurons, one function for each reset and surrogate.
#include "backends/cpu/kernels/recurrence/spiking_neuron_loops.h"

#include <cmath>
#include <cstring>
#include <numbers>
#include <type_traits>

#include "backends/cpu/kernels/recurrence/recurrence_lanes.h"
#include "backends/cpu/kernels/streaming.h"
#include "backends/cpu/kernels/targets.h"
#include "backends/cpu/kernels/vector_exp.h"
#include "core/runtime/processor.h"

namespace capibara::cpu::spiking {

namespace {

template <class V>
CAPIBARA_INLINE V magnitude(V value) {
  return value < 0 ? -value : value;
}

template <class C, int Bytes>
struct Steps {
  using L = SumLanes<C, Bytes>;
  using V = typename L::V;
  C threshold, leak, rest, slope;

  explicit Steps(const Neuron& neuron)
      : threshold(static_cast<C>(neuron.threshold)),
        leak(static_cast<C>(neuron.leak_rate)),
        rest(static_cast<C>(neuron.reset_value)),
        slope(static_cast<C>(neuron.slope)) {}

  template <Reset reset>
  CAPIBARA_INLINE V charged(V potential, V input) const {
    if constexpr (reset == Reset::to_zero) return potential - potential * leak + input;
    return potential - (potential - rest) * leak + input;
  }
  CAPIBARA_INLINE V spike(V charge) const { return charge >= threshold ? L::all(1) : L::all(0); }

  template <Reset reset>
  CAPIBARA_INLINE V after_reset(V charge, V spike) const {
    if constexpr (reset == Reset::to_zero) return charge * (1 - spike);
    if constexpr (reset == Reset::hard) return charge * (1 - spike) + rest * spike;
    if constexpr (reset == Reset::soft) return charge - threshold * spike;
    return charge;
  }

  static CAPIBARA_INLINE V exponential(V x) {
    if constexpr (std::is_same_v<C, float>) {
      return VectorExp<Bytes>::of_negative(x);
    } else {
      for (int i = 0; i < L::count; ++i) x[i] = std::exp(x[i]);
      return x;
    }
  }

  template <Surrogate surrogate>
  CAPIBARA_INLINE V slope_at(V d) const {
    if constexpr (surrogate == Surrogate::straight_through) {
      return L::all(1);
    } else if constexpr (surrogate == Surrogate::atan) {
      // `slope` / 2 / (1 + angle^2), with a single division
      const C scale = static_cast<C>(std::numbers::pi * std::numbers::pi / 2) * slope;
      return 1 / (d * scale * d + 2 / slope);
    } else if constexpr (surrogate == Surrogate::sigmoid) {
      const V e = exponential(-magnitude(d * slope));  // symmetric in d, and never above 1
      const V share = 1 / (1 + e);
      return slope * e * share * share;
    } else {
      const V size = magnitude(d * slope);
      if constexpr (surrogate == Surrogate::fast_sigmoid) {
        const V share = 1 / (1 + size);
        return share * share;
      } else if constexpr (surrogate == Surrogate::triangle)
        return size > 1 ? L::all(0) : 1 - size;
      else
        return size < static_cast<C>(0.5) ? L::all(slope) : L::all(0);
    }
  }
};

// ---- one step of a strip of `width` neurons, in whole vectors ----------------------------------------------------

template <class C, int Bytes>
struct Two {
  typename SumLanes<C, Bytes>::V first, second;
};

// Stores the results of compute(i) for each vector of a strip: the first in `kept`, the second in `out`, bypassing the
// caches if `streamed`; a few vectors at a time so that their operations overlap. Rows of successive steps are too far
// apart for hardware prefetchers: those of the next step, at `next`, are prefetched.
template <class C, int Bytes, class Compute>
CAPIBARA_INLINE void store_vectors(const C* next, C* kept, C* out, int64_t width, bool streamed, Compute&& compute) {
  using L = SumLanes<C, Bytes>;
  constexpr int count = static_cast<int>(widest) / L::count;
  for (int64_t i = 0; i < width; i += widest) {
    __builtin_prefetch(next + i);
    if constexpr (sizeof(C) == 8) __builtin_prefetch(next + i + widest / 2);
    Two<C, Bytes> results[count];
#pragma GCC unroll 8
    for (int k = 0; k < count; ++k) results[k] = compute(i + k * L::count);
#pragma GCC unroll 8
    for (int k = 0; k < count; ++k) {
      L::store(kept + i + k * L::count, results[k].first);
      if (has_streaming && streamed)
        stream(out + i + k * L::count, results[k].second);
      else
        L::store(out + i + k * L::count, results[k].second);
    }
  }
}

template <class C, int Bytes, Reset reset, Written written>
CAPIBARA_INLINE void forward_step(const Neuron& neuron, const ForwardRow<C> row) {
  using L = SumLanes<C, Bytes>;
  using V = typename L::V;
  const Steps<C, Bytes> steps(neuron);
  const auto compute = [=](int64_t i) __attribute__((always_inline)) {
    const V charge = steps.template charged<reset>(L::load(row.potential + i), L::load(row.input + i)),
            spike = steps.spike(charge);
    const V potential = steps.template after_reset<reset>(charge, spike);
    return Two<C, Bytes>{potential, written == Written::spikes ? spike : charge};
  };
  store_vectors<C, Bytes>(row.next, row.potential, row.out, row.width, row.streamed, compute);
}

template <class C, int Bytes, Reset reset, Surrogate surrogate, bool Jumps>
CAPIBARA_INLINE void backward_step(const Neuron& neuron, const BackwardRow<C> row) {
  using L = SumLanes<C, Bytes>;
  using V = typename L::V;
  const Steps<C, Bytes> steps(neuron);
  const C kept = static_cast<C>(1 - neuron.leak_rate);
  const auto compute = [=](int64_t i) __attribute__((always_inline)) {
    const V charge = L::load(row.charges + i), later = L::load(row.cotangent + i);
    V through = later, of_spike = L::load(row.from_spike + i);
    if constexpr (reset == Reset::hard || reset == Reset::to_zero) through = later * (1 - steps.spike(charge));
    if constexpr (Jumps && reset == Reset::hard) of_spike += later * (steps.rest - charge);
    if constexpr (Jumps && reset == Reset::to_zero) of_spike -= later * charge;
    if constexpr (Jumps && reset == Reset::soft) of_spike += later * -steps.threshold;
    const V total = through + of_spike * steps.template slope_at<surrogate>(charge - steps.threshold);
    return Two<C, Bytes>{total * kept, total};
  };
  store_vectors<C, Bytes>(row.next, row.cotangent, row.to, row.width, row.streamed, compute);
}

// ---- the widest vectors of this processor ------------------------------------------------------------------------

#define CAPIBARA_STEPS(NAME, TARGET, BYTES)                                      \
  template <class C, Reset reset, Written written>                               \
  TARGET void forward_##NAME(const Neuron& neuron, const ForwardRow<C>& row) {   \
    forward_step<C, BYTES, reset, written>(neuron, row);                         \
  }                                                                              \
  template <class C, Reset reset, Surrogate surrogate>                           \
  TARGET void backward_##NAME(const Neuron& neuron, const BackwardRow<C>& row) { \
    if (neuron.detach_reset)                                                     \
      backward_step<C, BYTES, reset, surrogate, false>(neuron, row);             \
    else                                                                         \
      backward_step<C, BYTES, reset, surrogate, true>(neuron, row);              \
  }
CAPIBARA_STEPS(plain, , 16)
#if defined(__x86_64__)
CAPIBARA_STEPS(avx2, CAPIBARA_AVX2, 32)
CAPIBARA_STEPS(avx512, CAPIBARA_AVX512, 64)
#endif

template <class C, Reset reset, Written written>
ForwardStep<C> forward_for() {
#if defined(__x86_64__)
  if (has_avx512()) return forward_avx512<C, reset, written>;
  if (has_avx2()) return forward_avx2<C, reset, written>;
#endif
  return forward_plain<C, reset, written>;
}

template <class C, Reset reset, Surrogate surrogate>
BackwardStep<C> backward_for() {
#if defined(__x86_64__)
  if (has_avx512()) return backward_avx512<C, reset, surrogate>;
  if (has_avx2()) return backward_avx2<C, reset, surrogate>;
#endif
  return backward_plain<C, reset, surrogate>;
}

template <class C, Written written>
ForwardStep<C> forward_function(Reset reset) {
  const ForwardStep<C> all[] = {forward_for<C, Reset::hard, written>(), forward_for<C, Reset::to_zero, written>(),
                                forward_for<C, Reset::soft, written>(), forward_for<C, Reset::none, written>()};
  return all[static_cast<int>(reset)];
}

template <class C, Reset reset>
BackwardStep<C> backward_function(Surrogate surrogate) {
  const BackwardStep<C> all[] = {
      backward_for<C, reset, Surrogate::atan>(),         backward_for<C, reset, Surrogate::sigmoid>(),
      backward_for<C, reset, Surrogate::fast_sigmoid>(), backward_for<C, reset, Surrogate::triangle>(),
      backward_for<C, reset, Surrogate::rectangle>(),    backward_for<C, reset, Surrogate::straight_through>()};
  return all[static_cast<int>(surrogate)];
}

}  // namespace

template <class C>
ForwardStep<C> forward_function(Reset reset, Written written) {
  return written == Written::spikes ? forward_function<C, Written::spikes>(reset)
                                    : forward_function<C, Written::charges>(reset);
}

template <class C>
BackwardStep<C> backward_function(const Neuron& neuron) {
  const BackwardStep<C> all[] = {
      backward_function<C, Reset::hard>(neuron.surrogate), backward_function<C, Reset::to_zero>(neuron.surrogate),
      backward_function<C, Reset::soft>(neuron.surrogate), backward_function<C, Reset::none>(neuron.surrogate)};
  return all[static_cast<int>(neuron.reset)];
}

template ForwardStep<float> forward_function<float>(Reset, Written);
template ForwardStep<double> forward_function<double>(Reset, Written);
template BackwardStep<float> backward_function<float>(const Neuron&);
template BackwardStep<double> backward_function<double>(const Neuron&);

}  // namespace capibara::cpu::spiking
