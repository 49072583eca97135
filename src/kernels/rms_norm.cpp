// RMS norm and its reverse derivative: their meaning as compositions, their records, the function.
#include <capibara/kernels/norms.h>

#include "kernels/composed.h"
#include "kernels/rows.h"

namespace capibara::kernels {

namespace {

// (x, scale) -> (y, 1 / root mean square)
Arrays compose(std::span<const Array> in, const Attrs& attrs) {
  const DType wide = sum_dtype(in[0].dtype());
  const Array x = in[0].astype(wide);
  const Array inverse = jax::lax::rsqrt(row_mean(x * x) + Array(attrs.real("epsilon")));
  const Array normal = x * inverse, y = normal * in[1].astype(wide);
  return {y.astype(in[0].dtype()), drop_last(inverse)};
}

// (dy, x, scale, 1 / root mean square) -> (dx, dscale)
Arrays compose_grad(std::span<const Array> in, const Attrs&) {
  const DType wide = sum_dtype(in[1].dtype());
  const Array dy = in[0].astype(wide), inverse = add_last(in[3]), normal = in[1].astype(wide) * inverse;
  const Array weighted = dy * in[2].astype(wide);
  const Array dx = inverse * (weighted - normal * row_mean(weighted * normal));
  return {dx.astype(in[1].dtype()), column_sum(dy * normal).astype(in[2].dtype())};
}

TypeResult forward_type(std::span<const ArrayType> types, const Attrs&) {
  require_count("rms_norm", types, 2);
  require_rows("rms_norm", types[0]);
  require_type("rms_norm", "scale", types[1], column_type(types[0]));
  return Types{types[0].strong(), row_type(types[0])};
}

TypeResult grad_type(std::span<const ArrayType> types, const Attrs&) {
  require_count("rms_norm_grad", types, 4);
  const ArrayType& x = types[1];
  require_rows("rms_norm_grad", x);
  require_type("rms_norm_grad", "dy", types[0], x.strong());
  require_type("rms_norm_grad", "scale", types[2], column_type(x));
  require_type("rms_norm_grad", "inverse", types[3], row_type(x));
  return Types{x.strong(), column_type(x)};
}

// A batch is more rows if the scale is shared.
BatchResult batch_rows(const BatchArgs& args) {
  if (!args.mapped(0) || args.mapped(1)) return {};
  const Array x = move_axis(args.inputs[0], args.dims[0], 0);
  return {capibara::bind(args.primitive, Arrays{x, args.inputs[1]}, args.attrs), {0, 0}};
}

Arrays pull_back(const PullbackArgs& args) {
  static const Primitive& handle = *new Primitive(primitive("rms_norm_grad"));
  if (!args.cotangents[0].defined() || args.cotangents[1].defined()) return {};
  return capibara::bind(handle, Arrays{args.cotangents[0], args.operands[0], args.operands[1], args.results[1]});
}

PrimitiveRecord forward_record() {
  PrimitiveRecord record = fused_record(
      "rms_norm",
      "Divides the last axis by its root mean square, then scales it; returns the inverse root mean squares too.");
  record.type = forward_type;
  record.lower = compose;
  record.batch = batch_rows;
  record.flops = [](std::span<const ArrayType> types, const Attrs&) { return count_flops(4, types[0]); };
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (const ArrayType& x : sample_rows(dtype)) samples.push_back({{x, column_type(x)}, {{"epsilon", 1e-6}}});
    return samples;
  };
  return composed(std::move(record), {pull_back, {false, true}});
}

PrimitiveRecord grad_record() {
  PrimitiveRecord record = fused_record("rms_norm_grad", "Pulls a cotangent back through rms_norm.");
  record.type = grad_type;
  record.lower = compose_grad;
  record.flops = [](std::span<const ArrayType> types, const Attrs&) { return count_flops(10, types[1]); };
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (const ArrayType& x : sample_rows(dtype)) samples.push_back({{x, x, column_type(x), row_type(x)}, {}});
    return samples;
  };
  return composed(std::move(record));
}

}  // namespace

Family rms_norm_records() { return {forward_record(), grad_record()}; }

Array rms_norm(const Array& x, const Array& scale, const RmsNormOptions& options) {
  static const Primitive& handle = *new Primitive(primitive("rms_norm"));
  return capibara::bind(handle, Arrays{x, scale}, {{"epsilon", options.epsilon}})[0];
}

}  // namespace capibara::kernels
