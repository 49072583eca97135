// Table rows for jax.nn.initializers: functions that return functions of (key, shape, dtype=None, out_sharding=None).
#include <capibara/nn/initializers.h>

#include "library/table/families.h"

namespace capibara::library {

namespace initializers = jax::nn::initializers;

namespace {

const Signature& call_signature() {
  static const Signature signature("key, shape, dtype=None, out_sharding=None");
  return signature;
}

// zeros, ones and constants accept any key, even None.
Array key_or_nothing(const Arguments& a) { return a.given("key") && a["key"].array() ? *a["key"].array() : Array(); }

Value callable(const char* name, initializers::Initializer init, bool draws = true) {
  return Callable([name, init = std::move(init), draws](const Values& given) -> Value {
    Values values = given;
    values.resize(4);
    const Arguments a(name, call_signature(), values);
    a.require_absent("out_sharding");
    return init(draws ? a.array("key") : key_or_nothing(a), a.shape("shape"), a.optional_dtype("dtype"));
  });
}

initializers::FanOptions fans(const Arguments& a) {
  return {.in_axis = a.ints("in_axis"),
          .out_axis = a.ints("out_axis"),
          .batch_axis = a.ints("batch_axis"),
          .dtype = a.optional_dtype("dtype")};
}

#define CAPIBARA_FAN_INITIALIZER(name, doc)                                                           \
  {                                                                                                   \
#name, "in_axis=-2, out_axis=-1, batch_axis=(), dtype=None",                                      \
        [](const Arguments& a) -> Value { return callable(#name, initializers::name(fans(a))); }, doc \
  }

const Function nn_initializers_functions[] = {
    {"zeros", "key: ArrayLike | None, shape, dtype=None, out_sharding=None -> Array",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return initializers::zeros(key_or_nothing(a), a.shape("shape"), a.optional_dtype("dtype"));
     },
     "Zeros, whatever the key."},
    {"ones", "key: ArrayLike | None, shape, dtype=None, out_sharding=None -> Array",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return initializers::ones(key_or_nothing(a), a.shape("shape"), a.optional_dtype("dtype"));
     },
     "Ones, whatever the key."},
    {"constant", "value, dtype=None",
     [](const Arguments& a) -> Value {
       return callable("constant", initializers::constant(a.array("value"), a.optional_dtype("dtype")), false);
     },
     "An initializer that fills with a value."},
    {"uniform", "scale=0.01, dtype=None",
     [](const Arguments& a) -> Value {
       return callable("uniform", initializers::uniform(a.array("scale"), a.optional_dtype("dtype")));
     },
     "An initializer that draws uniformly from [0, scale)."},
    {"normal", "stddev=0.01, dtype=None",
     [](const Arguments& a) -> Value {
       return callable("normal", initializers::normal(a.array("stddev"), a.optional_dtype("dtype")));
     },
     "An initializer that draws from the normal distribution with this standard deviation."},
    {"truncated_normal", "stddev=0.01, dtype=None, lower: ArrayLike = -2.0, upper: ArrayLike = 2.0",
     [](const Arguments& a) -> Value {
       return callable("truncated_normal", initializers::truncated_normal({.stddev = a.array("stddev"),
                                                                           .dtype = a.optional_dtype("dtype"),
                                                                           .lower = a.array("lower"),
                                                                           .upper = a.array("upper")}));
     },
     "An initializer that draws from the normal distribution cut off at lower and upper, then scales."},
    {"variance_scaling", "scale, mode: str, distribution, in_axis=-2, out_axis=-1, batch_axis=(), dtype=None",
     [](const Arguments& a) -> Value {
       return callable("variance_scaling", initializers::variance_scaling(a.real("scale"), a.text("mode"),
                                                                          a.text("distribution"), fans(a)));
     },
     "An initializer whose variance is scale divided by the fan that the mode names."},
    CAPIBARA_FAN_INITIALIZER(glorot_uniform, "Uniform with variance 1 / average fan."),
    CAPIBARA_FAN_INITIALIZER(glorot_normal, "Truncated normal with variance 1 / average fan."),
    CAPIBARA_FAN_INITIALIZER(xavier_uniform, "Uniform with variance 1 / average fan: glorot_uniform."),
    CAPIBARA_FAN_INITIALIZER(xavier_normal, "Truncated normal with variance 1 / average fan: glorot_normal."),
    CAPIBARA_FAN_INITIALIZER(lecun_uniform, "Uniform with variance 1 / fan in."),
    CAPIBARA_FAN_INITIALIZER(lecun_normal, "Truncated normal with variance 1 / fan in."),
    CAPIBARA_FAN_INITIALIZER(he_uniform, "Uniform with variance 2 / fan in."),
    CAPIBARA_FAN_INITIALIZER(he_normal, "Truncated normal with variance 2 / fan in."),
    CAPIBARA_FAN_INITIALIZER(kaiming_uniform, "Uniform with variance 2 / fan in: he_uniform."),
    CAPIBARA_FAN_INITIALIZER(kaiming_normal, "Truncated normal with variance 2 / fan in: he_normal."),
    {"orthogonal", "scale=1.0, column_axis=-1, dtype=None",
     [](const Arguments& a) -> Value {
       return callable("orthogonal", initializers::orthogonal({.scale = a.array("scale"),
                                                               .column_axis = a.integer("column_axis"),
                                                               .dtype = a.optional_dtype("dtype")}));
     },
     "An initializer of orthonormal columns, or rows where there are fewer, times scale."},
    {"delta_orthogonal", "scale=1.0, column_axis=-1, dtype=None",
     [](const Arguments& a) -> Value {
       return callable("delta_orthogonal", initializers::delta_orthogonal({.scale = a.array("scale"),
                                                                           .column_axis = a.integer("column_axis"),
                                                                           .dtype = a.optional_dtype("dtype")}));
     },
     "An initializer of convolution kernels: orthogonal in the middle, zero elsewhere."},
};

}  // namespace

Family nn_initializers() { return nn_initializers_functions; }

}  // namespace capibara::library
