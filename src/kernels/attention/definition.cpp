// The softmax of attention and its reverse derivative, as jax writes them, on blocks of queries.
#include "kernels/attention/definition.h"

#include <capibara/control.h>
#include <capibara/lax.h>

#include <algorithm>

#include "kernels/attention/spec.h"
#include "lax/monoid.h"
#include "lax/rules.h"

namespace capibara::kernels {

namespace lax = jax::lax;

namespace {

Array whole(int64_t value) { return exact_scalar(DType::int32, value); }

Array along_keys(const Array& rows, const Array& like) {
  return lax::broadcast_in_dim(rows, like.shape(), {0, 1, 2});
}

Array over_logits(const Array& x, const Shape& shape) {
  return x.shape() == shape ? x : lax::broadcast_in_dim(x, shape, {0, 1, 2, 3});
}

Array added_at(const Array& x, const Array& update, const Array& start) {
  const Array before = lax::dynamic_slice_in_dim(x, start, update.shape(2), 2, false);
  return lax::dynamic_update_slice_in_dim(x, before + update, start, 2, false);
}

// The largest divisor that keeps the rows of a block few beside the operands.
int64_t block_rows(int64_t queries) {
  int64_t size = std::min<int64_t>(16, queries);
  while (queries % size != 0) --size;
  return size;
}

}  // namespace

AttentionDefinition::AttentionDefinition(const PlainAttention& plain, const Seen& seen, const DefinedOperands& operands)
    : plain_(plain),
      seen_(seen),
      operands_(operands),
      wide_(attention_sum_dtype(plain.dtype)),
      size_(block_rows(operands.query.shape(2))),
      blocks_(operands.query.shape(2) / size_) {}

Array AttentionDefinition::rows_of(const Array& x, const Array& start) const {
  return x.shape(2) == 1 ? x : lax::dynamic_slice_in_dim(x, start, size_, 2, false);
}

// [batch, heads, rows, ...] -> [batch, groups, heads of a group, rows, ...], and back.
Array AttentionDefinition::grouped(const Array& x) const {
  const Shape& s = x.shape();
  const int64_t groups = operands_.key.shape(1);
  return lax::reshape(x, {s[0], groups, s[1] / groups, s[2], s[3]});
}

Array AttentionDefinition::by_head(const Array& x) const {
  const Shape& s = x.shape();
  return lax::reshape(x, {s[0], s[1] * s[2], s[3], s[4]});
}

// Rows of each head by the keys or values of its group.
Array AttentionDefinition::multiply(const Array& left, const Array& right, int64_t contracted, DType dtype) const {
  return by_head(lax::dot_general(grouped(left), right, {{4}, {contracted}, {0, 1}, {0, 1}},
                                  {.precision = {}, .preferred_element_type = dtype}));
}

// Sums over the rows of all heads of a group: [batch, groups, keys, feature].
Array AttentionDefinition::add_over_rows(const Array& slopes, const Array& rows) const {
  return lax::dot_general(grouped(slopes), grouped(rows), {{2, 3}, {2, 3}, {0, 1}, {0, 1}},
                          {.precision = {}, .preferred_element_type = wide_});
}

// Undefined where all keys are seen.
Array AttentionDefinition::seen_of(const Array& start) const {
  Array seen = operands_.mask.defined() ? rows_of(operands_.mask, start) : Array();
  const Array query = lax::broadcasted_iota(DType::int32, {1, 1, size_, 1}, 2) + start;
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

AttentionDefinition::Rows AttentionDefinition::rows(const Array& start) const {
  Array x = multiply(rows_of(operands_.query, start), operands_.key, 3, plain_.product);
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
        x = x + over_logits(rows_of(operands_.biases[step.bias], start), x.shape());
        break;
    }
  }
  const Array seen = plain_.condition ? seen_of(start) : Array();
  x = hidden_by(seen, x, plain_.hidden);
  const Array greatest = lax::reduce_max(x, {.axes = {3}});
  // The barrier keeps these equations from being found as attention in turn.
  const Array exponentials = lax::optimization_barrier(lax::exp(x - along_keys(greatest, x)));
  return {exponentials, lax::reduce_sum(exponentials, {.axes = {3}}), seen};
}

Array AttentionDefinition::shares(const Rows& rows) const {
  const Array quotient = rows.exponentials / along_keys(rows.totals, rows.exponentials);
  return lax::convert_element_type(quotient, plain_.dtype, false);
}

// A loop of no iterations in ordinary calls: its carry is the output itself, which branches would copy.
Array AttentionDefinition::attend(const Array& output, const Array& ordinary) const {
  using State = std::vector<Array>;
  const Array end = lax::select(ordinary, whole(0), whole(blocks_));
  const auto unfinished = [&](const State& state) { return state[0] < state[1]; };
  const auto next_block = [&](const State& state) -> State {
    const Array start = state[0] * whole(size_);
    const Array made = multiply(shares(rows(start)), operands_.value, 2, output.dtype());
    return {state[0] + whole(1), state[1],
            lax::dynamic_update_slice_in_dim(state[2], made, start, 2, false)};
  };
  return lax::while_loop(unfinished, next_block, State{whole(0), end, output})[2];
}

Arrays AttentionDefinition::pull_back(const Array& cotangent, DType product, const Shape* bias) const {
  const auto zeros = [&](const Shape& shape) { return lax::full(shape, scalar_of(wide_, 0)); };
  std::vector<Array> sums = {zeros(operands_.query.shape()), zeros(operands_.key.shape()),
                             zeros(operands_.value.shape())};
  if (bias) sums.push_back(zeros(*bias));
  const auto block = [&](const std::vector<Array>& carry, const Array& number) {
    const Array start = number * whole(size_);
    const Array own = rows_of(operands_.query, start), slope = rows_of(cotangent, start);
    const Rows at = rows(start);
    const Array weights = shares(at), totals = along_keys(at.totals, at.exponentials);
    const Array dshares = lax::convert_element_type(multiply(slope, operands_.value, 3, product), wide_, false);
    const Array coupled = lax::reduce_sum(dshares * lax::integer_pow(totals, -2) * at.exponentials, {.axes = {3}});
    Array slopes = (dshares / totals - along_keys(coupled, dshares)) * at.exponentials;
    slopes = hidden_by(at.seen, slopes, 0);
    std::vector<Array> next = carry;
    if (bias) {
      Array summed = slopes;
      for (const int64_t axis : {0, 1, 2, 3}) {
        if ((*bias)[static_cast<std::size_t>(axis)] == 1 && summed.shape(axis) != 1)
          summed = lax::expand_dims(lax::reduce_sum(summed, {.axes = {axis}}), {axis});
      }
      next[3] = (*bias)[2] == 1 ? carry[3] + summed : added_at(carry[3], summed, start);
    }
    for (auto step = plain_.steps.rbegin(); step != plain_.steps.rend(); ++step) {
      const DType before = step + 1 == plain_.steps.rend() ? plain_.product : (step + 1)->dtype;
      if (step->kind == LogitStep::multiply) slopes = slopes * scalar_of(slopes.dtype(), step->number);
      if (step->kind == LogitStep::divide) slopes = slopes / scalar_of(slopes.dtype(), step->number);
      slopes = lax::convert_element_type(slopes, before, false);
    }
    slopes = lax::convert_element_type(slopes, plain_.dtype, false);
    next[0] = added_at(carry[0], multiply(slopes, operands_.key, 2, wide_), start);
    next[1] = carry[1] + add_over_rows(slopes, own);
    next[2] = carry[2] + add_over_rows(weights, slope);
    return std::pair(next, std::monostate{});
  };
  sums = lax::scan(block, sums, lax::iota(DType::int32, blocks_)).first;
  for (std::size_t i = 0; i < 3; ++i) sums[i] = lax::convert_element_type(sums[i], plain_.dtype, false);
  return sums;
}

}  // namespace capibara::kernels
