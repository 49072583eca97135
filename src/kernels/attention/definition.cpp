// The softmax of attention and its reverse derivative, as jax writes them, on blocks of queries.
#include "kernels/attention/definition.h"

#include <capibara/control.h>
#include <capibara/lax.h>

#include <algorithm>

#include "kernels/attention/spec.h"
#include "lax/reduce/monoid.h"
#include "lax/rules.h"

namespace capibara::kernels {

namespace lax = jax::lax;

namespace {

Array whole(int64_t value) { return exact_scalar(DType::int32, value); }

Array along_keys(const Array& rows, const Array& like) { return lax::broadcast_in_dim(rows, like.shape(), {0, 1, 2}); }

Array over_logits(const Array& x, const Shape& shape) {
  return x.shape() == shape ? x : lax::broadcast_in_dim(x, shape, {0, 1, 2, 3});
}

// All rows of a group's heads: [rows, last].
Array flat(const Array& x) { return lax::reshape(x, {x.size() / x.shape(3), x.shape(3)}); }

Array matmul_over(const Array& left, const Array& right, int64_t left_axis, int64_t right_axis, DType dtype) {
  return lax::dot_general(left, right, {{left_axis}, {right_axis}, {}, {}},
                          {.precision = {}, .preferred_element_type = dtype});
}

Array added_at(const Array& x, const Array& update, const Arrays& start) {
  const Array before = lax::dynamic_slice(x, start, update.shape(), false);
  return lax::dynamic_update_slice(x, before + update, start, false);
}

// The largest divisor for which the rows of a block stay small compared to the operands.
int64_t block_rows(int64_t queries) {
  int64_t size = std::min<int64_t>(32, queries);
  while (queries % size != 0) --size;
  return size;
}

}  // namespace

AttentionDefinition::AttentionDefinition(const PlainAttention& plain, const Seen& seen, const DefinedOperands& operands)
    : plain_(plain),
      seen_(seen),
      operands_(operands),
      wide_(attention_sum_dtype(plain.dtype)),
      heads_(operands.query.shape(1) / operands.key.shape(1)),
      size_(block_rows(operands.query.shape(2))),
      blocks_(operands.query.shape(2) / size_) {}

AttentionDefinition::Block AttentionDefinition::block(const Array& number) const {
  const Array groups = whole(operands_.key.shape(1)), blocks = whole(blocks_);
  const Array first = lax::div(number, blocks), batch = lax::div(first, groups);
  const Array group = first - batch * groups;
  return {number, batch, group, group * whole(heads_), (number - first * blocks) * whole(size_)};
}

// Dimensions of size 1 are broadcast.
Arrays AttentionDefinition::start_of(const Array& x, const Block& at) const {
  const auto from = [&](int64_t axis, const Array& first) { return x.shape(axis) == 1 ? whole(0) : first; };
  return {from(0, at.batch), from(1, at.head), from(2, at.row), whole(0)};
}

Array AttentionDefinition::rows_of(const Array& x, const Block& at) const {
  const Shape sizes{1, std::min(heads_, x.shape(1)), std::min(size_, x.shape(2)), x.shape(3)};
  return lax::dynamic_slice(x, start_of(x, at), sizes, false);
}

// [keys, feature]
Array AttentionDefinition::group_of(const Array& x, const Block& at) const {
  return flat(lax::dynamic_slice(x, {at.batch, at.group, whole(0), whole(0)}, {1, 1, x.shape(2), x.shape(3)}, false));
}

Array AttentionDefinition::by_head(const Array& x) const { return lax::reshape(x, {1, heads_, size_, x.shape(1)}); }

// Undefined where all keys are seen.
Array AttentionDefinition::seen_of(const Block& at) const {
  Array seen = operands_.mask.defined() ? rows_of(operands_.mask, at) : Array();
  const Array query = lax::broadcasted_iota(DType::int32, {1, 1, size_, 1}, 2) + at.row;
  const Array key = lax::broadcasted_iota(DType::int32, {1, 1, 1, operands_.key.shape(2)}, 3);
  const auto also = [&](const Array& near) { seen = seen.defined() ? seen & near : near; };
  if (seen_.right) also(key <= query + whole(*seen_.right));
  if (seen_.left) also(key >= query - whole(*seen_.left));
  return seen;
}

Array AttentionDefinition::hidden_by(const Array& seen, const Array& x, double hidden) const {
  if (!seen.defined()) return x;
  return lax::select(over_logits(seen, x.shape()), x, lax::full_like(x, scalar_of(x.dtype(), hidden)));
}

AttentionDefinition::Rows AttentionDefinition::rows(const Block& at) const {
  // With a single block nothing depends on its number: the barrier keeps the computation in the loop.
  const Array own = lax::optimization_barrier(Arrays{rows_of(operands_.query, at), at.number})[0];
  const Array query = flat(own), key = group_of(operands_.key, at);
  Array x = by_head(matmul_over(query, key, 1, 1, plain_.product));
  for (const LogitStep& step : plain_.steps) {
    switch (step.kind) {
      case LogitStep::convert:
        x = lax::convert_element_type(x, step.dtype, false);
        break;
      case LogitStep::multiply:
        x = x * scalar_of(step.dtype, step.number);
        break;
      case LogitStep::divide:
        x = x / scalar_of(step.dtype, step.number);
        break;
      case LogitStep::add:
        x = x + over_logits(rows_of(operands_.biases[step.bias], at), x.shape());
        break;
    }
  }
  const Array seen = plain_.condition ? seen_of(at) : Array();
  // Forces rounding: a product fused with the difference below would not give 0 at its own maximum.
  x = lax::optimization_barrier(Arrays{hidden_by(seen, x, plain_.hidden), at.number})[0];
  const Array greatest = lax::reduce_max(x, {.axes = {3}});
  // The barrier keeps these equations from being recognised as attention again.
  const Array exponentials = lax::optimization_barrier(lax::exp(x - along_keys(greatest, x)));
  return {query, key, group_of(operands_.value, at), exponentials, lax::reduce_sum(exponentials, {.axes = {3}}), seen};
}

Array AttentionDefinition::shares(const Rows& rows) const {
  const Array quotient = rows.exponentials / along_keys(rows.totals, rows.exponentials);
  return flat(lax::convert_element_type(quotient, plain_.dtype, false));
}

// A loop with no iterations in ordinary calls: its carry is the output itself, which branches would copy.
Array AttentionDefinition::attend(const Array& output, const Array& ordinary) const {
  using State = std::vector<Array>;
  const int64_t count = operands_.key.shape(0) * operands_.key.shape(1) * blocks_;
  const Array end = lax::select(ordinary, whole(0), whole(count));
  const auto unfinished = [&](const State& state) { return state[0] < state[1]; };
  const auto next_block = [&](const State& state) -> State {
    const Block at = block(state[0]);
    const Rows own = rows(at);
    const Array made = by_head(matmul_over(shares(own), own.value, 1, 0, output.dtype()));
    return {state[0] + whole(1), state[1], lax::dynamic_update_slice(state[2], made, start_of(output, at), false)};
  };
  return lax::while_loop(unfinished, next_block, State{whole(0), end, output})[2];
}

// The gradient of the softmax's operand.
Array AttentionDefinition::logit_gradients(const Rows& rows, const Array& dshares) const {
  const Array gradients = lax::convert_element_type(by_head(dshares), wide_, false);
  const Array totals = along_keys(rows.totals, gradients);
  const Array coupled = lax::reduce_sum(gradients * lax::integer_pow(totals, -2) * rows.exponentials, {.axes = {3}});
  return hidden_by(rows.seen, (gradients / totals - along_keys(coupled, gradients)) * rows.exponentials, 0);
}

// Backpropagates through the steps from the matmul to the logits: [rows, keys] in the type of the operands.
Array AttentionDefinition::product_gradients(Array gradients) const {
  for (auto step = plain_.steps.rbegin(); step != plain_.steps.rend(); ++step) {
    const DType before = step + 1 == plain_.steps.rend() ? plain_.product : (step + 1)->dtype;
    if (step->kind == LogitStep::multiply) gradients = gradients * scalar_of(gradients.dtype(), step->number);
    if (step->kind == LogitStep::divide) gradients = gradients / scalar_of(gradients.dtype(), step->number);
    gradients = lax::convert_element_type(gradients, before, false);
  }
  return flat(lax::convert_element_type(gradients, plain_.dtype, false));
}

Arrays AttentionDefinition::pull_back(const Array& cotangent, DType product, const Shape* bias) const {
  using Carry = std::vector<Array>;
  const auto zeros = [&](const Shape& shape, DType dtype) { return lax::full(shape, scalar_of(dtype, 0)); };
  Carry sums = {zeros(operands_.query.shape(), plain_.dtype), zeros(operands_.key.shape(), wide_),
                zeros(operands_.value.shape(), wide_)};
  if (bias) sums.push_back(zeros(*bias, wide_));
  const auto step = [&](const Carry& carry, const Array& number) {
    const Block at = block(number);
    const Rows own = rows(at);
    const Array gradient = flat(rows_of(cotangent, at));
    const Array logits = logit_gradients(own, matmul_over(gradient, own.value, 1, 1, product));
    const Array products = product_gradients(logits);
    const auto add_to_group = [&](const Array& sum, const Array& by_rows, const Array& rows) {
      const Array more = matmul_over(by_rows, rows, 0, 0, wide_);
      return added_at(sum, lax::reshape(more, {1, 1, more.shape(0), more.shape(1)}),
                      {at.batch, at.group, whole(0), whole(0)});
    };
    Carry next = carry;
    const Array dquery = by_head(matmul_over(products, own.key, 1, 0, plain_.dtype));
    next[0] = lax::dynamic_update_slice(carry[0], dquery, start_of(carry[0], at), false);
    next[1] = add_to_group(carry[1], products, own.query);
    next[2] = add_to_group(carry[2], shares(own), gradient);
    if (bias) {
      Array summed = logits;
      for (const int64_t axis : {1, 2, 3}) {
        if ((*bias)[static_cast<std::size_t>(axis)] == 1)
          summed = lax::expand_dims(lax::reduce_sum(summed, {.axes = {axis}}), {axis});
      }
      next[3] = added_at(carry[3], summed, start_of(carry[3], at));
    }
    return std::pair(next, std::monostate{});
  };
  const int64_t count = operands_.key.shape(0) * operands_.key.shape(1) * blocks_;
  sums = lax::scan(step, sums, lax::iota(DType::int32, count)).first;
  for (std::size_t i = 1; i < 3; ++i) sums[i] = lax::convert_element_type(sums[i], plain_.dtype, false);
  return sums;
}

}  // namespace capibara::kernels
