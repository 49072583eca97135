// One call of attention on the CPU: where its operands are, which keys a query sees, how it is cut into blocks.
#pragma once

#include <algorithm>

#include "core/array/element.h"
#include "backends/cpu/kernels/attention/row_functions.h"
#include "backends/cpu/kernels/kernels.h"
#include "kernels/attention/spec.h"
#include "lax/math/threefry.h"

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

// What follows from types and attributes alone.
struct Plan {
  kernels::AttentionSpec spec;
  kernels::AttentionSizes sizes;
  DType dtype, bias_dtype = DType::float32;
  Broadcast mask, bias, blocks;
  int64_t segment_batch[2] = {};  // steps of segment ids from one batch entry to the next
  int64_t dropout_keys = 1, bias_size = 0;
  int64_t pattern = 0;  // size of the blocks of a sparse pattern; 0: dense
  std::size_t extras;   // number of the first operand that is not always there

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

  // A size of blocks near `near` that a block of the pattern consists of.
  int64_t block_size(int64_t near) const {
    if (pattern == 0) return near;
    for (int64_t size = std::min<int64_t>(pattern, 2 * near); size >= near / 2; --size) {
      if (pattern % size == 0) return size;
    }
    return pattern;
  }

  // Keys [begin, end) that some of the queries [first, last) may see; order and windows alone.
  std::pair<int64_t, int64_t> seen(int64_t first, int64_t last) const {
    int64_t begin = 0, end = sizes.keys;
    if (spec.left >= 0 && spec.sinks == 0 && spec.prefix == 0) begin = first + spec.query_offset - spec.left;
    if (spec.causal) end = std::min(end, last + spec.query_offset);
    if (spec.right >= 0) end = std::min(end, last + spec.query_offset + spec.right);
    end = std::min(std::max(end, spec.by_position() ? spec.prefix : 0), sizes.keys);
    begin = std::clamp<int64_t>(begin, 0, sizes.keys);
    return {begin, std::max(end, begin)};
  }
  // Queries [begin, end) that see a key by order and windows; begin may be below 0, end behind the last.
  std::pair<int64_t, int64_t> seen_by(int64_t key) const {
    int64_t begin = 0, end = sizes.queries;
    if (key < spec.prefix) return {begin, end};
    if (spec.causal) begin = key - spec.query_offset;
    if (spec.right >= 0) begin = std::max(begin, key - spec.query_offset - spec.right);
    if (spec.left >= 0 && key >= spec.sinks) end = std::min(end, key - spec.query_offset + spec.left + 1);
    return {begin, end};
  }
};

// Pointers to what one head reads beside query, key and value.
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

  // Whether some of these queries may be in the segment of some of these keys.
  bool segments_meet(int64_t query, int64_t queries, int64_t key, int64_t keys) const {
    if (!query_segments) return true;
    const auto [low, high] = std::minmax_element(query_segments + query, query_segments + query + queries);
    const auto [first, last] = std::minmax_element(key_segments + key, key_segments + key + keys);
    return *first <= *high && *last >= *low;
  }
  // Whether the pattern keeps the block that these begin.
  bool keeps(const Plan& plan, int64_t query, int64_t key) const {
    return !blocks || blocks[plan.blocks.at(0, 0, query / plan.pattern, key / plan.pattern)];
  }
};

}  // namespace capibara::cpu::attention
