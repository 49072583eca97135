// Layer norm and its reverse derivative: their meaning as compositions, their records, the function.
#include <capibara/kernels/norms.h>

#include "kernels/composed.h"
#include "kernels/rows.h"

namespace capibara::kernels {

namespace {

// (x, scale, bias) -> (y, mean, 1 / deviation)
Arrays compose(std::span<const Array> in, const Attrs& attrs) {
  const DType wide = sum_dtype(in[0].dtype());
  const Array x = in[0].astype(wide), mean = row_mean(x), centered = x - mean;
  const Array deviation = jax::lax::rsqrt(row_mean(centered * centered) + Array(attrs.real("epsilon")));
  const Array product = centered * deviation, product_wide = product * in[1].astype(wide);
  const Array y = product_wide + in[2].astype(wide);
  return {y.astype(in[0].dtype()), drop_last(mean), drop_last(deviation)};
}

// (dy, x, scale, mean, 1 / deviation) -> (dx, dscale, dbias)
Arrays compose_grad(std::span<const Array> in, const Attrs&) {
  const DType wide = sum_dtype(in[1].dtype());
  const Array dy = in[0].astype(wide), mean = add_last(in[3]), deviation = add_last(in[4]);
  const Array normal = (in[1].astype(wide) - mean) * deviation, weighted = dy * in[2].astype(wide);
  const Array difference = weighted - row_mean(weighted);
  const Array dx = deviation * (difference - normal * row_mean(weighted * normal));
  return {dx.astype(in[1].dtype()), column_sum(dy * normal).astype(in[2].dtype()),
          column_sum(dy).astype(in[2].dtype())};
}

// ---- types ------------------------------------------------------------------------------------------------------

TypeResult forward_type(std::span<const ArrayType> types, const Attrs&) {
  require_count("layer_norm", types, 3);
  require_rows("layer_norm", types[0]);
  require_type("layer_norm", "scale", types[1], column_type(types[0]));
  require_type("layer_norm", "bias", types[2], column_type(types[0]));
  return Types{types[0].strong(), row_type(types[0]), row_type(types[0])};
}

TypeResult grad_type(std::span<const ArrayType> types, const Attrs&) {
  require_count("layer_norm_grad", types, 5);
  const ArrayType& x = types[1];
  require_rows("layer_norm_grad", x);
  require_type("layer_norm_grad", "dy", types[0], x.strong());
  require_type("layer_norm_grad", "scale", types[2], column_type(x));
  require_type("layer_norm_grad", "mean", types[3], row_type(x));
  require_type("layer_norm_grad", "deviation", types[4], row_type(x));
  return Types{x.strong(), column_type(x), column_type(x)};
}

// ---- records ----------------------------------------------------------------------------------------------------

const Primitive& grad_primitive() {
  static const Primitive& handle = *new Primitive(primitive("layer_norm_grad"));
  return handle;
}

// A batch is more rows if scale and bias are shared.
BatchResult batch_rows(const BatchArgs& args) {
  if (!args.mapped(0) || args.mapped(1) || args.mapped(2)) return {};
  return {
      capibara::bind(args.primitive, Arrays{move_axis(args.inputs[0], args.dims[0], 0), args.inputs[1], args.inputs[2]},
                     args.attrs),
      {0, 0, 0}};
}

Arrays pull_back(const PullbackArgs& args) {
  const auto& [y, mean, deviation] = std::tie(args.cotangents[0], args.cotangents[1], args.cotangents[2]);
  if (!y.defined() || mean.defined() || deviation.defined()) return {};
  return capibara::bind(grad_primitive(),
                        Arrays{y, args.operands[0], args.operands[1], args.results[1], args.results[2]});
}

PrimitiveRecord forward_record() {
  PrimitiveRecord record = fused_record(
      "layer_norm",
      "Normalizes the last axis, then scales and shifts it; returns the means and inverse deviations too.");
  record.type = forward_type;
  record.lower = compose;
  record.batch = batch_rows;
  record.flops = [](std::span<const ArrayType> types, const Attrs&) { return count_flops(8, types[0]); };
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (const ArrayType& x : sample_rows(dtype))
      samples.push_back({{x, column_type(x), column_type(x)}, {{"epsilon", 1e-5}}});
    return samples;
  };
  return composed(std::move(record), {pull_back, {false, true, true}});
}

PrimitiveRecord grad_record() {
  PrimitiveRecord record = fused_record("layer_norm_grad", "Pulls a cotangent back through layer_norm.");
  record.type = grad_type;
  record.lower = compose_grad;
  record.flops = [](std::span<const ArrayType> types, const Attrs&) { return count_flops(16, types[1]); };
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (const ArrayType& x : sample_rows(dtype))
      samples.push_back({{x, x, column_type(x), row_type(x), row_type(x)}, {}});
    return samples;
  };
  return composed(std::move(record));
}

}  // namespace

Family layer_norm_records() { return {forward_record(), grad_record()}; }

Array layer_norm(const Array& x, const Array& scale, const Array& bias, const LayerNormOptions& options) {
  static const Primitive& handle = *new Primitive(primitive("layer_norm"));
  return capibara::bind(handle, Arrays{x, scale, bias}, {{"epsilon", options.epsilon}})[0];
}

}  // namespace capibara::kernels
