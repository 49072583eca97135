// The attention equations that the CUDA kernels take, for both dense and block-sparse attention.
#pragma once

#include <algorithm>

#include "backends/cuda/claims.h"
#include "kernels/attention/spec.h"

namespace capibara::cuda {

namespace attention_claims {

using kernels::AttentionSizes;
using kernels::AttentionSpec;

// Bytes of shared memory of the most demanding pass: its own rows and two stages of two tiles each.
inline int64_t shared_bytes(const AttentionSizes& sizes, DType dtype) {
  const int64_t size = std::max(sizes.size, sizes.value_size), padded = size <= 64 ? 64 : size <= 128 ? 128 : 256;
  const int64_t row = padded * storage_size(dtype);
  return (row == 1024 ? 2 * 64 + 4 * 16 : 6 * 64) * row;
}

inline bool takes(const ClaimArgs& args, const AttentionSizes& sizes, DType dtype) {
  if (dtype != DType::bfloat16 && dtype != DType::float16 && dtype != DType::float32) return false;
  constexpr int64_t longest = 1 << 28;
  const int64_t heads = sizes.batch * sizes.heads;
  if (heads * sizes.queries * sizes.keys == 0 || sizes.size > 256 || sizes.value_size > 256) return false;
  if (sizes.queries > longest || sizes.keys > longest) return false;
  const int64_t tiles = (std::max(sizes.queries, sizes.keys) + 15) / 16;
  // A bias is partitioned by tiles of queries and keys.
  return heads * tiles * ((std::min(sizes.queries, sizes.keys) + 63) / 64) < int64_t{1} << 31 &&
         shared_bytes(sizes, dtype) <= args.shared_memory;
}

inline std::string integer_setting(const char* name, int64_t value) { return concat(name, " = ", value, " : i64"); }

inline std::string settings(const AttentionSpec& spec) {
  constexpr int64_t far = 1 << 29;  // beyond all keys
  auto near = [&](int64_t value) { return std::clamp(value, -far, far); };
  std::string text = concat(float_setting("scale", spec.scale), ", ", float_setting("keep_scale", spec.keep_scale()));
  const std::pair<const char*, int64_t> integers[] = {{"causal", spec.causal},
                                                      {"mask", spec.mask},
                                                      {"bias", spec.bias},
                                                      {"query_segments", spec.query_segments},
                                                      {"key_segments", spec.key_segments},
                                                      {"dropout_key", spec.dropout_key},
                                                      {"blocks", spec.blocks},
                                                      {"threshold", spec.dropout_threshold()},
                                                      {"left", near(spec.left)},
                                                      {"right", near(spec.right)},
                                                      {"sinks", near(spec.sinks)},
                                                      {"prefix", spec.by_position() ? near(spec.prefix) : 0},
                                                      {"offset", near(spec.query_offset)},
                                                      {"block_size", spec.block_size}};
  for (const auto& [name, value] : integers) text += ", " + integer_setting(name, value);
  return text;
}

// Few queries with many keys would leave most of the GPU idle: the keys are then split over separate blocks, whose
// results are combined.
struct Split {
  bool packed;
  int64_t parts;

  Split(const AttentionSpec& spec, const AttentionSizes& sizes, int64_t multiprocessors)
      : packed(!spec.has_blocks && sizes.queries <= 16 && sizes.per_group() > 1) {
    const int64_t rows = packed ? sizes.queries * sizes.per_group() : sizes.queries;
    const int64_t blocks = sizes.batch * (packed ? sizes.groups : sizes.heads) * ((rows + 63) / 64);
    const int64_t wanted = sizes.queries <= 64 ? (2 * multiprocessors + blocks - 1) / blocks : 1;
    parts = std::clamp<int64_t>(std::min(wanted, sizes.keys / 256), 1, 64);
  }
};

// Warpgroup kernels, for 16-bit floats and heads of up to 128 elements, read a mask as bits: one word per 64 keys.
inline void add_mask_bits(KernelCall& call, const ClaimArgs& args, const AttentionSpec& spec,
                          const AttentionSizes& sizes, std::size_t leading) {
  const bool narrow = args.inputs[0].dtype != DType::float32 && std::max(sizes.size, sizes.value_size) <= 128;
  call.settings += ", " + integer_setting("mask_bits", spec.has_mask && narrow);
  if (!spec.has_mask || !narrow) return;
  const Shape& mask = args.inputs[leading + static_cast<std::size_t>(spec.mask)].shape;
  ArrayType bits = args.inputs[0].strong().with_dtype(DType::uint32);
  bits.shape = {mask[0] * mask[1] * mask[2], (sizes.keys + 63) / 64 * 2};
  call.scratch.push_back(bits);
}

// For a bias shared by the entries of a batch, [1, heads, queries, keys], warpgroup kernels store the gradients of the
// logits for a part of the heads at a time, those of the first entry in the bias's own result. Returns the number of
// key groups per part, 0 if this does not apply.
inline int64_t gradient_groups(const ClaimArgs& args, const AttentionSpec& spec, const AttentionSizes& sizes) {
  constexpr int64_t hopper = 227 << 10, most_bytes = int64_t{1} << 29, most_tiles = 2048;
  const DType dtype = args.inputs[1].dtype;
  if (!spec.has_bias || dtype == DType::float32 || args.shared_memory < hopper) return 0;
  const ArrayType& bias = args.inputs[kernels::backward_operands + static_cast<std::size_t>(spec.bias)];
  if (sizes.batch == 1 || sizes.queries == 1 || bias.dtype != dtype ||
      bias.shape != Shape{1, sizes.heads, sizes.queries, sizes.keys})
    return 0;
  if (sizes.keys % 8 != 0 || sizes.size % 8 != 0 || sizes.value_size % 8 != 0) return 0;
  const int64_t tiles = std::max((sizes.keys + 63) / 64, (sizes.queries + 63) / 64 * sizes.per_group());
  if (std::max(sizes.size, sizes.value_size) > 128 || tiles > most_tiles) return 0;
  const int64_t of_group = 2 * (sizes.batch - 1) * sizes.per_group() * sizes.queries * sizes.keys;
  int64_t parts = 1;
  while (parts <= sizes.groups && (sizes.groups % parts != 0 || sizes.groups / parts * of_group > most_bytes)) ++parts;
  return parts > sizes.groups ? 0 : sizes.groups / parts;
}
inline void add_gradients(KernelCall& call, const ClaimArgs& args, const AttentionSpec& spec,
                          const AttentionSizes& sizes) {
  const int64_t groups = gradient_groups(args, spec, sizes);
  call.settings += ", " + integer_setting("gradient_groups", groups);
  if (groups == 0) return;
  ArrayType gradients = args.inputs[1].strong();
  gradients.shape = {sizes.batch - 1, groups * sizes.per_group(), sizes.queries, sizes.keys};
  call.scratch.push_back(gradients);
}

inline std::optional<KernelCall> forward(const ClaimArgs& args) {
  const AttentionSizes sizes(args.inputs[0].shape, args.inputs[1].shape, args.inputs[2].shape);
  if (!takes(args, sizes, args.inputs[0].dtype)) return std::nullopt;
  const AttentionSpec spec(args.attrs);
  const Split split(spec, sizes, args.multiprocessors);
  KernelCall call{"capibara_attention",
                  concat(settings(spec), ", ", integer_setting("packed", split.packed), ", ",
                         integer_setting("splits", split.parts)),
                  {}};
  if (split.parts > 1) {
    ArrayType part = args.inputs[0].strong().with_dtype(DType::float32);
    part.shape = {split.parts, sizes.batch * sizes.heads * sizes.queries, sizes.value_size};
    call.scratch.push_back(part);
    part.shape.pop_back();
    call.scratch.push_back(part);
  }
  add_mask_bits(call, args, spec, sizes, kernels::forward_operands);
  return call;
}

inline std::optional<KernelCall> backward(const ClaimArgs& args) {
  const AttentionSizes sizes(args.inputs[1].shape, args.inputs[2].shape, args.inputs[3].shape);
  if (!takes(args, sizes, args.inputs[1].dtype)) return std::nullopt;
  const AttentionSpec spec(args.attrs);
  KernelCall call{"capibara_attention_grad", settings(spec), {}};
  add_mask_bits(call, args, spec, sizes, kernels::backward_operands);
  add_gradients(call, args, spec, sizes);
  return call;
}

}  // namespace attention_claims

}  // namespace capibara::cuda
