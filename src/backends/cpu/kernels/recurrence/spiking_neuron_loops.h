// One step of a strip of spiking neurons, forward and backward.
#pragma once

#include <capibara/attributes.h>

#include <cstdint>
#include <string>

namespace capibara::cpu::spiking {

inline constexpr int64_t widest = 16;  // neurons of the widest vectors: strips are padded to whole ones

enum class Reset { hard, to_zero, soft, none };  // to_zero: hard, and with a reset value of 0
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
        reset(reset_of(attrs.text("reset"), reset_value)),
        surrogate(surrogate_of(attrs.text("surrogate"))),
        detach_reset(attrs.boolean("detach_reset")) {}

  static Reset reset_of(const std::string& name, double value) {
    if (name == "hard") return value == 0 ? Reset::to_zero : Reset::hard;
    return name == "soft" ? Reset::soft : Reset::none;
  }
  static Surrogate surrogate_of(const std::string& name) {
    if (name == "atan") return Surrogate::atan;
    if (name == "sigmoid") return Surrogate::sigmoid;
    if (name == "fast_sigmoid") return Surrogate::fast_sigmoid;
    if (name == "triangle") return Surrogate::triangle;
    return name == "rectangle" ? Surrogate::rectangle : Surrogate::straight_through;
  }
};

// What a forward step writes in addition to potentials.
enum class Written { spikes, charges };

template <class C>
struct ForwardRow {
  const C *input, *next;
  C *potential, *out;
  int64_t width;
  bool streamed;  // `out` bypasses the caches
};

template <class C>
struct BackwardRow {
  const C *from_spike, *next, *charges;
  C *cotangent, *to;
  int64_t width;
  bool streamed;  // `to` bypasses the caches
};

template <class C>
using ForwardStep = void (*)(const Neuron&, const ForwardRow<C>&);
template <class C>
using BackwardStep = void (*)(const Neuron&, const BackwardRow<C>&);

// The steps for the widest vectors of this processor; C is float or double.
template <class C>
ForwardStep<C> forward_function(Reset reset, Written written);
template <class C>
BackwardStep<C> backward_function(const Neuron& neuron);

}  // namespace capibara::cpu::spiking
