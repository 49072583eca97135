// Expresses written-out attention as a call of flash_attention, and its reverse derivative as one of the gradient.
//
// Rows in which every key is hidden get the program's result: logits that all equal one large negative number
// give the mean of the values, logits that all are minus infinity give NaN. Calls that are not ordinary (ordinary.h)
// are computed by the definition.
#include <capibara/control.h>
#include <capibara/lax.h>

#include <limits>

#include "kernels/attention/fused_form.h"
#include "kernels/attention/ordinary.h"
#include "kernels/attention/spec.h"
#include "lax/reduce/monoid.h"
#include "lax/rules.h"

namespace capibara::kernels {

namespace lax = jax::lax;

namespace {

const Primitive& flash_attention_primitive() {
  static const Primitive& handle = *new Primitive(primitive("flash_attention"));
  return handle;
}

const Primitive& flash_attention_grad_primitive() {
  static const Primitive& handle = *new Primitive(primitive("flash_attention_grad"));
  return handle;
}

Axes chained(Axes a, const Axes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Ints count_up(std::size_t count) {
  Ints all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(static_cast<int64_t>(i));
  return all;
}

Array spread_to(const Array& x, const Shape& shape) {
  return x.shape() == shape ? x : lax::broadcast_in_dim(x, shape, count_up(shape.size()));
}

// Permutes the dimensions that are axes to this order; those of size 1 are dropped.
Array ordered(const Array& x, const Axes& axes, const Axes& order) {
  Shape kept;
  Axes own;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (x.shape()[i] == 1) continue;
    kept.push_back(x.shape()[i]);
    own.push_back(axes[i]);
  }
  Ints permutation;
  for (int axis : order) {
    const auto it = std::find(own.begin(), own.end(), axis);
    if (it != own.end()) permutation.push_back(it - own.begin());
  }
  return lax::transpose(lax::reshape(x, kept), permutation);
}

Array filled_like(const Array& x, double value) { return lax::full_like(x, scalar_of(x.dtype(), value)); }

Array added(const Array& a, const Array& b) { return !a.defined() ? b : a + b; }

Shape broadcast_shape(const Array& a, const Array& b) {
  Shape shape = a.shape();
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = std::max(shape[i], b.shape()[i]);
  return shape;
}

}  // namespace

bool FusedForm::is_call(const Equation& equation) {
  return equation.primitive == flash_attention_primitive() || equation.primitive == flash_attention_grad_primitive();
}

FusedForm::FusedForm(const Equations& equations, const PlainAttention& plain, Special special)
    : plain_(plain), special_(special), seen_(read_seen(equations, plain)), leading_(plain.batch), heads_(plain.heads) {
  if (!leading_.empty()) {
    heads_.insert(heads_.begin(), leading_.back());
    leading_.pop_back();
  }
  query_order_ = chained(chained(leading_, heads_), {plain.query, feature_axis});
  key_order_ = chained(plain.batch, {plain.key, feature_axis});
  logit_order_ = chained(chained(leading_, heads_), {plain.query, plain.key});
}

std::vector<Atom> FusedForm::operands() const {
  std::vector<Atom> all = {plain_.queries.atom, plain_.keys.atom, plain_.values.atom};
  for (const Labelled& mask : seen_.masks) all.push_back(mask.atom);
  for (const Labelled& bias : plain_.biases) all.push_back(bias.atom);
  return all;
}

// ---- layouts ----------------------------------------------------------------------------------------------------

// [batch, heads or groups, length, feature] of queries (query_order_) or keys and values (key_order_).
Array FusedForm::by_heads(const Array& x, const Axes& axes, const Axes& order) const {
  int64_t features = x.size();
  for (int axis : order) features /= axis >= 0 ? plain_.size({&axis, 1}) : 1;
  const bool keys = order == key_order_;
  const int64_t groups = plain_.batch.empty() ? 1 : plain_.size({&plain_.batch.back(), 1});
  const int length = keys ? plain_.key : plain_.query;
  return lax::reshape(ordered(x, axes, order), {plain_.size(leading_), keys ? groups : plain_.size(heads_),
                                                plain_.size({&length, 1}), features});
}

Array FusedForm::from_heads(const Array& x, const Axes& order, const Axes& axes, const Shape& shape) const {
  Shape split;
  for (int axis : order) split.push_back(axis >= 0 ? plain_.size({&axis, 1}) : x.shape(3));
  return lax::reshape(ordered(lax::reshape(x, split), order, axes), shape);
}

// Reshapes an array that broadcasts to the logits to [batch or 1, heads or 1, queries or 1, keys or 1].
Array FusedForm::spread(const Array& x, const Axes& axes) const {
  Shape own, whole, four;
  for (const Axes& part : {leading_, heads_, Axes{plain_.query}, Axes{plain_.key}}) {
    const bool any = std::any_of(part.begin(), part.end(), [&](int axis) { return holds(axes, axis); });
    for (int axis : part) {
      own.push_back(holds(axes, axis) ? plain_.size({&axis, 1}) : 1);
      whole.push_back(any ? plain_.size({&axis, 1}) : 1);
    }
    four.push_back(any ? plain_.size(part) : 1);
  }
  return lax::reshape(spread_to(lax::reshape(ordered(x, axes, logit_order_), own), whole), four);
}

// Sums gradients [batch, heads, queries, keys], where some sizes are 1, over the axes that are not in `axes`.
Array FusedForm::bias_cotangent(const Array& gradients, const Axes& axes, const Shape& shape) const {
  Shape split;
  Axes order;
  Ints others;
  const Axes parts[] = {leading_, heads_, {plain_.query}, {plain_.key}};
  for (std::size_t p = 0; p < 4; ++p) {
    for (int axis : parts[p]) {
      if (gradients.shape()[p] == 1) continue;
      if (!holds(axes, axis)) others.push_back(static_cast<int64_t>(order.size()));
      split.push_back(plain_.size({&axis, 1}));
      order.push_back(axis);
    }
  }
  const Array sums = lax::reduce_sum(lax::reshape(gradients, split), {.axes = others});
  std::erase_if(order, [&](int axis) { return !holds(axes, axis); });
  return lax::reshape(ordered(sums, order, axes), shape);
}

// ---- operands ---------------------------------------------------------------------------------------------------

Array FusedForm::positions_seen() const {
  const Shape shape{1, 1, plain_.size({&plain_.query, 1}), plain_.size({&plain_.key, 1})};
  const Array query = lax::broadcasted_iota(DType::int32, shape, 2),
              key = lax::broadcasted_iota(DType::int32, shape, 3);
  Array seen;
  if (seen_.right) seen = key <= query + *seen_.right;
  if (!seen_.left) return seen;
  const Array from = key >= query - *seen_.left;
  return seen.defined() ? seen & from : from;
}

// The mask from arrays; position limits are options of fused attention.
Array FusedForm::mask_of(std::span<const Array> masks) const {
  Array all;
  for (std::size_t i = 0; i < masks.size(); ++i) {
    const Array mask = spread(masks[i], seen_.masks[i].axes);
    all = all.defined() ? all & mask : mask;
  }
  return all;
}

// The bias from biases of four dimensions. A key hidden by a condition gets the hidden number as its bias, which
// absorbs the logit: exact for rows whose other keys, if any, all have bias -inf.
Array FusedForm::bias_of(std::span<const Array> biases, const Array& seen) const {
  const DType wide = attention_sum_dtype(plain_.dtype);
  Array bias;
  for (std::size_t i = 0; i < biases.size(); ++i) {
    bias = added(bias, lax::convert_element_type(biases[i], wide, false));
  }
  if (!seen.defined()) return bias;
  const Array all = spread_to(bias, broadcast_shape(bias, seen));
  return lax::select(spread_to(seen, all.shape()), all, filled_like(all, plain_.hidden));
}

FusedForm::Operands FusedForm::operands_of(std::span<const Array> in) const {
  Operands all;
  all.query = by_heads(in[0], plain_.queries.axes, query_order_);
  all.key = by_heads(in[1], plain_.keys.axes, key_order_);
  all.value = by_heads(in[2], plain_.values.axes, key_order_);
  const std::span<const Array> masks = in.subspan(3, seen_.masks.size());
  const std::span<const Array> biases = in.subspan(3 + masks.size(), plain_.biases.size());
  all.has_bias = !biases.empty();
  all.has_mask = !all.has_bias && !masks.empty();
  all.seen = all.mask = mask_of(masks);
  for (std::size_t i = 0; i < biases.size(); ++i) all.biases.push_back(spread(biases[i], plain_.biases[i].axes));
  if (all.has_mask) all.extras.push_back(all.seen);
  if (!all.has_bias) return all;
  if (seen_.by_position()) {
    const Array near = positions_seen();
    all.seen = all.seen.defined() ? all.seen & near : near;
  }
  all.extras.push_back(bias_of(all.biases, all.seen));
  return all;
}

Attrs FusedForm::attrs(const Operands& operands) const {
  const bool by_position = !operands.has_bias;
  const int64_t left = by_position ? seen_.left.value_or(-1) : -1, right = by_position ? seen_.right.value_or(-1) : -1;
  return {{"causal", right == 0},
          {"mask", operands.has_mask},
          {"bias", operands.has_bias},
          {"segments", false},
          {"blocks", false},
          {"scale", plain_.scale},
          {"dropout_rate", 0.0},
          {"window", Ints{left, right == 0 ? -1 : right}},
          {"sinks", 0},
          {"prefix", 0},
          {"query_offset", 0},
          {"block_size", 0}};
}

// True if a row may have no visible key: with a window, the last query has the smallest number of them.
bool FusedForm::may_hide_all() const {
  if (!seen_.masks.empty() || !plain_.biases.empty()) return true;
  const int64_t last = plain_.size({&plain_.query, 1}) - 1;
  return seen_.left && last - *seen_.left >= plain_.size({&plain_.key, 1});
}

// ---- rows without keys ------------------------------------------------------------------------------------------

// [batch, heads, queries, feature] summed over the queries of each group: [batch, groups, 1, feature]
Array FusedForm::sum_by_group(const Array& x) const {
  const int64_t groups = plain_.batch.empty() ? 1 : plain_.size({&plain_.batch.back(), 1});
  const Shape& s = x.shape();
  return lax::reshape(lax::reduce_sum(lax::reshape(x, {s[0], groups, s[1] / groups * s[2], s[3]}), {.axes = {2}}),
                      {s[0], groups, 1, s[3]});
}

Array FusedForm::with_hidden_rows(const Array& output, const Array& lse, const Array& value) const {
  if (!may_hide_all()) return output;
  const Array empty = lax::broadcast_in_dim(lse == scalar_of(lse.dtype(), -infinity), output.shape(), {0, 1, 2});
  if (!plain_.biases.empty() || plain_.hidden == -infinity) {
    return lax::select(empty, filled_like(output, std::numeric_limits<double>::quiet_NaN()), output);
  }
  const Array share = scalar_of(lse.dtype(), 1 / static_cast<double>(value.shape(2)));
  const Array mean = lax::reduce_sum(value.astype(lse.dtype()) * share, {.axes = {2}}).astype(output.dtype());
  const Shape& s = output.shape();
  const int64_t groups = value.shape(1);
  const Array rows = lax::broadcast_in_dim(mean, {s[0], groups, s[1] / groups, s[2], s[3]}, {0, 1, 4});
  return lax::select(empty, lax::reshape(rows, s), output);
}

// Gradients of queries, keys, values and the bias.
void FusedForm::add_hidden_rows(Arrays& gradients, const Array& cotangent, const Array& lse) const {
  if (!may_hide_all()) return;
  const DType wide = lse.dtype();
  const Array empty = lse == scalar_of(wide, -infinity);
  auto add = [](Array& x, const Array& more) { x = x + more.astype(x.dtype()); };
  if (plain_.biases.empty() && plain_.hidden > -infinity) {
    const Array all = cotangent.astype(wide);
    const Array rows = lax::select(lax::broadcast_in_dim(empty, all.shape(), {0, 1, 2}), all, lax::zeros_like(all));
    add(gradients[2], sum_by_group(rows) / scalar_of(wide, static_cast<double>(gradients[2].shape(2))));
    return;
  }
  const Array zero = lax::zeros_like(lse);
  const Array nan = lax::select(empty, filled_like(zero, std::numeric_limits<double>::quiet_NaN()), zero);
  const Array rows = lax::expand_dims(nan, {3}), sums = sum_by_group(rows);
  add(gradients[2], sums);
  if (plain_.biases.empty()) return;  // hidden keys have no gradient
  add(gradients[0], rows);
  add(gradients[1], sums);
  Array to_bias = rows;
  for (const int64_t axis : {0, 1, 2}) {
    if (gradients[3].shape(axis) == 1) to_bias = lax::expand_dims(lax::reduce_sum(to_bias, {.axes = {axis}}), {axis});
  }
  add(gradients[3], to_bias);
}

// ---- calls ------------------------------------------------------------------------------------------------------

Arrays FusedForm::forward(std::span<const Array> in, const std::optional<Shape>& result) const {
  const Operands operands = operands_of(in);
  Arrays inputs = {operands.query, operands.key, operands.value};
  inputs.insert(inputs.end(), operands.extras.begin(), operands.extras.end());
  Arrays fused = capibara::bind(flash_attention_primitive(), inputs, attrs(operands));
  const bool looks = special_ == Special::as_written;
  const OrdinaryAttention values(plain_, operands, skips(), may_hide_all());
  fused.push_back(looks ? values.forward(fused[0], fused[1]) : exact_scalar(DType::bool_, 1));
  if (!result) return fused;
  Array output = with_hidden_rows(fused[0], fused[1], operands.value);
  if (looks) output = AttentionDefinition(plain_, seen_, operands).attend(output, fused[2]);
  // The gradient then reads only the result, so the loop above need not copy it. Rows without keys differ.
  if (!may_hide_all()) fused[0] = output;
  fused.push_back(from_heads(output, query_order_, plain_.result_axes, *result));
  return fused;
}

// Gradients of queries, keys, values and the bias. `saved`: the results of forward.
Arrays FusedForm::fused_gradient(const Operands& operands, std::span<const Array> saved, const Array& cotangent) const {
  const Array &output = saved[0], &lse = saved[1];
  const Array products = cotangent.astype(lse.dtype()) * output.astype(lse.dtype());
  const Array delta = lax::reduce_sum(products, {.axes = {3}});
  Arrays inputs = {cotangent, operands.query, operands.key, operands.value, lse, delta};
  inputs.insert(inputs.end(), operands.extras.begin(), operands.extras.end());
  Arrays gradients = capibara::bind(flash_attention_grad_primitive(), inputs, attrs(operands));
  add_hidden_rows(gradients, cotangent, lse);
  if (operands.has_bias && operands.seen.defined()) {  // hidden logits do not depend on the bias
    gradients[3] =
        lax::select(spread_to(operands.seen, gradients[3].shape()), gradients[3], lax::zeros_like(gradients[3]));
  }
  return gradients;
}

Arrays FusedForm::gradient(std::span<const Array> in, const PlainGradient& gradient, const Types& results) const {
  const std::span<const Array> saved = in.subspan(in.size() - 4, 3);
  const Operands operands = operands_of(in);
  const Array cotangent = by_heads(in.back(), gradient.cotangent.axes, query_order_);
  const auto fused = [&] { return fused_gradient(operands, saved, cotangent); };
  Arrays gradients;
  if (special_ == Special::as_written) {
    const OrdinaryAttention values(plain_, operands, skips(), may_hide_all());
    const AttentionDefinition definition(plain_, seen_, operands);
    const Shape* bias = operands.has_bias ? &operands.extras[0].shape() : nullptr;
    gradients = lax::cond(values.backward(saved[2], cotangent, gradient.product), fused,
                          [&] { return definition.pull_back(cotangent, gradient.product, bias); });
  } else {
    gradients = fused();
  }
  Arrays all;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& [of, number, equation, axes] = gradient.results[i];
    const Shape& shape = results[i].shape;
    const Array made = of == PlainCotangent::bias      ? bias_cotangent(gradients[3], axes, shape)
                       : of == PlainCotangent::queries ? from_heads(gradients[0], query_order_, axes, shape)
                                                       : from_heads(gradients[of], key_order_, axes, shape);
    all.push_back(lax::convert_element_type(made, results[i].dtype, false));
  }
  return all;
}

}  // namespace capibara::kernels
