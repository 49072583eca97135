// How links of optimizers are written: a link has one list of arrays as its state.
#pragma once

#include <capibara/lax.h>
#include <capibara/training/optimizers.h>

namespace capibara::optimizers {

using Result = std::pair<Arrays, OptimizerState>;

// A link without state.
template <class Map>
Optimizer stateless(Map map) {
  return Optimizer([](const Arrays&) { return OptimizerState{{}}; },
                   [map](const Arrays& gradients, const OptimizerState& state, const Arrays& parameters) {
                     return Result(map(gradients, parameters), state);
                   });
}

// A link that looks at one array at a time, without its parameter.
template <class Map>
Optimizer each_leaf(Map map) {
  return stateless([map](const Arrays& gradients, const Arrays&) {
    Arrays results;
    for (const Array& gradient : gradients) results.push_back(map(gradient));
    return results;
  });
}

inline Array zero_count() { return jax::lax::full({}, 0, DType::int32); }
// One more; the largest int32 stays.
Array next_count(const Array& count);
// decay * mean + (1 - decay) * value.
Array moving_average(const Array& value, const Array& mean, double decay);
// 1 - decay^count, by which averages that began at zero are divided.
Array bias_correction(double decay, const Array& count);
// The mean of the squares of all elements.
Array mean_square(const Array& x);

}  // namespace capibara::optimizers
