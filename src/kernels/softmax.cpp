// Softmax of rows and its reverse derivative: their meaning as compositions, their records, the function.
#include <capibara/kernels/norms.h>

#include "kernels/composed.h"
#include "kernels/rows.h"

namespace capibara::kernels {

namespace {

Arrays compose(std::span<const Array> in, const Attrs&) {
  const Array x = in[0].astype(sum_dtype(in[0].dtype()));
  const Array powers = jax::lax::exp(x - row_max(x));
  return {(powers / row_sum(powers)).astype(in[0].dtype())};
}

// (dy, y) -> dx
Arrays compose_grad(std::span<const Array> in, const Attrs&) {
  const DType wide = sum_dtype(in[1].dtype());
  const Array dy = in[0].astype(wide), y = in[1].astype(wide);
  return {(y * (dy - row_sum(dy * y))).astype(in[1].dtype())};
}

TypeResult forward_type(std::span<const ArrayType> types, const Attrs&) {
  require_count("softmax", types, 1);
  require_rows("softmax", types[0]);
  return Types{types[0].strong()};
}

TypeResult grad_type(std::span<const ArrayType> types, const Attrs&) {
  require_count("softmax_grad", types, 2);
  require_rows("softmax_grad", types[1], "y");
  require_type("softmax_grad", "dy", types[0], types[1].strong());
  return Types{types[1].strong()};
}

// A batch is more rows.
BatchResult batch_rows(const BatchArgs& args) {
  Arrays inputs;
  for (std::size_t i = 0; i < args.inputs.size(); ++i)
    inputs.push_back(batch_at(args.inputs[i], args.dims[i], args.axis));
  return {capibara::bind(args.primitive, inputs, args.attrs), {0}};
}

Arrays pull_back(const PullbackArgs& args) {
  static const Primitive& handle = *new Primitive(primitive("softmax_grad"));
  return capibara::bind(handle, Arrays{args.cotangents[0], args.results[0]});
}

PrimitiveRecord row_record(const char* name, const char* doc) {
  PrimitiveRecord record;
  record.name = name;
  record.doc = doc;
  record.dtypes = float_dtypes;
  record.traits.nan_checked = true;
  record.batch = batch_rows;
  return record;
}

}  // namespace

Family softmax_records() {
  PrimitiveRecord forward = row_record("softmax", "exp(x) divided by its sum along the last axis.");
  forward.type = forward_type;
  forward.lower = compose;
  forward.flops = [](std::span<const ArrayType> types, const Attrs&) { return count_flops(5, types[0]); };
  forward.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (const ArrayType& x : sample_rows(dtype)) samples.push_back({{x}, {}});
    return samples;
  };
  PrimitiveRecord backward = row_record("softmax_grad", "Pulls a cotangent back through softmax, of its result.");
  backward.type = grad_type;
  backward.lower = compose_grad;
  backward.flops = [](std::span<const ArrayType> types, const Attrs&) { return count_flops(4, types[0]); };
  backward.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (const ArrayType& x : sample_rows(dtype)) samples.push_back({{x, x}, {}});
    return samples;
  };
  return {composed(std::move(forward), {pull_back, {true}}), composed(std::move(backward))};
}

Array softmax(const Array& x, const SoftmaxOptions& options) {
  static const Primitive& handle = *new Primitive(primitive("softmax"));
  require_rows("softmax", x.type());
  const int64_t axis = checked_axis("softmax", options.axis, x.type()), last = x.ndim() - 1;
  const Array y = bind1(handle, {move_axis(x, axis, last)});
  return move_axis(y, last, axis);
}

}  // namespace capibara::kernels
