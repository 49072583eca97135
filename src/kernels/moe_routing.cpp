// Routing of tokens to experts: top-k of the logits, weights, the order of copies by expert, the load balancing loss,
// and the reverse derivative.
#include <capibara/kernels/experts.h>
#include <capibara/lax.h>

#include <cmath>

#include "kernels/composed.h"
#include "lax/families.h"
#include "lax/rules.h"
#include "program/derive/derive.h"

namespace capibara::kernels {

namespace {

namespace lax = jax::lax;

constexpr int64_t no_limit = -1;  // of attribute `capacity`
constexpr DType index_type = DType::int32;

DType sum_dtype(DType dtype) { return dtype == DType::float64 ? DType::float64 : DType::float32; }

Array index_scalar(int64_t value) { return scalar_of(index_type, static_cast<double>(value)); }

// [n] -> [n, columns], each element broadcast along its row.
Array along_rows(const Array& x, int64_t columns) { return lax::broadcast_in_dim(x, {x.shape(0), columns}, {0}); }

Array softmax(const Array& x) {
  const int64_t columns = x.shape(1);
  const Array powers = lax::exp(x - along_rows(lax::reduce_max(x, {{1}}), columns));
  return powers / along_rows(lax::reduce_sum(powers, {{1}}), columns);
}

// [tokens, experts]: true if a token's choice is the expert.
Array is_choice(const Array& experts, int64_t choice, int64_t num_experts) {
  const Array column = lax::squeeze(lax::slice_in_dim(experts, choice, choice + 1, 1, 1), {1});
  return lax::eq(along_rows(column, num_experts),
                 lax::broadcasted_iota(index_type, {experts.shape(0), num_experts}, 1));
}

// The number of copies that chose each expert: [num_experts].
Array count_load(const Array& experts, int64_t num_experts) {
  Array load = lax::broadcast(index_scalar(0), {num_experts});
  for (int64_t j = 0; j < experts.shape(1); ++j) {
    load = load + lax::reduce_sum(lax::convert_element_type(is_choice(experts, j, num_experts), index_type), {{0}});
  }
  return load;
}

// num_experts / copies * load: the weight of a token's probabilities in the loss.
Array load_factors(const Array& load, int64_t copies, DType dtype) {
  const auto factor = static_cast<double>(load.shape(0)) / static_cast<double>(std::max<int64_t>(copies, 1));
  return load.astype(dtype) * scalar_of(dtype, factor);
}

// ---- meaning ----------------------------------------------------------------------------------------------------

// (logits [*batch, tokens, experts]) -> weights, experts, permutation, inverse, group_sizes, load, aux_loss
Arrays compose(std::span<const Array> in, const Attrs& attrs) {
  if (in[0].ndim() > 2) {
    const std::vector<int64_t> dims = {0};
    return vmap_flat([&](std::span<const Array> one) { return compose(one, attrs); }, in, dims, {},
                     {"", in[0].shape(0)});
  }
  const DType wide = sum_dtype(in[0].dtype());
  const Array x = in[0].astype(wide);
  const int64_t tokens = x.shape(0), num_experts = x.shape(1), choices = attrs.integer("top_k");
  const int64_t copies = tokens * choices, capacity = attrs.integer("capacity");
  const auto [values, experts] = lax::top_k(x, choices);
  Array weights;
  if (attrs.boolean("renormalize")) {
    weights = softmax(values);
  } else {
    const Array greatest = lax::reduce_max(x, {{1}});
    const Array sums = lax::reduce_sum(lax::exp(x - along_rows(greatest, num_experts)), {{1}});
    weights = lax::exp(values - along_rows(greatest, choices)) / along_rows(sums, choices);
  }
  const Array load = count_load(experts, num_experts);
  // By expert, then by choice, then by token.
  const Array token = lax::broadcasted_iota(index_type, {choices, tokens}, 1);
  const Array copy = token * index_scalar(choices) + lax::broadcasted_iota(index_type, {choices, tokens}, 0);
  Arrays order = lax::sort({lax::transpose(experts, {1, 0}).reshape({copies}), copy.reshape({copies})});
  const Array number = lax::iota(index_type, copies);
  Array sizes = load;
  if (capacity != no_limit) {
    const Array starts = lax::cumsum(load) - load, own = lax::index_take(starts, {order[0]}, {0});
    const Array has_room = lax::lt(number - own, lax::broadcast(index_scalar(capacity), {copies}));
    order[0] = lax::select(has_room, order[0], lax::broadcast(index_scalar(num_experts), {copies}));
    order = lax::sort(order);
    sizes = lax::min(load, lax::broadcast(index_scalar(capacity), {num_experts}));
  }
  const Array inverse = lax::sort({order[1], number})[1];
  if (capacity != no_limit) {
    const Array has_room = lax::lt(inverse, lax::broadcast(lax::reduce_sum(sizes, {{0}}), {copies}));
    weights = lax::select(has_room.reshape({tokens, choices}), weights, lax::zeros_like(weights));
  }
  Array loss = scalar_of(wide, 0);
  if (attrs.boolean("load_balancing") && tokens > 0) {
    const Array mean = lax::reduce_sum(softmax(x), {{0}}) / scalar_of(wide, static_cast<double>(tokens));
    loss = lax::reduce_sum(mean * load_factors(load, copies, wide), {{0}});
  }
  return {weights, experts, order[1], inverse, sizes, load, loss};
}

// (dweights, daux_loss, logits, experts, weights, load) -> dlogits
Arrays compose_grad(std::span<const Array> in, const Attrs& attrs) {
  if (in[2].ndim() > 2) {
    const std::vector<int64_t> dims(in.size(), 0);
    return vmap_flat([&](std::span<const Array> one) { return compose_grad(one, attrs); }, in, dims, {},
                     {"", in[2].shape(0)});
  }
  const Array &experts = in[3], &load = in[5];
  const DType wide = sum_dtype(in[2].dtype());
  const Array x = in[2].astype(wide), none = lax::zeros_like(x);
  const int64_t tokens = x.shape(0), num_experts = x.shape(1), choices = experts.shape(1);
  // The weight of copies over capacity is a constant, zero.
  const Array gradients = lax::select(lax::ne(in[4], lax::zeros_like(in[4])), in[0], lax::zeros_like(in[0]));
  auto column = [](const Array& all, int64_t j) { return lax::squeeze(lax::slice_in_dim(all, j, j + 1, 1, 1), {1}); };
  auto to_experts = [&](const Array& of_choices) {
    Array sum = none;
    for (int64_t j = 0; j < choices; ++j) {
      sum = sum + lax::select(is_choice(experts, j, num_experts), along_rows(column(of_choices, j), num_experts), none);
    }
    return sum;
  };
  // Backpropagates through a softmax with these results.
  auto through = [](const Array& shares, const Array& gradient) {
    return shares * (gradient - along_rows(lax::reduce_sum(shares * gradient, {{1}}), shares.shape(1)));
  };
  const bool loss = attrs.boolean("load_balancing") && tokens > 0, renormalize = attrs.boolean("renormalize");
  Array dx = none, gradient = none;  // of the logits; of the probabilities
  if (renormalize) {
    Arrays values;
    for (int64_t j = 0; j < choices; ++j) {
      const Array own = lax::select(is_choice(experts, j, num_experts), x, none);
      values.push_back(lax::reduce_sum(own, {{1}}));
    }
    dx = to_experts(through(softmax(lax::stack(values, 1)), gradients));
  } else {
    gradient = to_experts(gradients);
  }
  if (loss) {
    const Array factors = load_factors(load, tokens * choices, wide) * in[1];
    gradient = gradient + lax::broadcast(factors / scalar_of(wide, static_cast<double>(tokens)), {tokens});
  }
  if (loss || !renormalize) dx = dx + through(softmax(x), gradient);
  return {dx.astype(in[2].dtype())};
}

// ---- types ------------------------------------------------------------------------------------------------------

struct Extents {
  Shape batch;
  int64_t tokens, experts, choices;

  Extents(const char* op, const ArrayType& logits, const Attrs& attrs) {
    if (logits.rank() < 2 || !is_floating(logits.dtype) || logits.shape.back() < 1) {
      throw TypeError(concat(op, ": expected floating logits [..., tokens, experts], got ", to_string(logits)));
    }
    batch = Shape(logits.shape.begin(), logits.shape.end() - 2);
    tokens = logits.shape[logits.shape.size() - 2];
    experts = logits.shape.back();
    choices = attrs.integer("top_k");
    if (choices < 1 || choices > experts) {
      throw ValueError(concat(op, ": expected top_k from 1 to the number of experts, ", experts, ", got ", choices));
    }
  }
  ArrayType type(DType dtype, std::initializer_list<int64_t> own) const {
    ArrayType type;
    type.dtype = dtype;
    type.shape = batch;
    type.shape.insert(type.shape.end(), own);
    return type;
  }
  Types results(DType wide) const {
    return {type(wide, {tokens, choices}),
            type(index_type, {tokens, choices}),
            type(index_type, {tokens * choices}),
            type(index_type, {tokens * choices}),
            type(index_type, {experts}),
            type(index_type, {experts}),
            type(wide, {})};
  }
};

TypeResult forward_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("moe_routing", types, 1);
  return Extents("moe_routing", types[0], attrs).results(sum_dtype(types[0].dtype));
}

Types grad_operands(const ArrayType& logits, const Attrs& attrs) {
  const Types results = Extents("moe_routing_grad", logits, attrs).results(sum_dtype(logits.dtype));
  return {results[0], results[6], logits.strong(), results[1], results[0], results[5]};
}

TypeResult grad_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("moe_routing_grad", types, 6);
  const Types expected = grad_operands(types[2], attrs);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (types[i].shape == expected[i].shape && types[i].dtype == expected[i].dtype) continue;
    throw TypeError(
        concat("moe_routing_grad: expected ", to_string(expected[i]), " (operand ", i, "), got ", to_string(types[i])));
  }
  return Types{types[2].strong()};
}

// ---- records ----------------------------------------------------------------------------------------------------

BatchResult batch_in_front(const BatchArgs& args) {
  Arrays inputs;
  for (std::size_t i = 0; i < args.inputs.size(); ++i)
    inputs.push_back(batch_at(args.inputs[i], args.dims[i], args.axis));
  Arrays outputs = capibara::bind(args.primitive, inputs, args.attrs);
  return {outputs, std::vector<int64_t>(outputs.size(), 0)};
}

Arrays pull_back(const PullbackArgs& args) {
  static const Primitive& handle = *new Primitive(primitive("moe_routing_grad"));
  const Array& logits = args.operands[0];
  const Types results = Extents("moe_routing", logits.type(), args.attrs).results(sum_dtype(logits.dtype()));
  return capibara::bind(handle,
                        Arrays{instantiate(args.cotangents[0], results[0]), instantiate(args.cotangents[6], results[6]),
                               logits, args.results[1], args.results[0], args.results[5]},
                        args.attrs);
}

struct Case {
  Shape logits;
  int64_t choices, capacity;
  bool renormalize, load_balancing;

  Attrs attrs() const {
    return {
        {"top_k", choices}, {"capacity", capacity}, {"renormalize", renormalize}, {"load_balancing", load_balancing}};
  }
};
const Case cases[] = {{{6, 5}, 2, no_limit, true, true}, {{2, 5, 4}, 2, 2, false, true}, {{4, 3}, 3, 1, true, false}};

PrimitiveRecord forward_record() {
  PrimitiveRecord record = fused_record(
      "moe_routing", "Routes tokens to experts: weights, experts, order by expert and its inverse, sizes, load, loss.");
  record.type = forward_type;
  record.lower = compose;
  record.batch = batch_in_front;
  record.flops = [](std::span<const ArrayType> types, const Attrs&) {
    return 8 * static_cast<double>(types[0].size());
  };
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (const Case& one : cases) samples.push_back({{scalar_of(dtype, 0).type().with_shape(one.logits)}, one.attrs()});
    return samples;
  };
  return composed(std::move(record), {pull_back, {true, true, false, false, false, true, false}});
}

PrimitiveRecord grad_record() {
  PrimitiveRecord record;
  record.name = "moe_routing_grad";
  record.doc = "Pulls the cotangents of weights and loss back through moe_routing.";
  record.dtypes = float_dtypes;
  record.traits.nan_checked = true;
  record.type = grad_type;
  record.lower = compose_grad;
  record.batch = batch_in_front;
  record.flops = [](std::span<const ArrayType> types, const Attrs&) {
    return 8 * static_cast<double>(types[2].size());
  };
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (const Case& one : cases) {
      Sample sample;
      sample.inputs = grad_operands(scalar_of(dtype, 0).type().with_shape(one.logits), one.attrs());
      sample.attrs = one.attrs();
      sample.integers_are_indices = true;
      samples.push_back(std::move(sample));
    }
    return samples;
  };
  return composed(std::move(record));
}

}  // namespace

Family moe_routing_records() { return {forward_record(), grad_record()}; }

MoeRouting moe_routing_kernel(const Array& tokens, int64_t num_experts, int64_t top_k, bool load_balancing,
                              const MoeRoutingOptions& options) {
  static const Primitive& handle = *new Primitive(primitive("moe_routing"));
  const std::string op = "moe_routing_kernel: expected ";
  if (num_experts < 1) throw ValueError(concat(op, "1 or more experts (argument 'num_experts'), got ", num_experts));
  if (top_k < 1 || top_k > num_experts) {
    throw ValueError(concat(op, "a number from 1 to num_experts, ", num_experts, " (argument 'top_k'), got ", top_k));
  }
  if (tokens.ndim() < 1 || !is_floating(tokens.dtype())) {
    throw TypeError(concat(op, "a floating array [..., features] (argument 'tokens'), got ", to_string(tokens.type())));
  }
  const int64_t features = tokens.shape(-1);
  if (!options.gate && features != num_experts) {
    throw TypeError(concat(op, "logits [..., ", num_experts, "] (argument 'tokens') where there is no gate, got ",
                           to_string(tokens.type()), "; pass gate=, ", dtype_name(tokens.dtype()), "[", features, ",",
                           num_experts, "], to compute them"));
  }
  if (options.gate &&
      (options.gate->shape() != Shape{features, num_experts} || options.gate->dtype() != tokens.dtype())) {
    throw TypeError(concat(op, dtype_name(tokens.dtype()), "[", features, ",", num_experts, "] (argument 'gate'), got ",
                           to_string(options.gate->type())));
  }
  if (options.capacity_factor && !(*options.capacity_factor > 0)) {
    throw ValueError(concat(op, "a number above 0, or none for no limit (argument 'capacity_factor'), got ",
                            *options.capacity_factor));
  }
  Shape leading(tokens.shape().begin(), tokens.shape().end() - 1);
  int64_t count = 1;
  for (int64_t size : leading) count *= size;
  Array logits = tokens.reshape({count, features});
  if (options.gate) {
    logits = lax::dot_general(logits, *options.gate, {{1}, {0}, {}, {}},
                              {.precision = "", .preferred_element_type = sum_dtype(tokens.dtype())});
  }
  int64_t capacity = no_limit;
  if (options.capacity_factor) {
    const double copies = static_cast<double>(count) * static_cast<double>(top_k);
    const double room = std::ceil(*options.capacity_factor * copies / static_cast<double>(num_experts));
    capacity = static_cast<int64_t>(std::min(room, copies));
  }
  Arrays all = capibara::bind(handle, Arrays{logits},
                              {{"top_k", top_k},
                               {"capacity", capacity},
                               {"renormalize", options.renormalize},
                               {"load_balancing", load_balancing}});
  Shape shape = leading;
  shape.push_back(top_k);
  return {all[0].reshape(shape), all[1].reshape(shape), all[2], all[3], all[4], all[5], all[6]};
}

}  // namespace capibara::kernels
