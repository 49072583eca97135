// Fused spiking neurons: leaky integrate-and-fire over time, with surrogate derivatives.
#pragma once

#include <capibara/array.h>

#include <optional>
#include <string>

namespace capibara::kernels {

struct SpikingOptions {
  double threshold = 1.0;
  double leak_rate = 0.1;            // the fraction of the potential above reset_value lost per step, from 0 to 1
  std::string reset = "hard";        // to reset_value; "soft": subtract the threshold; "none": the potential is kept
  double reset_value = 0.0;          // also the resting potential
  std::string surrogate = "atan";    // or "sigmoid", "fast_sigmoid", "triangle", "rectangle", "straight_through"
  std::optional<double> slope = {};  // of the surrogate; by default 2, 25, 25, 1 and 1 for those with a slope
  bool detach_reset = false;         // true: the reset, as a function of the spike, has no derivative
  std::optional<Array> initial_potential = {};  // of the shape of one step; by default reset_value everywhere
  int64_t axis = 0;                             // of time
};
struct SpikingResult {
  Array spikes, potential;  // the potential after the last step
};
// Spikes of leaky integrate-and-fire neurons over an axis of time, with a surrogate derivative.
// Steps run along the axis of `inputs` that the options name, by default the first; each other element is an
// independent neuron:
//   u = potential - leak_rate * (potential - reset_value) + input
//   spike = 1 where u >= threshold, else 0
//   potential = u * (1 - spike) + reset_value * spike ("hard"), u - threshold * spike ("soft"), u ("none")
// The derivative of a spike with respect to d = u - threshold is that of the surrogate, with k its slope:
//   atan               k / 2 / (1 + (pi / 2 * k * d)^2)
//   sigmoid            k * s * (1 - s), s = 1 / (1 + exp(-k * d))
//   fast_sigmoid       1 / (1 + k * |d|)^2
//   triangle           max(0, 1 - k * |d|)
//   rectangle          k where |d| < 1 / (2 * k), else 0
//   straight_through   1
// Potentials are at least float32; spikes have the dtype of `inputs`.
SpikingResult spiking_neuron(const Array& inputs, const SpikingOptions& options = {});

}  // namespace capibara::kernels
