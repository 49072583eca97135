// The feed-forward layer of a mixture of experts: rows of tokens are copied to their experts and summed back, both by
// indexing with the permutation or its inverse, so that no derivative needs a scatter.
#include <capibara/kernels/experts.h>
#include <capibara/lax.h>

#include "kernels/composed.h"
#include "lax/families.h"
#include "lax/rules.h"
#include "program/derive/derive.h"

namespace capibara::kernels {

namespace {

namespace lax = jax::lax;

DType sum_dtype(DType dtype) { return dtype == DType::float64 ? DType::float64 : DType::float32; }

// Clamps numbers to [0, count).
Array clipped(const Array& numbers, int64_t count) {
  const Array last = scalar_of(numbers.dtype(), static_cast<double>(count - 1));
  return lax::clamp(scalar_of(numbers.dtype(), 0), numbers, last);
}

// The rows of x with these numbers, which are in range.
Array take_rows(const Array& x, const Array& numbers) {
  Shape slice = x.shape();
  slice[0] = 1;
  Ints offsets;
  for (int64_t i = 1; i < x.ndim(); ++i) offsets.push_back(i);
  lax::GatherOptions options;
  options.mode = lax::GatherScatterMode::promise_in_bounds;
  return lax::gather(x, numbers.reshape({-1, 1}), {offsets, {0}, {0}, {}, {}}, slice, options);
}

// Applies a function on single matrices to batches of them.
Arrays over_batches(const LowerRule& compose, std::span<const Array> in, const Attrs& attrs) {
  const std::vector<int64_t> dims(in.size(), 0);
  return vmap_flat([&](std::span<const Array> one) { return compose(one, attrs); }, in, dims, {}, {"", in[0].shape(0)});
}

// [n] -> [n, columns]
Array along_rows(const Array& x, int64_t columns) { return lax::broadcast_in_dim(x, {x.shape(0), columns}, {0}); }

// The token of each copy, in the order of the experts.
Array tokens_of(const Array& permutation, int64_t tokens) {
  const int64_t copies = permutation.shape(0);
  const Array choices = scalar_of(permutation.dtype(), static_cast<double>(copies / tokens));
  return lax::div(clipped(permutation, copies), lax::broadcast(choices, {copies}));
}

// ---- meaning ----------------------------------------------------------------------------------------------------

// (x [*batch, tokens, features], permutation, inverse [*batch, copies]) -> rows [*batch, copies, features]
Arrays compose_dispatch(std::span<const Array> in, const Attrs& attrs) {
  const Array &x = in[0], &permutation = in[1];
  if (x.ndim() > 2) return over_batches(compose_dispatch, in, attrs);
  if (x.size() == 0) return {lax::empty({permutation.shape(0), x.shape(1)}, x.dtype())};
  return {take_rows(x, tokens_of(permutation, x.shape(0)))};
}

// (rows [*batch, copies, features], weights [*batch, tokens, choices], permutation, inverse) -> [*batch, tokens,
// features]
Arrays compose_combine(std::span<const Array> in, const Attrs& attrs) {
  const Array &rows = in[0], &weights = in[1], &inverse = in[3];
  if (rows.ndim() > 2) return over_batches(compose_combine, in, attrs);
  const int64_t tokens = weights.shape(0), choices = weights.shape(1), features = rows.shape(1);
  if (rows.size() == 0) return {lax::empty({tokens, features}, rows.dtype())};
  const DType wide = weights.dtype();
  const Array own = take_rows(rows, clipped(inverse, rows.shape(0))).astype(wide).reshape({tokens, choices, features});
  const Array weighted = own * lax::broadcast_in_dim(weights, {tokens, choices, features}, {0, 1});
  return {lax::reduce_sum(weighted, {{1}}).astype(rows.dtype())};
}

// (dy, rows, weights, permutation, inverse) -> (drows, dweights)
Arrays compose_combine_grad(std::span<const Array> in, const Attrs& attrs) {
  const Array &dy = in[0], &rows = in[1], &weights = in[2], &permutation = in[3], &inverse = in[4];
  if (rows.ndim() > 2) return over_batches(compose_combine_grad, in, attrs);
  if (rows.size() == 0) return {lax::zeros_like(rows), lax::zeros_like(weights)};
  const int64_t copies = rows.shape(0), features = rows.shape(1);
  const DType wide = weights.dtype();
  const Array gradients = take_rows(dy, tokens_of(permutation, dy.shape(0))).astype(wide);
  const Array own = take_rows(weights.reshape({copies}), clipped(permutation, copies));
  const Array dots = lax::reduce_sum(gradients * rows.astype(wide), {{1}});
  return {(gradients * along_rows(own, features)).astype(rows.dtype()),
          take_rows(dots, clipped(inverse, copies)).reshape(weights.shape())};
}

// ---- types ------------------------------------------------------------------------------------------------------

void require_type(const char* op, const char* argument, const ArrayType& given, const ArrayType& expected) {
  if (given.shape == expected.shape && given.dtype == expected.dtype) return;
  throw TypeError(
      concat(op, ": expected ", to_string(expected), " (operand '", argument, "'), got ", to_string(given)));
}

Shape with_tail(const ArrayType& matrix, std::initializer_list<int64_t> tail) {
  Shape shape(matrix.shape.begin(), matrix.shape.end() - 2);
  shape.insert(shape.end(), tail);
  return shape;
}

int64_t count_of(const ArrayType& matrix) { return matrix.shape[matrix.shape.size() - 2]; }

void require_matrix(const char* op, const char* argument, const ArrayType& type) {
  if (type.rank() >= 2 && is_floating(type.dtype)) return;
  throw TypeError(
      concat(op, ": expected a floating array of rank 2 or more (operand '", argument, "'), got ", to_string(type)));
}

ArrayType order_type(const ArrayType& rows, int64_t copies) {
  return rows.with_shape(with_tail(rows, {copies})).with_dtype(DType::int32).strong();
}

TypeResult dispatch_type(std::span<const ArrayType> types, const Attrs&) {
  const char* op = "moe_dispatch";
  require_count(op, types, 3);
  const ArrayType& x = types[0];
  require_matrix(op, "x", x);
  const int64_t tokens = count_of(x), copies = types[1].rank() > 0 ? types[1].shape.back() : 0;
  if (tokens == 0 ? copies != 0 : copies % tokens != 0) {
    throw TypeError(concat(op, ": expected as many copies of each of ", tokens, " tokens, got ", copies));
  }
  require_type(op, "permutation", types[1], order_type(x, copies));
  require_type(op, "inverse", types[2], order_type(x, copies));
  return Types{x.with_shape(with_tail(x, {copies, x.shape.back()})).strong()};
}

ArrayType weights_type(const ArrayType& rows, int64_t tokens, int64_t choices) {
  return rows.with_shape(with_tail(rows, {tokens, choices})).with_dtype(sum_dtype(rows.dtype)).strong();
}

// Checks rows, weights, permutation and inverse, starting at operand `first`; returns the type of the tokens.
ArrayType require_combined(const char* op, std::span<const ArrayType> types) {
  const ArrayType &rows = types[0], &weights = types[1];
  require_matrix(op, "rows", rows);
  require_matrix(op, "weights", weights);
  const int64_t tokens = count_of(weights), choices = weights.shape.back(), copies = tokens * choices;
  require_type(op, "weights", weights, weights_type(rows, tokens, choices));
  require_type(op, "rows", rows, rows.with_shape(with_tail(rows, {copies, rows.shape.back()})).strong());
  require_type(op, "permutation", types[2], order_type(rows, copies));
  require_type(op, "inverse", types[3], order_type(rows, copies));
  return rows.with_shape(with_tail(rows, {tokens, rows.shape.back()})).strong();
}

TypeResult combine_type(std::span<const ArrayType> types, const Attrs&) {
  require_count("moe_combine", types, 4);
  return Types{require_combined("moe_combine", types)};
}

TypeResult combine_grad_type(std::span<const ArrayType> types, const Attrs&) {
  const char* op = "moe_combine_grad";
  require_count(op, types, 5);
  require_type(op, "dy", types[0], require_combined(op, types.subspan(1)));
  return Types{types[1].strong(), types[2].strong()};
}

// ---- records ----------------------------------------------------------------------------------------------------

Array dispatch(const Array& x, const Array& permutation, const Array& inverse) {
  static const Primitive& handle = *new Primitive(primitive("moe_dispatch"));
  return capibara::bind(handle, Arrays{x, permutation, inverse})[0];
}

Array combine(const Array& rows, const Array& weights, const Array& permutation, const Array& inverse) {
  static const Primitive& handle = *new Primitive(primitive("moe_combine"));
  return capibara::bind(handle, Arrays{rows, weights, permutation, inverse})[0];
}

Arrays pull_back_dispatch(const PullbackArgs& args) {
  const ArrayType x = args.operands[0].type();
  const Array& permutation = args.operands[1];
  const int64_t tokens = count_of(x), choices = tokens == 0 ? 0 : permutation.shape(-1) / tokens;
  const Array ones = lax::ones(weights_type(x, tokens, choices));
  return {combine(args.cotangents[0], ones, permutation, args.operands[2]), Array(), Array()};
}

Arrays pull_back_combine(const PullbackArgs& args) {
  static const Primitive& handle = *new Primitive(primitive("moe_combine_grad"));
  Arrays gradients = capibara::bind(
      handle, Arrays{args.cotangents[0], args.operands[0], args.operands[1], args.operands[2], args.operands[3]});
  return {gradients[0], gradients[1], Array(), Array()};
}

BatchResult batch_in_front(const BatchArgs& args) {
  Arrays inputs;
  for (std::size_t i = 0; i < args.inputs.size(); ++i)
    inputs.push_back(batch_at(args.inputs[i], args.dims[i], args.axis));
  Arrays outputs = capibara::bind(args.primitive, inputs, args.attrs);
  return {outputs, std::vector<int64_t>(outputs.size(), 0)};
}

struct Case {
  Shape batch;
  int64_t tokens, choices, features;

  Types operands(const char* names, DType dtype) const {
    Types types;
    for (const char* name = names; *name; ++name) {
      Shape shape = batch;
      DType own = dtype;
      if (*name == 'x') shape.insert(shape.end(), {tokens, features});
      if (*name == 'r') shape.insert(shape.end(), {tokens * choices, features});
      if (*name == 'w') shape.insert(shape.end(), {tokens, choices}), own = sum_dtype(dtype);
      if (*name == 'p') shape.push_back(tokens * choices), own = DType::int32;
      types.push_back(scalar_of(own, 0).type().with_shape(shape));
    }
    return types;
  }
};

// `operands`: x tokens, r rows by expert, w weights, p permutation or inverse.
PrimitiveRecord record_of(const char* name, const char* doc, const char* operands, TypeRule type, LowerRule lower) {
  PrimitiveRecord record;
  record.name = name;
  record.doc = doc;
  record.dtypes = float_dtypes;
  record.type = std::move(type);
  record.lower = std::move(lower);
  record.batch = batch_in_front;
  record.flops = [](std::span<const ArrayType> types, const Attrs&) {
    return 2 * static_cast<double>(types[0].size());
  };
  record.samples = [operands](DType dtype) {
    std::vector<Sample> samples;
    for (const Case& one : {Case{{}, 3, 2, 5}, Case{{2}, 4, 1, 3}}) {
      samples.push_back({.inputs = one.operands(operands, dtype), .attrs = {}, .integers_are_indices = true});
    }
    return samples;
  };
  return record;
}

// ---- activations ------------------------------------------------------------------------------------------------

using Activation = Array (*)(const Array&);

Array silu(const Array& x) { return x * lax::logistic(x); }
Array relu(const Array& x) { return lax::max(x, lax::zeros_like(x)); }
Array gelu(const Array& x) {
  constexpr double scale = 0.7978845608028654;  // sqrt(2 / pi)
  const Array inner = scalar_like(x, scale) * (x + scalar_like(x, 0.044715) * (x * x * x));
  return x * (scalar_like(x, 0.5) * (scalar_like(x, 1) + lax::tanh(inner)));
}

Activation activation_of(const std::string& name) {
  static constexpr std::pair<std::string_view, Activation> all[] = {{"silu", silu}, {"gelu", gelu}, {"relu", relu}};
  for (const auto& [own, function] : all) {
    if (own == name) return function;
  }
  throw ValueError(
      concat("moe_feed_forward: expected 'silu', 'gelu' or 'relu' (argument 'activation'), got '", name, "'"));
}

void require_weights(const char* argument, const Array& weights, const Array& tokens, const Shape& expected) {
  if (weights.shape() == expected && weights.dtype() == tokens.dtype()) return;
  throw TypeError(concat("moe_feed_forward: expected ", to_string(tokens.type().with_shape(expected).strong()),
                         " (argument '", argument, "'), got ", to_string(weights.type())));
}

}  // namespace

Family moe_feed_forward_records() {
  PrimitiveRecord dispatch_record =
      record_of("moe_dispatch", "Copies tokens to the rows of their experts.", "xpp", dispatch_type, compose_dispatch);
  PrimitiveRecord combine_record =
      record_of("moe_combine", "Sums the rows of each token by its weights.", "rwpp", combine_type, compose_combine);
  PrimitiveRecord grad_record = record_of("moe_combine_grad", "Pulls a cotangent back through moe_combine.", "xrwpp",
                                          combine_grad_type, compose_combine_grad);
  grad_record.traits.multiple_results = true;
  return {composed(std::move(dispatch_record), {pull_back_dispatch, {false}}),
          composed(std::move(combine_record), {pull_back_combine, {false}}), composed(std::move(grad_record))};
}

MoeFeedForwardResult moe_feed_forward(const Array& tokens, const Array& gate, const Array& up, const Array& down,
                                      int64_t top_k, const MoeFeedForwardOptions& options) {
  const Activation activation = activation_of(options.activation);
  if (tokens.ndim() < 1 || !is_floating(tokens.dtype())) {
    throw TypeError(concat("moe_feed_forward: expected a floating array [..., features] (argument 'tokens'), got ",
                           to_string(tokens.type())));
  }
  const int64_t features = tokens.shape(-1), experts = gate.ndim() == 2 ? gate.shape(1) : 0;
  const int64_t hidden = up.ndim() == 3 ? up.shape(2) : 0;
  require_weights("gate", gate, tokens, {features, experts});
  require_weights("up", up, tokens, {experts, features, hidden});
  require_weights("down", down, tokens, {experts, hidden, features});
  if (options.gate_weights) require_weights("gate_weights", *options.gate_weights, tokens, up.shape());
  const MoeRouting routing = moe_routing_kernel(
      tokens, experts, top_k, options.load_balancing,
      {.gate = gate, .renormalize = options.renormalize, .capacity_factor = options.capacity_factor});
  const Array x = dispatch(tokens.reshape({-1, features}), routing.permutation, routing.inverse);
  auto multiply = [&](const Array& rows, const Array& weights) {
    return grouped_matmul(rows, weights, routing.group_sizes);
  };
  const DType dtype = tokens.dtype(), wide = sum_dtype(dtype);
  Array middle = multiply(x, options.gate_weights ? *options.gate_weights : up);
  middle = activation(middle.astype(wide));
  if (options.gate_weights) middle = middle * multiply(x, up).astype(wide);
  const Array rows = multiply(middle.astype(dtype), down), weights = routing.weights.reshape({-1, top_k});
  const Array output = combine(rows, weights, routing.permutation, routing.inverse);
  return {output.reshape(tokens.shape()), routing.aux_loss};
}

}  // namespace capibara::kernels
