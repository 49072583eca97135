// Table rows for capibara.kernels: spiking neurons.
#include <capibara/kernels/spiking.h>

#include "library/table/families.h"

namespace capibara::library {

namespace {

const Function spiking_rows[] = {
    {"spiking_neuron",
     "inputs, threshold: float = 1.0, leak_rate: float = 0.1, *, reset: str = 'hard', reset_value: float = 0.0, "
     "surrogate: str = 'atan', slope: float | None = None, detach_reset: bool = False, "
     "initial_potential: ArrayLike | None = None, return_potential: bool = False, axis: int = 0 "
     "-> Array | tuple[Array, Array]",
     [](const Arguments& a) -> Value {
       const kernels::SpikingResult result =
           kernels::spiking_neuron(a.array("inputs"), {.threshold = a.real("threshold"),
                                                       .leak_rate = a.real("leak_rate"),
                                                       .reset = a.text("reset"),
                                                       .reset_value = a.real("reset_value"),
                                                       .surrogate = a.text("surrogate"),
                                                       .slope = a.optional_real("slope"),
                                                       .detach_reset = a.flag("detach_reset"),
                                                       .initial_potential = a.optional_array("initial_potential"),
                                                       .axis = a.integer("axis")});
       if (a.flag("return_potential")) return std::pair(result.spikes, result.potential);
       return result.spikes;
     },
     "Spikes of leaky integrate-and-fire neurons over an axis of time, with a surrogate derivative."},
};

}  // namespace

Family fused_spiking() { return spiking_rows; }

}  // namespace capibara::library
