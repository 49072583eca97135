// fused_gelu_dropout and fast_layer_norm: options of the primitives.
#include <capibara/jit.h>
#include <capibara/kernels/dense.h>
#include <capibara/kernels/norms.h>
#include <capibara/lax.h>
#include <capibara/remat.h>

#include "lax/rules.h"
#include "program/trace/trace.h"

namespace capibara::kernels {

namespace {

namespace lax = jax::lax;

// The words of a typed or a raw key.
Array key_words_for(const Array& key) {
  static const Primitive& unwrap = *new Primitive(primitive("random_unwrap"));
  return is_key(key.dtype()) ? bind1(unwrap, {key}) : key;
}

Array gelu_dropout(const Array& x, const Array& words, double rate, bool approximate) {
  static const Primitive& handle = *new Primitive(primitive("gelu_dropout"));
  return bind1(handle, {x, words}, {{"rate", rate}, {"approximate", approximate}});
}

void check_options(const Array& x, const GeluDropoutOptions& options) {
  if (!(options.rate >= 0 && options.rate <= 1))
    throw ValueError(concat("fused_gelu_dropout: expected a number in [0, 1] (argument 'rate'), got ", options.rate));
  if (options.training && options.rate > 0 && !options.key) {
    throw ValueError(concat("fused_gelu_dropout: training with rate ", options.rate,
                            " needs a key (argument 'key'), such as jax.random.key(0); a key used twice drops the same "
                            "elements twice"));
  }
  if (options.inplace && (x.is_tracer() || !evaluating())) {
    throw ValueError(
        "fused_gelu_dropout: inplace=True gives the memory of x to the result, which a function being traced cannot "
        "do; "
        "give it away where the function is compiled, by jit(donate_argnums=)");
  }
}

}  // namespace

Array fused_gelu_dropout(const Array& x, const GeluDropoutOptions& options) {
  check_options(x, options);
  const double rate = options.training ? options.rate : 0;
  const Array words =
      rate > 0 ? key_words_for(*options.key) : lax::zeros(scalar_of(DType::uint32, 0).type().with_shape({2}));
  if (!options.inplace) return gelu_dropout(x, words, rate, options.approximate);
  // The composition: compiled code overwrites its input after reading it, which the device kernels do not.
  static const auto donating = jax::jit(
      [](const Array& a, const Array& b, double share, bool approximate) {
        static const Primitive& handle = *new Primitive(primitive("gelu_dropout"));
        const Attrs attrs = {{"rate", share}, {"approximate", approximate}};
        handle->type(Types{a.type(), b.type()}, attrs);
        return handle->lower(Arrays{a, b}, attrs)[0];
      },
      {.donate_argnums = {0}, .name = "fused_gelu_dropout"});
  return donating(x, words, rate, options.approximate);
}

Array fast_layer_norm(const Array& x, const FastLayerNormOptions& options) {
  if (x.ndim() == 0 || !is_floating(x.dtype())) {
    throw TypeError(concat("fast_layer_norm: expected a floating array of rank 1 or more (argument 'x'), got ",
                           to_string(x.type())));
  }
  const auto column = [&](double value) {
    return lax::broadcast_in_dim(scalar_of(x.dtype(), value), {x.shape(-1)}, {});
  };
  const Array weight = options.weight ? *options.weight : column(1), bias = options.bias ? *options.bias : column(0);
  const auto norm = [epsilon = options.epsilon](const Array& a, const Array& b, const Array& c) {
    return layer_norm(a, b, c, {.epsilon = epsilon});
  };
  return options.memory_efficient ? jax::checkpoint(norm)(x, weight, bias) : norm(x, weight, bias);
}

}  // namespace capibara::kernels
