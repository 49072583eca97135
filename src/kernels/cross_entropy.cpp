// Cross-entropy of integer labels and its reverse derivative: their meaning as compositions, their records, the
// function.
//
// Forward saves one logarithm per row; backward recomputes the probabilities from logits and logarithm where it needs
// them. Neither stores an array of the logits' size other than the gradient.
#include <capibara/kernels/norms.h>

#include <cmath>
#include <limits>

#include "kernels/composed.h"
#include "kernels/rows.h"
#include "lax/shape/shape.h"

namespace capibara::kernels {

namespace {

namespace lax = jax::lax;

// The factor of each row's loss: 0 if the label is ignored, NaN if it is not a class, else 1.
Array row_factors(const Array& labels, int64_t classes, int64_t ignored, DType dtype) {
  const auto number = [&](double value) { return lax::broadcast_in_dim(scalar_of(dtype, value), labels.shape(), {}); };
  const Array limit = scalar_of(labels.dtype(), static_cast<double>(classes));
  const Array below = labels < limit;
  const Array valid = is_unsigned(labels.dtype()) ? below : (labels >= scalar_like(labels, 0)) & below;
  const Array one = number(1), unknown = number(std::numeric_limits<double>::quiet_NaN()), zero = number(0);
  const Array named = lax::select(valid, one, unknown);
  return lax::select(labels.astype(DType::int32) == scalar_of(DType::int32, static_cast<double>(ignored)), zero, named);
}

// The logit of each row's label; an arbitrary one if the label is not a class.
Array label_logits(const Array& logits, const Array& labels) {
  const int64_t classes = logits.shape(-1), rows = labels.size();
  const Array indices = labels.astype(DType::int32).reshape({rows, 1});
  const GatherDimensionNumbers numbers{.offset_dims = {},
                                       .collapsed_slice_dims = {1},
                                       .start_index_map = {1},
                                       .operand_batching_dims = {0},
                                       .start_indices_batching_dims = {0}};
  const Array picked = lax::gather(logits.reshape({rows, classes}), indices, numbers, {1, 1});
  return picked.reshape(labels.shape());
}

// (logits, labels) -> (loss, log-sum-exp)
Arrays compose(std::span<const Array> in, const Attrs& attrs) {
  const DType wide = sum_dtype(in[0].dtype());
  const double smoothing = attrs.real("label_smoothing");
  const Array logits = in[0].astype(wide), highest = row_max(logits);
  const Array logarithm = drop_last(highest + lax::log(row_sum(lax::exp(logits - highest))));
  const Array factors = row_factors(in[1], in[0].shape(-1), attrs.integer("ignore_index"), wide);
  Array target = label_logits(in[0], in[1]).astype(wide);
  if (smoothing != 0) {
    const Array mean = drop_last(row_mean(logits)), spread = mean * scalar_of(wide, smoothing);
    target = target * scalar_of(wide, 1 - smoothing) + spread;
  }
  // An ignored row has zero loss, whatever its logits.
  const Array zero = lax::full_like(factors, scalar_of(wide, 0)), ignored = factors == zero;
  return {lax::select(ignored, zero, (logarithm - target) * factors), logarithm};
}

// (dloss, logits, labels, logarithm) -> dlogits
Arrays compose_grad(std::span<const Array> in, const Attrs& attrs) {
  const DType wide = sum_dtype(in[1].dtype());
  const double smoothing = attrs.real("label_smoothing");
  const int64_t last = in[1].ndim() - 1, classes = in[1].shape(-1);
  const Array factors = row_factors(in[2], classes, attrs.integer("ignore_index"), wide);
  const Array zero = lax::full_like(factors, scalar_of(wide, 0)), ignored = factors == zero;
  const Array gradient = add_last(lax::select(ignored, zero, in[0] * factors));
  const Array logits = in[1].astype(wide), powers = lax::exp(logits - add_last(in[3]));
  const Array columns = lax::broadcasted_iota(DType::int32, in[1].shape(), last);
  const Array hit = columns == add_last(in[2].astype(DType::int32));
  const Array at = lax::full_like(powers, scalar_of(wide, 1 - smoothing)),
              off = lax::full_like(powers, scalar_of(wide, 0));
  Array difference = powers - lax::select(hit, at, off);
  if (smoothing != 0) difference = difference - scalar_of(wide, smoothing / static_cast<double>(classes));
  const Array skipped = lax::broadcast_in_dim(gradient == scalar_of(wide, 0), in[1].shape(), range(last + 1));
  return {lax::select(skipped, off, gradient * difference).astype(in[1].dtype())};
}

// ---- types and records ------------------------------------------------------------------------------------------

void require_labels(const char* op, const ArrayType& labels, const ArrayType& logits) {
  if (is_integer(labels.dtype) && labels.shape == row_type(logits).shape) return;
  throw TypeError(concat(op, ": expected integers of shape ", to_string(row_type(logits).with_dtype(DType::int32)),
                         " (argument 'labels'), one class for each row of logits ", to_string(logits), ", got ",
                         to_string(labels)));
}

TypeResult forward_type(std::span<const ArrayType> types, const Attrs&) {
  require_count("cross_entropy", types, 2);
  require_rows("cross_entropy", types[0], "logits");
  require_labels("cross_entropy", types[1], types[0]);
  if (types[0].shape.back() == 0)
    throw TypeError(
        concat("cross_entropy: expected at least one class (argument 'logits'), got ", to_string(types[0])));
  return Types{row_type(types[0]), row_type(types[0])};
}

TypeResult grad_type(std::span<const ArrayType> types, const Attrs&) {
  require_count("cross_entropy_grad", types, 4);
  const ArrayType& logits = types[1];
  require_rows("cross_entropy_grad", logits, "logits");
  require_type("cross_entropy_grad", "dloss", types[0], row_type(logits));
  require_labels("cross_entropy_grad", types[2], logits);
  require_type("cross_entropy_grad", "logarithm", types[3], row_type(logits));
  return Types{logits.strong()};
}

// A batch is more rows: shared labels or logits are repeated.
BatchResult batch_rows(const BatchArgs& args) {
  if (!args.mapped(0)) return {};
  Arrays inputs;
  for (std::size_t i = 0; i < args.inputs.size(); ++i)
    inputs.push_back(batch_at(args.inputs[i], args.dims[i], args.axis));
  return {capibara::bind(args.primitive, inputs, args.attrs), {0, 0}};
}

Arrays pull_back(const PullbackArgs& args) {
  static const Primitive& handle = *new Primitive(primitive("cross_entropy_grad"));
  if (!args.cotangents[0].defined() || args.cotangents[1].defined()) return {};
  Arrays pulled = capibara::bind(
      handle, Arrays{args.cotangents[0], args.operands[0], args.operands[1], args.results[1]}, args.attrs);
  pulled.push_back(Array());  // of the labels
  return pulled;
}

// Labels are 0, 1 or 2 of at least three classes.
std::vector<Sample> loss_samples(DType dtype, bool backward) {
  std::vector<Sample> samples;
  for (const ArrayType& x : sample_rows(dtype)) {
    const ArrayType row = row_type(x), labels = row.with_dtype(DType::int32);
    for (double smoothing : {0.0, 0.1}) {
      if (smoothing != 0 && x.rank() != 2) continue;
      Sample sample{backward ? Types{row, x, labels, row} : Types{x, labels},
                    {{"label_smoothing", smoothing}, {"ignore_index", int64_t{2}}}};
      sample.low = 0;
      samples.push_back(std::move(sample));
    }
  }
  return samples;
}

PrimitiveRecord forward_record() {
  PrimitiveRecord record =
      fused_record("cross_entropy",
                   "The negative logarithm of the probability of each row's label; returns the rows' logsumexp too.");
  record.type = forward_type;
  record.lower = compose;
  record.batch = batch_rows;
  record.flops = [](std::span<const ArrayType> types, const Attrs&) { return count_flops(4, types[0]); };
  record.samples = [](DType dtype) { return loss_samples(dtype, false); };
  return composed(std::move(record), {pull_back, {false, true}});
}

PrimitiveRecord grad_record() {
  PrimitiveRecord record;
  record.name = "cross_entropy_grad";
  record.doc = "Pulls a cotangent of the loss back through cross_entropy.";
  record.dtypes = {DType::float32, DType::float64};
  record.traits.nan_checked = true;
  record.type = grad_type;
  record.lower = compose_grad;
  record.flops = [](std::span<const ArrayType> types, const Attrs&) { return count_flops(4, types[1]); };
  record.samples = [](DType dtype) { return loss_samples(dtype, true); };
  return composed(std::move(record));
}

}  // namespace

Family cross_entropy_records() { return {forward_record(), grad_record()}; }

Array cross_entropy(const Array& logits, const Array& labels, const CrossEntropyOptions& options) {
  static const Primitive& handle = *new Primitive(primitive("cross_entropy"));
  if (!(options.label_smoothing >= 0 && options.label_smoothing < 1)) {
    throw ValueError(concat("cross_entropy: expected a number in [0, 1) (argument 'label_smoothing'), got ",
                            options.label_smoothing));
  }
  return capibara::bind(handle, Arrays{logits, labels},
                        {{"label_smoothing", options.label_smoothing}, {"ignore_index", options.ignore_index}})[0];
}

}  // namespace capibara::kernels
