// Biases and masks on a panel of logits: adds the bias, and sets minus infinity where a query does not see a key.
#pragma once

#include <algorithm>

#include "backends/cpu/kernels/attention/row_functions.h"
#include "backends/cpu/kernels/kernels.h"
#include "core/array/element.h"
#include "kernels/attention/spec.h"
#include "lax/math/threefry.h"

// One call of attention on the CPU: its operands, which keys a query sees, and how it is cut into blocks.

namespace capibara::cpu::attention {

// Operands that broadcast to [batch, heads, queries, keys]: steps in elements, 0 along broadcast dimensions.
struct Broadcast {
  int64_t step[4] = {};

  Broadcast() = default;
  explicit Broadcast(const Shape& shape) {
    int64_t stride = 1;
    for (int i = 3; i >= 0; --i) {
      step[i] = shape[static_cast<std::size_t>(i)] == 1 ? 0 : stride;
      stride *= shape[static_cast<std::size_t>(i)];
    }
  }
  int64_t at(int64_t b, int64_t h, int64_t i = 0, int64_t j = 0) const {
    return b * step[0] + h * step[1] + i * step[2] + j * step[3];
  }
};

// Everything that follows from types and attributes alone.
struct Plan {
  kernels::AttentionSpec spec;
  kernels::AttentionSizes sizes;
  DType dtype, bias_dtype = DType::float32;
  Broadcast mask, bias, blocks;
  int64_t segment_batch[2] = {};  // steps between batch entries of segment ids
  int64_t dropout_keys = 1, bias_size = 0;
  int64_t pattern = 0;  // block size of a sparse pattern; 0: dense
  std::size_t extras;   // index of the first optional operand

  Plan(const KernelRequest& request, std::size_t leading)
      : spec(request.attrs),
        sizes(request.inputs[leading == kernels::forward_operands ? 0 : 1].shape,
              request.inputs[leading == kernels::forward_operands ? 1 : 2].shape,
              request.inputs[leading == kernels::forward_operands ? 2 : 3].shape),
        dtype(request.inputs[0].dtype),
        extras(leading) {
    auto shape = [&](int index) -> const Shape& {
      return request.inputs[leading + static_cast<std::size_t>(index)].shape;
    };
    if (spec.mask >= 0) mask = Broadcast(shape(spec.mask));
    if (spec.bias >= 0) {
      bias = Broadcast(shape(spec.bias));
      bias_dtype = request.inputs[leading + static_cast<std::size_t>(spec.bias)].dtype;
      bias_size = request.inputs[leading + static_cast<std::size_t>(spec.bias)].size();
    }
    if (spec.blocks >= 0) {
      blocks = Broadcast(shape(spec.blocks));
      pattern = spec.block_size;
    }
    if (spec.has_segments) {
      segment_batch[0] = shape(spec.query_segments)[0] == 1 ? 0 : sizes.queries;
      segment_batch[1] = shape(spec.key_segments)[0] == 1 ? 0 : sizes.keys;
    }
    if (spec.dropout_key >= 0) dropout_keys = shape(spec.dropout_key)[0];
  }

  // The largest divisor of the pattern's block size in [near / 2, 2 near]; if there is none, that size.
  int64_t block_size(int64_t near) const {
    if (pattern == 0) return near;
    for (int64_t size = std::min<int64_t>(pattern, 2 * near); size >= near / 2; --size) {
      if (pattern % size == 0) return size;
    }
    return pattern;
  }

  // Keys [begin, end) that some of the queries [first, last) may see; causal order and windows only.
  std::pair<int64_t, int64_t> seen(int64_t first, int64_t last) const {
    int64_t begin = 0, end = sizes.keys;
    if (spec.left >= 0 && spec.sinks == 0 && spec.prefix == 0) begin = first + spec.query_offset - spec.left;
    if (spec.causal) end = std::min(end, last + spec.query_offset);
    if (spec.right >= 0) end = std::min(end, last + spec.query_offset + spec.right);
    end = std::min(std::max(end, spec.by_position() ? spec.prefix : 0), sizes.keys);
    begin = std::clamp<int64_t>(begin, 0, sizes.keys);
    return {begin, std::max(end, begin)};
  }
  // Queries [begin, end) that see a key by causal order and windows; begin may be negative, end past the last.
  std::pair<int64_t, int64_t> seen_by(int64_t key) const {
    int64_t begin = 0, end = sizes.queries;
    if (key < spec.prefix) return {begin, end};
    if (spec.causal) begin = key - spec.query_offset;
    if (spec.right >= 0) begin = std::max(begin, key - spec.query_offset - spec.right);
    if (spec.left >= 0 && key >= spec.sinks) end = std::min(end, key - spec.query_offset + spec.left + 1);
    return {begin, end};
  }
};

// Pointers to the operands of one head other than query, key and value.
struct Head {
  const std::uint8_t* mask = nullptr;
  const std::byte* bias = nullptr;
  const std::int32_t *query_segments = nullptr, *key_segments = nullptr;
  const std::uint8_t* blocks = nullptr;
  Dropout dropout;

  Head(const Plan& plan, std::byte* const* buffers, int64_t b, int64_t h) {
    const kernels::AttentionSpec& spec = plan.spec;
    auto operand = [&](int index) { return buffers[plan.extras + static_cast<std::size_t>(index)]; };
    if (spec.mask >= 0) mask = reinterpret_cast<const std::uint8_t*>(operand(spec.mask)) + plan.mask.at(b, h);
    if (spec.bias >= 0) bias = operand(spec.bias) + plan.bias.at(b, h) * storage_size(plan.bias_dtype);
    if (spec.blocks >= 0) blocks = reinterpret_cast<const std::uint8_t*>(operand(spec.blocks)) + plan.blocks.at(b, h);
    if (spec.has_segments) {
      query_segments = reinterpret_cast<const std::int32_t*>(operand(spec.query_segments)) + b * plan.segment_batch[0];
      key_segments = reinterpret_cast<const std::int32_t*>(operand(spec.key_segments)) + b * plan.segment_batch[1];
    }
    if (spec.dropout_key >= 0) {
      const auto* keys = reinterpret_cast<const std::uint32_t*>(operand(spec.dropout_key));
      const int64_t share = plan.sizes.batch / plan.dropout_keys;
      const std::uint32_t* own = keys + b / share * 2;
      const auto number = static_cast<std::uint32_t>(b % share * plan.sizes.heads + h);
      const auto words = math::threefry2x32<std::uint32_t>({own[0], own[1]}, {number, kernels::dropout_stream});
      dropout = {{words[0], words[1]}, spec.dropout_threshold()};
    }
  }

  // True if some of these queries may be in the segment of some of these keys.
  bool segments_meet(int64_t query, int64_t queries, int64_t key, int64_t keys) const {
    if (!query_segments) return true;
    const auto [low, high] = std::minmax_element(query_segments + query, query_segments + query + queries);
    const auto [first, last] = std::minmax_element(key_segments + key, key_segments + key + keys);
    return *first <= *high && *last >= *low;
  }
  // True if the pattern keeps the block that starts here.
  bool keeps(const Plan& plan, int64_t query, int64_t key) const {
    return !blocks || blocks[plan.blocks.at(0, 0, query / plan.pattern, key / plan.pattern)];
  }
};

// Logits of keys [key + first, key + last) by queries [query, query + count): rows of `width`, row 0 belongs to `key`.
template <class C>
struct LogitPanel {
  C* logits;
  int64_t width, key, first, last, query, count;
};

// Adds (scaled) rows of a bias of type B to logits.
template <class B, class C>
void add_bias_of(const Plan& plan, const Head& head, const LogitPanel<C>& panel, C scale) {
  const B* bias = reinterpret_cast<const B*>(head.bias);
  for (int64_t i = 0; i < panel.count; ++i) {
    const B* row = bias + (panel.query + i) * plan.bias.step[2] + panel.key * plan.bias.step[3];
    const int64_t step = plan.bias.step[3];
    for (int64_t r = panel.first; r < panel.last; ++r) {
      C& logit = panel.logits[r * panel.width + i];
      logit = logit * scale + static_cast<C>(row[r * step]);
    }
  }
}

template <class C>
void add_bias(const Plan& plan, const Head& head, const LogitPanel<C>& panel, C scale) {
  switch (plan.bias_dtype) {
    case DType::bfloat16:
      return add_bias_of<BFloat16>(plan, head, panel, scale);
    case DType::float16:
      return add_bias_of<Half>(plan, head, panel, scale);
    case DType::float64:
      return add_bias_of<double>(plan, head, panel, scale);
    default:
      return add_bias_of<float>(plan, head, panel, scale);
  }
}

template <class C>
void hide_by_mask(const Plan& plan, const Head& head, const LogitPanel<C>& panel) {
  const int64_t row_step = plan.mask.step[2], key_step = plan.mask.step[3];
  const std::uint8_t* mask = head.mask + panel.key * key_step;
  if (row_step == 0) {  // one row for all queries
    for (int64_t r = panel.first; r < panel.last; ++r) {
      if (!mask[r * key_step]) std::fill_n(panel.logits + r * panel.width, panel.width, minus_infinity<C>);
    }
    return;
  }
  for (int64_t i = 0; i < panel.count; ++i) {
    const std::uint8_t* row = mask + (panel.query + i) * row_step;
    C* column = panel.logits + i;
    int64_t r = panel.first;
    while (r < panel.last) {
      std::uint64_t eight = 0;
      if (key_step == 1 && r + 8 <= panel.last) std::memcpy(&eight, row + r, 8);
      if (eight == 0x0101010101010101u) {
        r += 8;
        continue;
      }
      for (const int64_t end = std::min(r + 8, panel.last); r < end; ++r) {
        if (!row[r * key_step]) column[r * panel.width] = minus_infinity<C>;
      }
    }
  }
}

template <class C>
void hide_by_position(const Plan& plan, const LogitPanel<C>& panel) {
  // Later keys are seen by later queries, except the first ones, which more queries see: checking two keys is enough.
  const int64_t last_key = panel.key + panel.last - 1;
  const int64_t first_key =
      std::clamp(std::max<int64_t>(plan.spec.prefix, plan.spec.sinks), panel.key + panel.first, last_key);
  if (plan.seen_by(last_key).first <= panel.query && plan.seen_by(first_key).second >= panel.query + panel.count)
    return;
  for (int64_t r = panel.first; r < panel.last; ++r) {
    // The queries that see a key are contiguous: hide those before the first and after the last.
    const auto [begin, end] = plan.seen_by(panel.key + r);
    const int64_t first = std::clamp<int64_t>(begin - panel.query, 0, panel.count);
    const int64_t last = std::clamp<int64_t>(end - panel.query, first, panel.count);
    C* row = panel.logits + r * panel.width;
    std::fill_n(row, first, minus_infinity<C>);
    std::fill(row + last, row + panel.count, minus_infinity<C>);
  }
}

template <class C>
void hide_by_segment(const Head& head, const LogitPanel<C>& panel) {
  const std::int32_t* own = head.query_segments + panel.query;
  for (int64_t r = panel.first; r < panel.last; ++r) {
    const std::int32_t segment = head.key_segments[panel.key + r];
    C* row = panel.logits + r * panel.width;
    for (int64_t i = 0; i < panel.count; ++i) row[i] = own[i] == segment ? row[i] : minus_infinity<C>;
  }
}

// True if logits are multiplied by the scale before maxima are taken: if a bias is added, or the scale is not
// positive and so does not keep their order.
inline bool scaled_logits(const Plan& plan, const Head& head) { return head.bias || !(plan.spec.scale > 0); }

// Applies all of these. Returns the factor of the logits in the exponent of 2.
template <class C>
C change_logits(const Plan& plan, const Head& head, const LogitPanel<C>& panel) {
  constexpr double log2e = 1.4426950408889634;
  const C scale = static_cast<C>(plan.spec.scale);
  C factor = static_cast<C>(plan.spec.scale * log2e);
  if (scaled_logits(plan, head)) {
    factor = static_cast<C>(log2e);
    if (head.bias)
      add_bias(plan, head, panel, scale);
    else
      for (int64_t i = panel.first * panel.width; i < panel.last * panel.width; ++i) panel.logits[i] *= scale;
  }
  if (plan.spec.by_position()) hide_by_position(plan, panel);
  if (head.query_segments) hide_by_segment(head, panel);
  if (head.mask) hide_by_mask(plan, head, panel);
  return factor;
}

}  // namespace capibara::cpu::attention
