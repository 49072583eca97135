// Layer norm: its meaning as a composition, its types, its derivative.
#include "kernels/layer_norm.h"

#include <capibara/custom_derivatives.h>
#include <capibara/kernels.h>
#include <capibara/lax.h>
#include <capibara/numpy.h>

#include "program/derive.h"

namespace capibara::kernels {

namespace {

namespace jnp = jax::numpy;

DType sum_dtype(DType dtype) { return dtype == DType::float64 ? DType::float64 : DType::float32; }

Array row_mean(const Array& x) { return jnp::mean(x, {.axis = -1, .keepdims = true}); }

Arrays compose(std::span<const Array> in, const Attrs& attrs) {
  const DType wide = sum_dtype(in[0].dtype());
  const Array x = in[0].astype(wide), mean = row_mean(x), centered = x - mean;
  const Array deviation = jax::lax::rsqrt(row_mean(centered * centered) + Array(attrs.real("epsilon")));
  const Array product = centered * deviation, product_wide = product * in[1].astype(wide);
  const Array y = product_wide + in[2].astype(wide);
  return {y.astype(in[0].dtype()), jnp::squeeze(mean, -1), jnp::squeeze(deviation, -1)};
}

Arrays compose_grad(std::span<const Array> in, const Attrs&) {
  const DType wide = sum_dtype(in[1].dtype());
  const Array dy = in[0].astype(wide), mean = jnp::expand_dims(in[3], -1), deviation = jnp::expand_dims(in[4], -1);
  const Array normal = (in[1].astype(wide) - mean) * deviation, weighted = dy * in[2].astype(wide);
  const Array difference = weighted - row_mean(weighted);
  const Array dx = deviation * (difference - normal * row_mean(weighted * normal));
  auto over_rows = [&](const Array& values) { return jnp::sum(values.reshape({-1, values.shape(-1)}), {.axis = 0}); };
  return {dx.astype(in[1].dtype()), over_rows(dy * normal).astype(in[2].dtype()), over_rows(dy).astype(in[2].dtype())};
}

ArrayType row_type(const ArrayType& x) {
  ArrayType type = x.with_dtype(sum_dtype(x.dtype)).strong();
  type.shape.pop_back();
  return type;
}

BatchResult batch_composed(LowerRule rule, std::size_t outputs, const BatchArgs& args) {
  return {vmap_flat([&](std::span<const Array> xs) { return rule(xs, args.attrs); }, args.inputs, args.dims,
                    std::vector<int64_t>(outputs, 0), args.axis),
          std::vector<int64_t>(outputs, 0)};
}

}  // namespace

const Primitive& layer_norm_primitive() {
  static const Primitive instance = [] {
    PrimitiveRecord record;
    record.name = "layer_norm";
    record.doc = "Normalizes the last axis, then scales and shifts it.";
    record.type = [](std::span<const ArrayType> types, const Attrs&) {
      return TypeResult(Types{types[0].strong(), row_type(types[0]), row_type(types[0])});
    };
    record.lower = compose;
    record.batch = [](const BatchArgs& args) -> BatchResult {
      // More rows, where all share scale and bias.
      if (args.dims[0] == 0 && !args.mapped(1) && !args.mapped(2)) return {capibara::bind(args.primitive, args.inputs, args.attrs), {0, 0, 0}};
      return batch_composed(compose, 3, args);
    };
    return make_primitive(std::move(record));
  }();
  return instance;
}

const Primitive& layer_norm_grad_primitive() {
  static const Primitive instance = [] {
    PrimitiveRecord record;
    record.name = "layer_norm_grad";
    record.doc = "Pulls a cotangent back through layer_norm.";
    record.type = [](std::span<const ArrayType> types, const Attrs&) {
      return TypeResult(Types{types[1].strong(), types[2].strong(), types[2].strong()});
    };
    record.lower = compose_grad;
    record.batch = [](const BatchArgs& args) { return batch_composed(compose_grad, 3, args); };
    return make_primitive(std::move(record));
  }();
  return instance;
}

Array layer_norm(const Array& x, const Array& scale, const Array& bias, const LayerNormOptions& options) {
  if (x.ndim() == 0 || !is_floating(x.dtype())) {
    throw TypeError(concat("layer_norm: expected a floating array of rank 1 or more (argument 'x'), got ", to_string(x.type())));
  }
  for (const auto& [name, given] : {std::pair<const char*, const Array&>{"scale", scale}, {"bias", bias}}) {
    if (given.shape() != Shape{x.shape(-1)} || given.dtype() != x.dtype()) {
      throw TypeError(concat("layer_norm: expected ", to_string(x.type().with_shape({x.shape(-1)})), " (argument '", name, "'), got ",
                             to_string(given.type())));
    }
  }
  const Attrs attrs = {{"epsilon", options.epsilon}};
  auto call = jax::custom_vjp(
      [attrs](Array a, Array b, Array c) { return capibara::bind(layer_norm_primitive(), std::vector<Array>{a, b, c}, attrs)[0]; }, "layer_norm");
  call.defvjp(
      [attrs](Array a, Array b, Array c) {
        const Arrays out = capibara::bind(layer_norm_primitive(), std::vector<Array>{a, b, c}, attrs);
        return std::pair(out[0], std::tuple(a, b, out[1], out[2]));
      },
      [attrs](std::tuple<Array, Array, Array, Array> kept, Array dy) {
        const auto& [a, b, mean, deviation] = kept;
        const Arrays out = capibara::bind(layer_norm_grad_primitive(), std::vector<Array>{dy, a, b, mean, deviation}, attrs);
        return std::tuple(out[0], out[1], out[2]);
      });
  return call(x, scale, bias);
}

}  // namespace capibara::kernels
