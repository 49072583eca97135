// The meaning of fused attention: scans over blocks of queries and keys that carry the softmax's running maxima and
// sums.
//
// No queries x keys array is materialised, forward or backward. Blocks in which no query sees a key are skipped.
#include <capibara/lax.h>

#include <limits>

#include "kernels/attention/blockwise.h"
#include "lax/rules.h"

namespace capibara::kernels {

namespace lax = jax::lax;

namespace {

using Carry = std::vector<Array>;

constexpr double infinity = std::numeric_limits<double>::infinity();

Array filled(Shape shape, DType dtype, double value) { return lax::full(std::move(shape), scalar_of(dtype, value)); }

Array is_minus_infinity(const Array& x) { return x == scalar_of(x.dtype(), -infinity); }

// x where it is not minus infinity, else 0, so that differences with it are defined.
Array finite_row(const Array& x) { return lax::select(is_minus_infinity(x), lax::zeros_like(x), x); }

Array any(const Array& x) {
  Ints axes;
  for (int64_t i = 0; i < x.ndim(); ++i) axes.push_back(i);
  return lax::reduce_or(x, {.axes = axes});
}

Array spread_rows(const Array& rows, const Array& like) {
  return lax::broadcast_in_dim(rows, like.shape(), {0, 1, 2, 3});
}

// Runs body(block of keys, seen, carry) for the key blocks that a query block may see.
template <class Body>
Carry over_keys(const BlockwiseAttention& blocks, const AttentionBlock& query, bool own_rows, const Carry& init,
                Body body) {
  auto step = [&](const Carry& carry, const Array& number) {
    const AttentionBlock key = blocks.key_block(number);
    const Array seen = blocks.seen(query, key, own_rows);
    auto run = [&](const Carry& state) { return body(key, seen, state); };
    auto skip = [](const Carry& state) { return state; };
    // The branch that reads the most comes first: a text whose branches list no operands is read back in this order.
    return std::pair(seen.defined() ? lax::cond(~any(seen), skip, run, carry) : run(carry), std::monostate{});
  };
  return lax::scan(step, init, lax::iota(DType::int32, blocks.key_blocks())).first;
}

template <class Body>
Carry over_queries(const BlockwiseAttention& blocks, const Carry& init, Body body) {
  auto step = [&](const Carry& carry, const Array& number) {
    return std::pair(body(blocks.query_block(number), carry), std::monostate{});
  };
  return lax::scan(step, init, lax::iota(DType::int32, blocks.query_blocks())).first;
}

Array add_at(const Array& x, const Array& update, const Array& start, int64_t axis) {
  const Array before = lax::dynamic_slice_in_dim(x, start, update.shape(axis), axis, false);
  return lax::dynamic_update_slice_in_dim(x, before + update, start, axis, false);
}

}  // namespace

Arrays compose_attention(std::span<const Array> in, const Attrs& attrs) {
  const AttentionSpec spec(attrs);
  const AttentionSizes sizes(in[0].shape(), in[1].shape(), in[2].shape());
  const DType wide = attention_sum_dtype(in[0].dtype());
  const Shape rows{sizes.batch, sizes.groups, sizes.per_group(), sizes.queries};
  Shape outputs = rows;
  outputs.push_back(sizes.value_size);
  Array output = filled(outputs, in[0].dtype(), 0), lse = filled(rows, wide, -infinity);
  const BlockwiseAttention blocks(spec, sizes, in.subspan(forward_operands), wide);
  if (sizes.keys > 0 && output.size() > 0) {
    const Array query = blocks.grouped(in[0]), key = in[1], value = in[2];
    auto row_block = [&](const AttentionBlock& at, const Carry& results) {
      const Array own = blocks.queries_of(query, at, 3);
      Shape shape = own.shape();
      shape.pop_back();
      const Array maximum = filled(shape, wide, -infinity), sum = filled(shape, wide, 0);
      shape.push_back(sizes.value_size);
      const Carry init = {maximum, sum, filled(shape, wide, 0)};
      const Carry last = over_keys(
          blocks, at, false, init, [&](const AttentionBlock& key_at, const Array& seen, const Carry& state) -> Carry {
            const Array logits = blocks.logits(own, blocks.keys_of(key, key_at, 2), at, key_at, seen);
            const Array values = blocks.keys_of(value, key_at, 2);
            const Array next = lax::stop_gradient(lax::max(state[0], lax::reduce_max(logits, {.axes = {4}})));
            const Array base = finite_row(next);
            Array shares = lax::exp(logits - spread_rows(base, logits));
            const Array decay = lax::exp(lax::stop_gradient(state[0]) - base);
            const Array before = state[1] * decay, total = before + lax::reduce_sum(shares, {.axes = {4}});
            if (spec.dropout_rate > 0) {
              const Array scaled = shares * scalar_of(wide, spec.keep_scale());
              shares = lax::select(blocks.kept(at, key_at), scaled, lax::zeros_like(shares));
            }
            const Array added = lax::dot_general(shares.astype(value.dtype()), values, {{4}, {2}, {0, 1}, {0, 1}},
                                                 {.precision = {}, .preferred_element_type = wide});
            return {next, total, state[2] * spread_rows(decay, state[2]) + added};
          });
      const Array empty = last[1] == scalar_of(wide, 0);
      const Array divisor = lax::select(empty, lax::full_like(last[1], scalar_of(wide, 1)), last[1]);
      const Array ratio = last[2] / spread_rows(divisor, last[2]), logarithm = last[0] + lax::log(divisor);
      const Array shares = lax::select(spread_rows(empty, ratio), lax::zeros_like(ratio), ratio);
      const Array row_lse = lax::select(empty, lax::full_like(logarithm, scalar_of(wide, -infinity)), logarithm);
      const Array written =
          lax::dynamic_update_slice_in_dim(results[0], shares.astype(output.dtype()), at.start, 3, false);
      return Carry{written, lax::dynamic_update_slice_in_dim(results[1], row_lse, at.start, 3, false)};
    };
    const Carry results = over_queries(blocks, {output, lse}, row_block);
    output = results[0];
    lse = results[1];
  }
  const Array merged = blocks.ungrouped(output);
  return {merged, blocks.ungrouped(lse)};
}

Arrays compose_attention_grad(std::span<const Array> in, const Attrs& attrs) {
  const AttentionSpec spec(attrs);
  const AttentionSizes sizes(in[1].shape(), in[2].shape(), in[3].shape());
  const DType narrow = in[1].dtype(), wide = attention_sum_dtype(narrow);
  const BlockwiseAttention blocks(spec, sizes, in.subspan(backward_operands), wide);
  const Array query = blocks.grouped(in[1]), key = in[2], value = in[3], cotangent = blocks.grouped(in[0]);
  const Array lse = finite_row(blocks.grouped(in[4])), delta = blocks.grouped(in[5]);
  Carry sums = {filled(query.shape(), wide, 0), filled(key.shape(), wide, 0), filled(value.shape(), wide, 0)};
  const ArrayType bias_type =
      spec.has_bias ? in[backward_operands + static_cast<std::size_t>(spec.bias)].type() : ArrayType();
  if (spec.has_bias) sums.push_back(filled(bias_type.shape, wide, 0));
  const lax::DotOptions to_wide{.precision = {}, .preferred_element_type = wide};
  const Array factor = scalar_of(wide, spec.scale);
  auto row_block = [&](const AttentionBlock& at, const Carry& carry) {
    const Array own = blocks.queries_of(query, at, 3), gradient = blocks.queries_of(cotangent, at, 3);
    const Array own_lse = blocks.queries_of(lse, at, 3), own_delta = blocks.queries_of(delta, at, 3);
    Carry init = carry;
    init[0] = filled(own.shape(), wide, 0);  // for this block only
    Carry last = over_keys(
        blocks, at, true, init, [&](const AttentionBlock& key_at, const Array& seen, const Carry& state) -> Carry {
          const Array keys = blocks.keys_of(key, key_at, 2), values = blocks.keys_of(value, key_at, 2);
          const Array logits = blocks.logits(own, keys, at, key_at, seen);
          const Array shares = lax::exp(logits - spread_rows(own_lse, logits));
          Array dshares = lax::dot_general(gradient, values, {{4}, {3}, {0, 1}, {0, 1}}, to_wide), weights = shares;
          if (spec.dropout_rate > 0) {
            const Array keep = blocks.kept(at, key_at), times = scalar_of(wide, spec.keep_scale());
            weights = lax::select(keep, shares * times, lax::zeros_like(shares));
            dshares = lax::select(keep, dshares * times, lax::zeros_like(shares));
          }
          const Array dlogits = shares * (dshares - spread_rows(own_delta, dshares)), small = dlogits.astype(narrow);
          const Array dvalue =
              lax::dot_general(weights.astype(narrow), gradient, {{2, 3}, {2, 3}, {0, 1}, {0, 1}}, to_wide);
          const Array dkey = lax::dot_general(small, own, {{2, 3}, {2, 3}, {0, 1}, {0, 1}}, to_wide) * factor;
          const Array dquery = lax::dot_general(small, keys, {{4}, {2}, {0, 1}, {0, 1}}, to_wide) * factor;
          Carry next = {state[0] + dquery, add_at(state[1], dkey, key_at.start, 2),
                        add_at(state[2], dvalue, key_at.start, 2)};
          if (spec.has_bias) next.push_back(blocks.add_to_bias(state[3], dlogits, at, key_at));
          return next;
        });
    last[0] = add_at(carry[0], last[0], at.start, 3);
    return last;
  };
  if (sizes.keys > 0 && query.size() > 0) sums = over_queries(blocks, sums, row_block);
  const Array dquery = blocks.ungrouped(sums[0]).astype(narrow), dkey = sums[1].astype(narrow);
  Arrays results = {dquery, dkey, sums[2].astype(narrow)};
  if (spec.has_bias) results.push_back(sums[3].astype(bias_type.dtype));
  return results;
}

}  // namespace capibara::kernels
