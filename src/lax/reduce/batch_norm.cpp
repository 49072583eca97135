// StableHLO's batch normalisation operations, each defined by its composition.
#include "lax/reduce/batch_norm.h"
#include "lax/families.h"
#include "lax/reduce/monoid.h"
#include "lax/rules.h"
#include "lax/sharding/factors.h"

#include "program/derive/derive.h"
#include "program/ir/handles.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

using Composition = Arrays (*)(std::span<const Array>, const Attrs&);

int64_t feature_axis(const Attrs& attrs) { return attrs.integer("feature_index"); }

// Broadcasts [features] over all other dimensions of `like`.
Array spread(const Array& x, const Array& like, const Attrs& attrs) {
  return lax::broadcast_in_dim(x, like.shape(), {feature_axis(attrs)});
}

Array sum_other(const Array& x, const Attrs& attrs) {
  Ints axes;
  for (int64_t d = 0; d < x.ndim(); ++d) {
    if (d != feature_axis(attrs)) axes.push_back(d);
  }
  return lax::reduce_sum(x, {.axes = axes});
}

Array count_other(const Array& x, const Attrs& attrs) {
  int64_t features = x.shape(feature_axis(attrs));
  return scalar_like(x, features == 0 ? 0 : static_cast<double>(x.size() / features));
}

Array deviation(const Array& variance, const Attrs& attrs) {
  return lax::sqrt(lax::add(variance, scalar_like(variance, static_cast<float>(attrs.real("epsilon")))));
}

// operand, scale, offset, mean, variance -> output
Arrays inference(std::span<const Array> in, const Attrs& attrs) {
  const Array& x = in[0];
  Array difference = lax::sub(x, spread(in[3], x, attrs));
  Array normal = lax::div(difference, spread(deviation(in[4], attrs), x, attrs));
  Array product = lax::mul(spread(in[1], x, attrs), normal);
  return {lax::add(product, spread(in[2], x, attrs))};
}

// operand, scale, offset -> output, mean, variance
Arrays training(std::span<const Array> in, const Attrs& attrs) {
  const Array& x = in[0];
  Array count = count_other(x, attrs);
  Array mean = lax::div(sum_other(x, attrs), count);
  Array centred = lax::sub(x, spread(mean, x, attrs));
  Array variance = lax::div(sum_other(lax::mul(centred, centred), attrs), count);
  Array out = inference(Arrays{x, in[1], in[2], mean, variance}, attrs)[0];
  return {out, mean, variance};
}

// operand, scale, mean, variance, grad_output -> grad_operand, grad_scale, grad_offset
Arrays gradient(std::span<const Array> in, const Attrs& attrs) {
  const Array &x = in[0], &scale = in[1], &cotangent = in[4];
  Array count = count_other(x, attrs);
  Array centred = lax::sub(x, spread(in[2], x, attrs));
  Array stddev = deviation(in[3], attrs);
  Array wide_stddev = spread(stddev, x, attrs);
  Array grad_offset = sum_other(cotangent, attrs);
  Array with_centred = sum_other(lax::mul(cotangent, centred), attrs);
  Array grad_scale = lax::div(with_centred, stddev);
  Array variance = lax::add(in[3], scalar_like(in[3], static_cast<float>(attrs.real("epsilon"))));
  Array spread_with_centred = spread(with_centred, x, attrs);
  Array shift = lax::div(spread_with_centred, spread(variance, x, attrs));
  Array product = lax::mul(count, cotangent), difference = lax::sub(product, spread(grad_offset, x, attrs));
  Array inner = lax::sub(difference, lax::mul(centred, shift));
  Array factor = lax::div(lax::div(spread(scale, x, attrs), wide_stddev), count);
  return {lax::mul(factor, inner), grad_scale, grad_offset};
}

// `wide`: the inputs that have the operand's shape; the others are [features].
TypeRule batch_norm_type(std::string op, std::vector<bool> wide, std::vector<bool> wide_outputs) {
  return [op, wide, wide_outputs](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    require_count(op, types, wide.size());
    int64_t axis = feature_axis(attrs);
    if (axis < 0 || axis >= types[0].rank()) {
      throw ValueError(concat(op, ": feature_index ", axis, " is out of range for ", to_string(types[0])));
    }
    if (!is_floating(types[0].dtype))
      throw TypeError(concat(op, ": the operand must be floating, got ", to_string(types[0])));
    ArrayType narrow = types[0].with_shape({types[0].shape[static_cast<std::size_t>(axis)]}).strong();
    for (std::size_t i = 0; i < types.size(); ++i) {
      const ArrayType expected = wide[i] ? types[0] : narrow;
      if (types[i].shape != expected.shape || types[i].dtype != expected.dtype) {
        throw TypeError(concat(op, ": input ", i, " must be ", to_string(expected), ", got ", to_string(types[i])));
      }
    }
    Types out;
    for (bool is_wide : wide_outputs) out.push_back(is_wide ? types[0].strong() : narrow);
    return out;
  };
}

PrimitiveRecord batch_norm_record(std::string name, std::string doc, Composition composition, std::vector<bool> wide,
                                  std::vector<bool> wide_outputs) {
  PrimitiveRecord record;
  record.name = name;
  record.factors = batch_norm_factors;
  record.doc = std::move(doc);
  record.stablehlo = "stablehlo." + name;
  record.dtypes = {DType::bfloat16, DType::float16, DType::float32, DType::float64};
  record.type = batch_norm_type(name, wide, std::move(wide_outputs));
  // Narrow floats are computed in float32 and rounded once.
  record.evaluate = [composition](std::span<const Array> inputs, const Attrs& attrs) -> Arrays {
    DType dtype = inputs[0].dtype();
    if (bits(dtype) >= 32) return composition(inputs, attrs);
    Arrays wide;
    for (const Array& x : inputs) wide.push_back(lax::convert_element_type(x, DType::float32));
    Arrays outputs = composition(wide, attrs);
    for (Array& x : outputs) x = lax::convert_element_type(x, dtype);
    return outputs;
  };
  record.jvp = [composition](const JvpArgs& args) {
    auto function = [&](std::span<const Array> xs) { return composition(xs, args.attrs); };
    return jvp_flat(function, args.primals, args.tangents);
  };
  record.batch = [composition](const BatchArgs& args) -> BatchResult {
    auto function = [&](std::span<const Array> xs) { return composition(xs, args.attrs); };
    std::size_t outputs = args.primitive == prim::batch_norm_inference() ? 1 : 3;
    std::vector<int64_t> dims(outputs, 0);
    return {vmap_flat(function, args.inputs, args.dims, dims, args.axis), dims};
  };
  record.samples = [wide](DType dtype) {
    std::vector<Sample> samples;
    for (auto [shape, axis] : {std::pair{Shape{4, 3}, int64_t{1}}, std::pair{Shape{2, 3, 5}, int64_t{0}}}) {
      ArrayType type = scalar_type(dtype).with_shape(shape),
                narrow = type.with_shape({shape[static_cast<std::size_t>(axis)]});
      Sample s;
      for (bool is_wide : wide) s.inputs.push_back(is_wide ? type : narrow);
      s.attrs = {{"epsilon", 0.001}, {"feature_index", axis}};
      s.low = 0.5;
      samples.push_back(std::move(s));
    }
    return samples;
  };
  return record;
}

}  // namespace

Family batch_norm_family() {
  return {
      batch_norm_record("batch_norm_training",
                        "Normalises each feature by its mean and variance, which it returns too.", training,
                        {true, false, false}, {true, false, false}),
      batch_norm_record("batch_norm_inference", "Normalises each feature by a given mean and variance.", inference,
                        {true, false, false, false, false}, {true}),
      batch_norm_record("batch_norm_grad", "The derivatives of batch_norm_training with respect to its three inputs.",
                        gradient, {true, false, false, false, true}, {true, false, false}),
  };
}

}  // namespace capibara
