// Building blocks for links of optimizers; the state of a link is one list of arrays.
#pragma once

#include <capibara/lax.h>
#include <capibara/training/optimizers.h>

namespace capibara::optimizers {

using Result = std::pair<Arrays, OptimizerState>;

// A stateless link.
template <class Map>
Optimizer stateless(Map map) {
  return Optimizer([](const Arrays&) { return OptimizerState{{}}; },
                   [map](const Arrays& gradients, const OptimizerState& state, const Arrays& parameters) {
                     return Result(map(gradients, parameters), state);
                   });
}

// A stateless link that processes each array independently, without its parameter.
template <class Map>
Optimizer each_leaf(Map map) {
  return stateless([map](const Arrays& gradients, const Arrays&) {
    Arrays results;
    for (const Array& gradient : gradients) results.push_back(map(gradient));
    return results;
  });
}

inline Array zero_count() { return jax::lax::full({}, 0, DType::int32); }
// Increments, saturating at the largest int32.
Array next_count(const Array& count);
// decay * mean + (1 - decay) * value.
Array moving_average(const Array& value, const Array& mean, double decay);
// 1 - decay^count, the divisor for averages that began at zero.
Array bias_correction(double decay, const Array& count);
// The mean of the squares of all elements.
Array mean_square(const Array& x);

}  // namespace capibara::optimizers
