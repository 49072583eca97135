// Leaky integrate-and-fire neurons over time, forward and backward: bound by memory, so that each input is read once.
//
// Neurons are shared out among threads in strips of a few hundred, whose potentials stay in the first cache while time
// runs. Backward a strip runs forward once more and keeps its charges in the second cache; that reads the inputs again
// instead of potentials that the forward pass would have had to write.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "array/element.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/scratch.h"
#include "lax/math/denormals.h"
#include "runtime/thread_pool.h"

namespace capibara::cpu {

namespace {

#define CAPIBARA_INLINE inline __attribute__((always_inline))
#pragma GCC diagnostic ignored "-Wpsabi"  // wide vectors are passed to functions that are inlined, no others

enum class Reset { hard, soft, none };
enum class Surrogate { atan, sigmoid, fast_sigmoid, triangle, rectangle, straight_through };

struct Neuron {
  double threshold, leak_rate, reset_value, slope;
  Reset reset;
  Surrogate surrogate;
  bool detach_reset;

  explicit Neuron(const Attrs& attrs)
      : threshold(attrs.real("threshold")),
        leak_rate(attrs.real("leak_rate")),
        reset_value(attrs.real("reset_value")),
        slope(attrs.real("slope")),
        reset(attrs.text("reset") == "hard"   ? Reset::hard
              : attrs.text("reset") == "soft" ? Reset::soft
                                              : Reset::none),
        surrogate(surrogate_of(attrs.text("surrogate"))),
        detach_reset(attrs.boolean("detach_reset")) {}

  static Surrogate surrogate_of(const std::string& name) {
    if (name == "atan") return Surrogate::atan;
    if (name == "sigmoid") return Surrogate::sigmoid;
    if (name == "fast_sigmoid") return Surrogate::fast_sigmoid;
    if (name == "triangle") return Surrogate::triangle;
    return name == "rectangle" ? Surrogate::rectangle : Surrogate::straight_through;
  }
};

// ---- vectors of neurons ------------------------------------------------------------------------------------------

template <class C, int Bytes>
struct Lanes {
  typedef C V __attribute__((vector_size(Bytes)));
  static constexpr int count = Bytes / static_cast<int>(sizeof(C));

  static CAPIBARA_INLINE V load(const C* from) {
    V value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  static CAPIBARA_INLINE void store(C* to, V value) { std::memcpy(to, &value, sizeof value); }
  static CAPIBARA_INLINE V all(C value) { return V{} + value; }
  static CAPIBARA_INLINE V size(V value) { return value < 0 ? -value : value; }
  // 1 / value to about one unit; a division would take longer than all the rest of a step.
  static CAPIBARA_INLINE V reciprocal(V value) {
#if defined(__aarch64__)
    if constexpr (std::is_same_v<C, float>) {
      V guess = vrecpeq_f32(value);
      guess = guess * vrecpsq_f32(value, guess);
      return guess * vrecpsq_f32(value, guess);
    }
#endif
    return 1 / value;
  }
};

// exp of numbers up to 0, to about one unit of float32; of those below -87 it is as small as that of -87.
template <int Bytes>
CAPIBARA_INLINE typename Lanes<float, Bytes>::V exponential_of(typename Lanes<float, Bytes>::V x) {
  using V = typename Lanes<float, Bytes>::V;
  typedef std::int32_t W __attribute__((vector_size(Bytes)));
  constexpr float magic = 12582912.0f;  // 1.5 * 2^23: the sum's last bits are the nearest integer
  x = x < -87.0f ? V{} - 87.0f : x;
  const V shifted = x * 1.44269504f + magic, whole = shifted - magic;
  const V rest = (x - whole * 0.693145752f) - whole * 1.42860677e-6f;
  V sum = V{} + 1.0f / 5040;
  for (float factor : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) sum = sum * rest + factor;
  return reinterpret_cast<V>(reinterpret_cast<W>(sum) + (reinterpret_cast<W>(shifted) << 23));
}

template <class C, int Bytes>
struct Steps {
  using L = Lanes<C, Bytes>;
  using V = typename L::V;
  C threshold, leak, rest, slope;

  explicit Steps(const Neuron& neuron)
      : threshold(static_cast<C>(neuron.threshold)),
        leak(static_cast<C>(neuron.leak_rate)),
        rest(static_cast<C>(neuron.reset_value)),
        slope(static_cast<C>(neuron.slope)) {}

  CAPIBARA_INLINE V charged(V potential, V input) const { return potential - (potential - rest) * leak + input; }
  CAPIBARA_INLINE V spike(V charge) const { return charge - threshold >= 0 ? L::all(1) : L::all(0); }

  template <Reset reset>
  CAPIBARA_INLINE V after_reset(V charge, V spike) const {
    if constexpr (reset == Reset::hard) return charge * (1 - spike) + rest * spike;
    if constexpr (reset == Reset::soft) return charge - threshold * spike;
    return charge;
  }

  static CAPIBARA_INLINE V exponential(V x) {
    if constexpr (std::is_same_v<C, float>) {
      return exponential_of<Bytes>(x);
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
      const V angle = d * (static_cast<C>(std::numbers::pi / 2) * slope);
      return slope / 2 * L::reciprocal(1 + angle * angle);
    } else if constexpr (surrogate == Surrogate::sigmoid) {
      const V e = exponential(-L::size(d * slope));  // symmetric in d, and never above 1
      const V share = L::reciprocal(1 + e);
      return slope * e * share * share;
    } else {
      const V size = L::size(d * slope);
      if constexpr (surrogate == Surrogate::fast_sigmoid) {
        const V share = L::reciprocal(1 + size);
        return share * share;
      } else if constexpr (surrogate == Surrogate::triangle)
        return size > 1 ? L::all(0) : 1 - size;
      else
        return size < static_cast<C>(0.5) ? L::all(slope) : L::all(0);
    }
  }
};

// ---- one step of a strip of `width` neurons, whole vectors -------------------------------------------------------

template <class C, int Bytes, Reset reset>
CAPIBARA_INLINE void forward_step(const Neuron& neuron, const C* input, C* potential, C* charges, C* spikes,
                                  int64_t width) {
  using L = Lanes<C, Bytes>;
  using V = typename L::V;
  const Steps<C, Bytes> steps(neuron);
  for (int64_t i = 0; i < width; i += L::count) {
    const V charge = steps.charged(L::load(potential + i), L::load(input + i)), spike = steps.spike(charge);
    L::store(potential + i, steps.template after_reset<reset>(charge, spike));
    if (charges) L::store(charges + i, charge);
    if (spikes) L::store(spikes + i, spike);
  }
}

template <class C, int Bytes, Reset reset, Surrogate surrogate>
CAPIBARA_INLINE void backward_step(const Neuron& neuron, const C* from_spike, const C* charges, C* cotangent, C* to,
                                   int64_t width) {
  using L = Lanes<C, Bytes>;
  using V = typename L::V;
  const Steps<C, Bytes> steps(neuron);
  const C kept = static_cast<C>(1 - neuron.leak_rate);
  const bool jumps = !neuron.detach_reset;
  for (int64_t i = 0; i < width; i += L::count) {
    const V charge = L::load(charges + i), later = L::load(cotangent + i);
    V through = later, of_spike = L::load(from_spike + i);
    if constexpr (reset == Reset::hard) {
      through = later * (1 - steps.spike(charge));
      if (jumps) of_spike += later * (steps.rest - charge);
    } else if constexpr (reset == Reset::soft) {
      if (jumps) of_spike += later * -steps.threshold;
    }
    const V total = through + of_spike * steps.template slope_at<surrogate>(charge - steps.threshold);
    L::store(to + i, total);
    L::store(cotangent + i, total * kept);
  }
}

// ---- the widest vectors of this processor ------------------------------------------------------------------------

template <class C>
using ForwardStep = void (*)(const Neuron&, const C* input, C* potential, C* charges, C* spikes, int64_t width);
template <class C>
using BackwardStep = void (*)(const Neuron&, const C* from_spike, const C* charges, C* cotangent, C* to, int64_t width);

#define CAPIBARA_STEPS(NAME, TARGET, BYTES)                                                                     \
  template <class C, Reset reset>                                                                               \
  TARGET void forward_##NAME(const Neuron& neuron, const C* input, C* potential, C* charges, C* spikes,         \
                             int64_t width) {                                                                   \
    forward_step<C, BYTES, reset>(neuron, input, potential, charges, spikes, width);                            \
  }                                                                                                             \
  template <class C, Reset reset, Surrogate surrogate>                                                          \
  TARGET void backward_##NAME(const Neuron& neuron, const C* from_spike, const C* charges, C* cotangent, C* to, \
                              int64_t width) {                                                                  \
    backward_step<C, BYTES, reset, surrogate>(neuron, from_spike, charges, cotangent, to, width);               \
  }
CAPIBARA_STEPS(plain, , 16)
#if defined(__x86_64__)
CAPIBARA_STEPS(avx2, __attribute__((target("avx2,fma"))), 32)
CAPIBARA_STEPS(avx512, __attribute__((target("avx512f,avx512dq,avx512bw"))), 64)
#endif

template <class C, Reset reset>
ForwardStep<C> forward_for() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")) return forward_avx512<C, reset>;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return forward_avx2<C, reset>;
#endif
  return forward_plain<C, reset>;
}

template <class C, Reset reset, Surrogate surrogate>
BackwardStep<C> backward_for() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
    return backward_avx512<C, reset, surrogate>;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return backward_avx2<C, reset, surrogate>;
#endif
  return backward_plain<C, reset, surrogate>;
}

template <class C>
ForwardStep<C> forward_function(Reset reset) {
  const ForwardStep<C> all[] = {forward_for<C, Reset::hard>(), forward_for<C, Reset::soft>(),
                                forward_for<C, Reset::none>()};
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

template <class C>
BackwardStep<C> backward_function(const Neuron& neuron) {
  const BackwardStep<C> all[] = {backward_function<C, Reset::hard>(neuron.surrogate),
                                 backward_function<C, Reset::soft>(neuron.surrogate),
                                 backward_function<C, Reset::none>(neuron.surrogate)};
  return all[static_cast<int>(neuron.reset)];
}

// ---- kernels -----------------------------------------------------------------------------------------------------

constexpr int64_t widest = 16;               // neurons of the widest vectors
constexpr int64_t max_strip = 512;           // neurons
constexpr int64_t charge_bytes = 256 << 10;  // of a strip over all steps, if it can be

int64_t rounded_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

// One step of a strip, in C: in place where it is C already and fills whole vectors, else converted.
template <class C>
struct Row {
  DType dtype;
  int64_t count, width;  // neurons, with those that fill the last vector

  bool in_place() const { return stored_as<C>(dtype) && count == width; }
  const C* read(const std::byte* data, int64_t first, C* hold) const {
    const void* from = element_address(dtype, static_cast<const void*>(data), first);
    if (in_place()) return static_cast<const C*>(from);
    if (stored_as<C>(dtype))
      std::memcpy(hold, from, static_cast<std::size_t>(count) * sizeof(C));
    else
      load_range<C>(dtype, from, count, hold);
    return hold;
  }
  C* target(std::byte* data, int64_t first, C* hold) const {
    return in_place() ? reinterpret_cast<C*>(data) + first : hold;
  }
  void write(std::byte* data, int64_t first, const C* hold) const {
    if (!in_place()) store_range<C>(dtype, element_address(dtype, static_cast<void*>(data), first), count, hold);
  }
};

struct Extent {
  int64_t steps, neurons, strip;
  int64_t strips() const { return (neurons + strip - 1) / strip; }
  double cost(double element) const { return element * static_cast<double>(steps) * static_cast<double>(strip); }
};

template <class C>
HostKernel forward_kernel(DType dtype, Extent extent, const Neuron& neuron) {
  return [=, step = forward_function<C>(neuron.reset)](std::byte* const* buffers) {
    const math::FlushDenormals flush;
    parallel_for_cost(extent.strips(), extent.cost(1.0), [&](int64_t begin, int64_t end) {
      Scratch<C> hold(3 * max_strip, "spiking_neuron");
      std::fill_n(hold.data(), 3 * max_strip, C(0));
      C *potential = hold.data(), *input = potential + max_strip, *spikes = input + max_strip;
      for (int64_t s = begin; s < end; ++s) {
        const int64_t first = s * extent.strip, count = std::min(extent.strip, extent.neurons - first);
        const Row<C> row{dtype, count, rounded_up(count, widest)};
        std::memcpy(potential, reinterpret_cast<const C*>(buffers[1]) + first,
                    static_cast<std::size_t>(count) * sizeof(C));
        for (int64_t t = 0; t < extent.steps; ++t) {
          const int64_t at = t * extent.neurons + first;
          C* to = row.target(buffers[2], at, spikes);
          step(neuron, row.read(buffers[0], at, input), potential, nullptr, to, row.width);
          row.write(buffers[2], at, spikes);
        }
        std::memcpy(reinterpret_cast<C*>(buffers[3]) + first, potential, static_cast<std::size_t>(count) * sizeof(C));
      }
      return 0;
    });
  };
}

template <class C>
HostKernel backward_kernel(DType dtype, Extent extent, const Neuron& neuron) {
  return [=, forward = forward_function<C>(neuron.reset),
          backward = backward_function<C>(neuron)](std::byte* const* buffers) {
    const math::FlushDenormals flush;
    const int64_t strip = rounded_up(extent.strip, widest);
    parallel_for_cost(extent.strips(), extent.cost(3.0), [&](int64_t begin, int64_t end) {
      Scratch<C> hold(3 * strip, "spiking_neuron_grad"), charges(extent.steps * strip, "charges of neurons");
      std::fill_n(hold.data(), 3 * strip, C(0));
      C *state = hold.data(), *input = state + strip, *output = input + strip;
      for (int64_t s = begin; s < end; ++s) {
        const int64_t first = s * extent.strip, count = std::min(extent.strip, extent.neurons - first);
        const auto bytes = static_cast<std::size_t>(count) * sizeof(C);
        const Row<C> row{dtype, count, rounded_up(count, widest)};
        std::memcpy(state, reinterpret_cast<const C*>(buffers[3]) + first, bytes);
        for (int64_t t = 0; t < extent.steps; ++t) {
          forward(neuron, row.read(buffers[2], t * extent.neurons + first, input), state, charges.data() + t * strip,
                  nullptr, row.width);
        }
        std::memcpy(state, reinterpret_cast<const C*>(buffers[1]) + first, bytes);
        for (int64_t t = extent.steps; t-- > 0;) {
          const int64_t at = t * extent.neurons + first;
          C* to = row.target(buffers[4], at, output);
          backward(neuron, row.read(buffers[0], at, input), charges.data() + t * strip, state, to, row.width);
          row.write(buffers[4], at, output);
        }
        std::memcpy(reinterpret_cast<C*>(buffers[5]) + first, state, bytes);
      }
      return 0;
    });
  };
}

// Strips as wide as keeps the charges of all steps in the second cache, and enough of them for several threads.
Extent extent_of(const ArrayType& inputs, bool keeps_charges) {
  Extent extent{inputs.shape[0], inputs.size() / std::max<int64_t>(1, inputs.shape[0]), max_strip};
  const int64_t size = inputs.dtype == DType::float64 ? 8 : 4;
  if (keeps_charges) extent.strip = std::clamp<int64_t>(charge_bytes / (size * extent.steps), widest, max_strip);
  extent.strip = std::min(extent.strip, std::max(widest, extent.neurons / 16)) / widest * widest;
  return extent;
}

HostKernel make_forward(const KernelRequest& request) {
  const ArrayType& inputs = request.inputs[0];
  if (inputs.size() == 0) return {};
  const Neuron neuron(request.attrs);
  const Extent extent = extent_of(inputs, false);
  return inputs.dtype == DType::float64 ? forward_kernel<double>(inputs.dtype, extent, neuron)
                                        : forward_kernel<float>(inputs.dtype, extent, neuron);
}

HostKernel make_backward(const KernelRequest& request) {
  const ArrayType& inputs = request.inputs[2];
  if (inputs.size() == 0) return {};
  const Neuron neuron(request.attrs);
  const Extent extent = extent_of(inputs, true);
  return inputs.dtype == DType::float64 ? backward_kernel<double>(inputs.dtype, extent, neuron)
                                        : backward_kernel<float>(inputs.dtype, extent, neuron);
}

}  // namespace

KernelMakers spiking_neuron_makers() {
  return {{"spiking_neuron", make_forward}, {"spiking_neuron_grad", make_backward}};
}

}  // namespace capibara::cpu
