// Reductions along axes.
#include "models/named/catalog.h"

#include <capibara/numpy.h>

namespace capibara::models {

namespace jnp = jax::numpy;

namespace {

jnp::Axis axis_of(const Operands& c) {
  const Value& axis = c["axis"];
  if (!axis.given() || axis.is_none()) return {};
  return jnp::Axis(Ints(axis.integers()));
}

template <class Options>
Compute reduction(Array (*function)(const Array&, const Options&)) {
  return [function](const Operands& c) -> Value {
    Options options;
    options.axis = axis_of(c);
    options.keepdims = c.flag("keepdim");
    return function(c.array(0), options);
  };
}

Compute position(Array (*function)(const Array&, const jnp::ArgmaxOptions&)) {
  return [function](const Operands& c) -> Value {
    jnp::ArgmaxOptions options;
    const Value& axis = c["axis"];
    if (axis.given() && !axis.is_none()) options.axis = axis.integers().at(0);
    options.keepdims = c.flag("keepdim");
    return function(c.array(0), options);
  };
}

Value variance(const Operands& c) {
  jnp::VarOptions options;
  options.axis = axis_of(c);
  options.keepdims = c.flag("keepdim");
  options.ddof = c["correction"].number();
  return jnp::var(c.array(0), options);
}

}  // namespace

Records reduction_records() {
  const char* constructor = "axis=None, keepdim=False, input";
  const char* keys = "input[?], axis=None, keepdim=False -> output[?]";
  return {
      {"Mean", constructor, keys, "The mean along axes.", reduction(jnp::mean), reduce_rule()},
      {"Sum", constructor, keys, "The sum along axes.", reduction(jnp::sum), reduce_rule()},
      {"Max", constructor, keys, "The maximum along axes.", reduction(jnp::max), reduce_rule()},
      {"Min", constructor, keys, "The minimum along axes.", reduction(jnp::min), reduce_rule()},
      {"Prod", constructor, keys, "The product along axes.", reduction(jnp::prod), reduce_rule()},
      {"ArgMax", constructor, keys, "Where the maximum is.", position(jnp::argmax), reduce_rule()},
      {"ArgMin", constructor, keys, "Where the minimum is.", position(jnp::argmin), reduce_rule()},
      {"Variance", "axis=None, keepdim=False, correction=0.0, input",
       "input[?], axis=None, keepdim=False, correction=0.0 -> output[?]", "The variance along axes.", variance,
       reduce_rule()},
  };
}

}  // namespace capibara::models
