// The records of fused attention and its reverse derivative: types, batches, pullback, samples.
#include <capibara/lax.h>

#include "kernels/attention/spec.h"
#include "kernels/composed.h"
#include "lax/rules.h"

namespace capibara::kernels {

namespace lax = jax::lax;

namespace {

// ---- types ------------------------------------------------------------------------------------------------------

class Checks {
 public:
  Checks(const std::string& op, std::span<const ArrayType> types, const AttentionSpec& spec, std::size_t leading)
      : op_(op), types_(types), spec_(spec), leading_(leading) {
    require_count(op, types, leading + static_cast<std::size_t>(spec.extras));
  }

  [[noreturn]] void refuse(const std::string& argument, const std::string& expected, const ArrayType& got) const {
    throw TypeError(concat(op_, ": expected ", expected, " (argument '", argument, "'), got ", to_string(got)));
  }

  AttentionSizes sizes(const ArrayType& query, const ArrayType& key, const ArrayType& value) const {
    auto heads = [&](const char* argument, const ArrayType& type) {
      if (type.rank() == 4 && is_floating(type.dtype) && type.shape[3] > 0) return;
      refuse(argument, "floating [batch, heads, length, head_dim] with a head_dim of 1 or more", type);
    };
    heads("query", query);
    heads("key", key);
    heads("value", value);
    const Shape &q = query.shape, &k = key.shape, &v = value.shape;
    if (key.dtype != query.dtype || k[0] != q[0] || k[3] != q[3]) {
      refuse("key", concat(to_string(query.dtype), "[", q[0], ",key_heads,keys,", q[3], "] as of the query"), key);
    }
    if (k[1] == 0 ? q[1] != 0 : q[1] % k[1] != 0) {
      refuse("key", concat("a number of heads that divides the ", q[1], " of the query"), key);
    }
    if (value.dtype != query.dtype || v[0] != k[0] || v[1] != k[1] || v[2] != k[2]) {
      refuse("value", concat(to_string(query.dtype), "[", k[0], ",", k[1], ",", k[2], ",value_dim] as of the key"),
             value);
    }
    return AttentionSizes(q, k, v);
  }

  // Each dimension must be the given one or 1.
  void broadcasts(int index, const char* argument, const std::string& kind, const Shape& shape) const {
    if (index < 0) return;
    const ArrayType& type = extra(index);
    bool fits = type.rank() == static_cast<int64_t>(shape.size());
    for (std::size_t i = 0; fits && i < shape.size(); ++i) fits = type.shape[i] == 1 || type.shape[i] == shape[i];
    if (fits && to_string(type.dtype) == kind) return;
    refuse(argument,
           concat(kind, " that broadcasts to ", to_string(type.with_shape(shape)).substr(to_string(type.dtype).size())),
           type);
  }

  void extras(const AttentionSizes& sizes, DType dtype) const {
    const Shape all{sizes.batch, sizes.heads, sizes.queries, sizes.keys};
    broadcasts(spec_.mask, "attention_mask", "bool", all);
    if (spec_.bias >= 0) {
      const DType own = extra(spec_.bias).dtype, wide = attention_sum_dtype(dtype);
      broadcasts(spec_.bias, "bias", to_string(own == dtype ? dtype : wide), all);
    }
    broadcasts(spec_.query_segments, "segment_ids", "int32", {sizes.batch, sizes.queries});
    broadcasts(spec_.key_segments, "key_segment_ids", "int32", {sizes.batch, sizes.keys});
    if (spec_.dropout_key >= 0) {
      const ArrayType& key = extra(spec_.dropout_key);
      const bool fits = key.rank() == 2 && key.dtype == DType::uint32 && key.shape[1] == 2 && key.shape[0] > 0;
      if (!fits || sizes.batch % key.shape[0] != 0)
        refuse("dropout_key", "uint32[keys,2], whose number divides the batch", key);
    }
    if (spec_.blocks >= 0) {
      const ArrayType& blocks = extra(spec_.blocks);
      const int64_t size = spec_.block_size, rows = (sizes.queries + size - 1) / size,
                    columns = (sizes.keys + size - 1) / size;
      broadcasts(spec_.blocks, "sparsity_pattern", "bool", {sizes.batch, sizes.heads, rows, columns});
      if (blocks.shape[2] != rows || blocks.shape[3] != columns) {
        refuse("sparsity_pattern", concat("bool[...,", rows, ",", columns, "], blocks of queries by blocks of keys"),
               blocks);
      }
    }
  }

  void exact(const char* argument, const ArrayType& type, DType dtype, const Shape& shape) const {
    if (type.dtype == dtype && type.shape == shape) return;
    refuse(argument, to_string(type.with_dtype(dtype).with_shape(shape).strong()), type);
  }

  const ArrayType& extra(int index) const { return types_[leading_ + static_cast<std::size_t>(index)]; }

 private:
  const std::string& op_;
  std::span<const ArrayType> types_;
  const AttentionSpec& spec_;
  std::size_t leading_;
};

AttentionSpec checked_spec(const std::string& op, const Attrs& attrs) {
  const Ints& window = attrs.ints("window");
  if (window.size() != 2) {
    throw TypeError(concat(op, ": expected two numbers of keys (parameter 'window'), got ", window.size()));
  }
  const AttentionSpec spec(attrs);
  if (spec.has_blocks && spec.block_size < 1) {
    throw TypeError(concat(op, ": expected 1 or more (parameter 'block_size'), got ", spec.block_size));
  }
  return spec;
}

TypeResult forward_type(const std::string& op, std::span<const ArrayType> types, const Attrs& attrs) {
  const AttentionSpec spec = checked_spec(op, attrs);
  const Checks checks(op, types, spec, forward_operands);
  const AttentionSizes sizes = checks.sizes(types[0], types[1], types[2]);
  checks.extras(sizes, types[0].dtype);
  const ArrayType output = types[0].strong().with_shape({sizes.batch, sizes.heads, sizes.queries, sizes.value_size});
  return Types{
      output,
      output.with_dtype(attention_sum_dtype(output.dtype)).with_shape({sizes.batch, sizes.heads, sizes.queries})};
}

TypeResult backward_type(const std::string& op, std::span<const ArrayType> types, const Attrs& attrs) {
  const AttentionSpec spec = checked_spec(op, attrs);
  const Checks checks(op, types, spec, backward_operands);
  const AttentionSizes sizes = checks.sizes(types[1], types[2], types[3]);
  const DType dtype = types[1].dtype, wide = attention_sum_dtype(dtype);
  const Shape rows{sizes.batch, sizes.heads, sizes.queries};
  checks.exact("cotangent", types[0], dtype, {sizes.batch, sizes.heads, sizes.queries, sizes.value_size});
  checks.exact("lse", types[4], wide, rows);
  checks.exact("delta", types[5], wide, rows);
  checks.extras(sizes, dtype);
  Types results{types[1].strong(), types[2].strong(), types[3].strong()};
  if (spec.has_bias) results.push_back(checks.extra(spec.bias).strong());
  return results;
}

// ---- batches ----------------------------------------------------------------------------------------------------

// Merges the mapped axis into the batch. Operands with a single batch entry shared by all keep it, unless `own`: the
// result has one entry per example.
Array joined(const BatchArgs& args, std::size_t i, int64_t batch, bool own) {
  if (!args.mapped(i) && !own && args.inputs[i].shape(0) == 1) return args.inputs[i];
  const Array x = batch_at(args.inputs[i], args.dims[i], args.axis);
  Shape shape = x.shape(), spread = shape;
  spread[1] = batch;
  Ints all;
  for (int64_t d = 0; d < x.ndim(); ++d) all.push_back(d);
  const Array full = spread == shape ? x : lax::broadcast_in_dim(x, spread, all);
  spread.erase(spread.begin());
  spread[0] *= args.axis.size;
  return lax::reshape(full, spread);
}

BatchResult batch_attention(const BatchArgs& args, std::size_t leading) {
  const AttentionSpec spec(args.attrs);
  const bool backward = leading == backward_operands;
  const ArrayType& query = args.inputs[backward ? 1 : 0].type();
  const std::size_t query_at = backward ? 1 : 0;
  const int64_t batch = query.shape[args.mapped(query_at) && args.dims[query_at] == 0 ? 1 : 0];
  Arrays operands;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    const int extra = i < leading ? -2 : static_cast<int>(i - leading);
    if (extra == spec.dropout_key) {  // each example has its own keys
      const Array keys = batch_at(args.inputs[i], args.dims[i], args.axis);
      operands.push_back(lax::reshape(keys, {args.axis.size * keys.shape(1), 2}));
    } else {
      operands.push_back(joined(args, i, batch, i < leading || (backward && extra == spec.bias)));
    }
  }
  BatchResult result{capibara::bind(args.primitive, operands, args.attrs), {}};
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    Array& output = result.outputs[i];
    Shape shape = output.shape();
    shape[0] = batch;
    shape.insert(shape.begin(), args.axis.size);
    output = lax::reshape(output, shape);
    const std::size_t bias = leading + static_cast<std::size_t>(std::max(spec.bias, 0));
    const bool is_bias = backward && i == 3;
    if (is_bias && args.inputs[bias].shape(args.mapped(bias) && args.dims[bias] == 0 ? 1 : 0) == 1 && batch != 1) {
      output = lax::expand_dims(lax::reduce_sum(output, {.axes = {1}}), {1});
    }
    result.dims.push_back(0);
  }
  return result;
}

// ---- records ----------------------------------------------------------------------------------------------------

Arrays pull_back(const Primitive& grad, const PullbackArgs& args) {
  const Array &gradient = args.cotangents[0], &lse_gradient = args.cotangents[1];
  if (!gradient.defined()) return {};
  const AttentionSpec spec(args.attrs);
  const DType wide = args.results[1].dtype();
  // The row sums by which a softmax couples its elements; the gradient of the log-sum-exp enters as part of
  // them.
  const Array products = gradient.astype(wide) * args.results[0].astype(wide);
  Array delta = lax::reduce_sum(products, {.axes = {3}});
  if (lse_gradient.defined()) delta = delta - lse_gradient;
  Arrays operands = {gradient, args.operands[0], args.operands[1], args.operands[2], args.results[1], delta};
  operands.insert(operands.end(), args.operands.begin() + forward_operands, args.operands.end());
  const Arrays gradients = capibara::bind(grad, operands, args.attrs);
  Arrays all(args.operands.size());
  for (std::size_t i = 0; i < forward_operands; ++i) all[i] = gradients[i];
  if (spec.has_bias) all[forward_operands + static_cast<std::size_t>(spec.bias)] = gradients[3];
  return all;
}

// Two matmuls forward and five backward, 2 operations per multiply-add, for visible pairs only: causal order halves it.
double count_flops(std::span<const ArrayType> types, const Attrs& attrs, std::size_t query, double products) {
  const AttentionSizes sizes(types[query].shape, types[query + 1].shape, types[query + 2].shape);
  const double pairs = static_cast<double>(sizes.batch * sizes.heads) * static_cast<double>(sizes.queries * sizes.keys);
  const bool half = attrs.boolean("causal") && sizes.queries == sizes.keys;
  return products * pairs * static_cast<double>(sizes.size + sizes.value_size) * (half ? 0.5 : 1);
}

Attrs sample_attrs(bool sparse, bool extras) {
  return {{"causal", extras}, {"mask", extras}, {"bias", extras},      {"segments", false},
          {"blocks", sparse}, {"scale", 0.5},   {"dropout_rate", 0.0}, {"window", Ints{-1, -1}},
          {"sinks", 0},       {"prefix", 0},    {"query_offset", 0},   {"block_size", sparse ? 2 : 0}};
}

std::vector<Sample> samples_of(DType dtype, bool sparse, bool backward) {
  auto type = [](DType d, Shape shape) { return scalar_of(d, 0).type().with_shape(std::move(shape)); };
  std::vector<Sample> samples;
  for (const bool extras : {false, true}) {
    const ArrayType q = type(dtype, {1, 2, 4, 3}), k = type(dtype, {1, 1, 5, 3}), v = type(dtype, {1, 1, 5, 2});
    Types inputs = {q, k, v};
    if (backward) {
      const ArrayType rows = type(attention_sum_dtype(dtype), {1, 2, 4});
      inputs = {type(dtype, {1, 2, 4, 2}), q, k, v, rows, rows};
    }
    if (extras) inputs.push_back(type(DType::bool_, {1, 1, 1, 5}));
    if (extras) inputs.push_back(type(dtype, {1, 2, 4, 5}));
    if (sparse) inputs.push_back(type(DType::bool_, {1, 1, 2, 3}));
    samples.push_back({inputs, sample_attrs(sparse, extras)});
  }
  return samples;
}

}  // namespace

std::vector<PrimitiveRecord> attention_records(const std::string& name, const std::string& doc, bool sparse) {
  auto common = [&](const std::string& own_name, const std::string& own_doc, std::size_t leading) {
    PrimitiveRecord record = fused_record(own_name, own_doc);
    record.batch = [leading](const BatchArgs& args) { return batch_attention(args, leading); };
    record.samples = [sparse, backward = leading == backward_operands](DType dtype) {
      return samples_of(dtype, sparse, backward);
    };
    return record;
  };
  PrimitiveRecord forward = common(name, doc, forward_operands);
  PrimitiveRecord backward =
      common(name + "_grad", concat("Pulls a cotangent back through ", name, "."), backward_operands);
  forward.type = [name](std::span<const ArrayType> types, const Attrs& attrs) {
    return forward_type(name, types, attrs);
  };
  forward.lower = compose_attention;
  forward.flops = [](std::span<const ArrayType> types, const Attrs& attrs) { return count_flops(types, attrs, 0, 2); };
  backward.type = [own = backward.name](std::span<const ArrayType> types, const Attrs& attrs) {
    return backward_type(own, types, attrs);
  };
  backward.lower = compose_attention_grad;
  backward.flops = [](std::span<const ArrayType> types, const Attrs& attrs) { return count_flops(types, attrs, 1, 5); };
  auto rule = [own = backward.name](const PullbackArgs& args) { return pull_back(primitive(own), args); };
  return {composed(std::move(forward), {rule, {true, true}}), composed(std::move(backward))};
}

}  // namespace capibara::kernels
