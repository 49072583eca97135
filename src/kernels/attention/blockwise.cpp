// Attention split into blocks of queries and keys: positions, masks, logits and dropout of one block.
#include "kernels/attention/blockwise.h"

#include <capibara/lax.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lax/reduce/monoid.h"
#include "lax/rules.h"
#include "program/ir/handles.h"

namespace capibara::kernels {

namespace lax = jax::lax;

AttentionSpec::AttentionSpec(const Attrs& attrs)
    : causal(attrs.boolean("causal")),
      has_mask(attrs.boolean("mask")),
      has_bias(attrs.boolean("bias")),
      has_segments(attrs.boolean("segments")),
      has_blocks(attrs.boolean("blocks")),
      scale(attrs.real("scale")),
      dropout_rate(attrs.real("dropout_rate")),
      left(attrs.ints("window")[0]),
      right(attrs.ints("window")[1]),
      sinks(attrs.integer("sinks")),
      prefix(attrs.integer("prefix")),
      query_offset(attrs.integer("query_offset")),
      block_size(attrs.integer("block_size")) {
  if (has_mask) mask = extras++;
  if (has_bias) bias = extras++;
  if (has_segments) query_segments = extras++, key_segments = extras++;
  if (dropout_rate > 0) dropout_key = extras++;
  if (has_blocks) blocks = extras++;
}

uint32_t AttentionSpec::dropout_threshold() const {
  return static_cast<uint32_t>(std::clamp(std::nearbyint(dropout_rate * 65536), 0.0, 65535.0));
}

namespace {

// As large as possible while temporaries stay small compared to the operands of long sequences.
constexpr int64_t query_block_size = 256, key_block_size = 512;

Array word(uint32_t value) { return exact_scalar(DType::uint32, value); }
Array position(int64_t value) { return exact_scalar(DType::int32, value); }

// Positions [start, start + size) along `axis` of an array of rank `rank`.
Array positions(const Array& start, int64_t size, int64_t rank, int64_t axis) {
  Shape shape(static_cast<std::size_t>(rank), 1);
  shape[static_cast<std::size_t>(axis)] = size;
  return lax::broadcasted_iota(DType::int32, shape, axis) + start;
}

Array both(const Array& a, const Array& b) { return !a.defined() ? b : !b.defined() ? a : a & b; }

Arrays threefry(const Array& key0, const Array& key1, const Array& counter0, const Array& counter1) {
  const Shape shape =
      broadcast_operand_shapes("threefry2x32", Types{key0.type(), key1.type(), counter0.type(), counter1.type()});
  auto spread = [&](const Array& x) {
    Ints all;
    for (int64_t i = 0; i < static_cast<int64_t>(shape.size()); ++i) all.push_back(i);
    return lax::broadcast_in_dim(x, shape, all);
  };
  const Array k0 = spread(key0), k1 = spread(key1), c0 = spread(counter0), c1 = spread(counter1);
  return capibara::bind(prim::threefry2x32(), Arrays{k0, k1, c0, c1});
}

// Philox-4x32 with 7 rounds, on counters (column, 0, row, 0).
std::array<Array, 4> philox(const Array& key0, const Array& key1, const Array& column, const Array& row) {
  constexpr uint32_t factors[2] = {0xd2511f53u, 0xcd9e8d57u}, steps[2] = {0x9e3779b9u, 0xbb67ae85u};
  auto high = [](const Array& x, uint32_t factor) { return lax::mulhi(x, lax::full_like(x, word(factor))); };
  std::array<Array, 4> words{column, word(0), row, word(0)};
  for (uint32_t round = 0; round < 7; ++round) {
    words = {high(words[2], factors[1]) ^ words[1] ^ (key0 + word(round * steps[0])), words[2] * word(factors[1]),
             high(words[0], factors[0]) ^ words[3] ^ (key1 + word(round * steps[1])), words[0] * word(factors[0])};
  }
  return words;
}

}  // namespace

BlockwiseAttention::BlockwiseAttention(const AttentionSpec& spec, const AttentionSizes& sizes,
                                       std::span<const Array> extras, DType sum_dtype)
    : spec_(spec),
      sizes_(sizes),
      extras_(extras),
      sum_dtype_(sum_dtype),
      query_size_(std::min(spec.has_blocks ? spec.block_size : query_block_size, sizes.queries)),
      key_size_(std::min(spec.has_blocks ? spec.block_size : key_block_size, sizes.keys)) {
  if (spec.dropout_key < 0) return;
  // One key per head: threefry of (index of the head among those sharing its dropout key, dropout_stream).
  const Array keys = extras[static_cast<std::size_t>(spec.dropout_key)];
  const int64_t shares = keys.shape(0), batch = sizes.batch / shares;
  const Array number = lax::broadcasted_iota(DType::uint32, {1, batch * sizes.heads}, 1);
  const Array key0 = lax::slice_in_dim(keys, 0, 1, 1, 1), key1 = lax::slice_in_dim(keys, 1, 2, 1, 1);
  const Arrays words = threefry(key0, key1, number, lax::reshape(word(dropout_stream), {1, 1}));
  const Shape shape{sizes.batch, sizes.heads};
  const Array first = lax::reshape(words[0], shape), second = lax::reshape(words[1], shape);
  head_keys_ = lax::stack({first, second}, 2);
}

AttentionBlock BlockwiseAttention::block(const Array& number, int64_t size, int64_t extent) const {
  const Array first = number * position(size);
  return {extent % size == 0 ? first : lax::min(first, position(extent - size)), first};
}

Array BlockwiseAttention::queries_of(const Array& x, const AttentionBlock& block, int64_t axis) const {
  return x.shape(axis) == 1 ? x : lax::dynamic_slice_in_dim(x, block.start, query_size_, axis, false);
}

Array BlockwiseAttention::keys_of(const Array& x, const AttentionBlock& block, int64_t axis) const {
  return x.shape(axis) == 1 ? x : lax::dynamic_slice_in_dim(x, block.start, key_size_, axis, false);
}

Array BlockwiseAttention::grouped(const Array& x) const {
  Shape shape = x.shape();
  const bool shared = shape[1] == 1;
  shape[1] = shared ? 1 : sizes_.groups;
  shape.insert(shape.begin() + 2, shared ? 1 : sizes_.per_group());
  return lax::reshape(x, shape);
}

Array BlockwiseAttention::ungrouped(const Array& x) const {
  Shape shape = x.shape();
  shape[1] *= shape[2];
  shape.erase(shape.begin() + 2);
  return lax::reshape(x, shape);
}

Array BlockwiseAttention::pair_of(const Array& x, const AttentionBlock& query, const AttentionBlock& key) const {
  return grouped(keys_of(queries_of(x, query, 2), key, 3));
}

Array BlockwiseAttention::position_seen(const Array& query, const Array& key) const {
  Array seen;
  if (spec_.left >= 0) {
    seen = key >= query - position(spec_.left);
    if (spec_.sinks > 0) seen = seen | (key < position(spec_.sinks));
  }
  if (spec_.right >= 0) seen = both(seen, key <= query + position(spec_.right));
  if (spec_.causal) seen = both(seen, key <= query);
  if (seen.defined() && spec_.prefix > 0) seen = seen | (key < position(spec_.prefix));
  return seen;
}

// Positions as vectors: they may span two blocks.
Array BlockwiseAttention::block_seen(const Array& query, const Array& key) const {
  const Array& blocks = extras_[static_cast<std::size_t>(spec_.blocks)];
  const Array rows = lax::div(query, lax::full_like(query, position(spec_.block_size)));
  const Array columns = lax::div(key, lax::full_like(key, position(spec_.block_size)));
  auto along = [](const Array& x, const Array& at, int64_t axis) {
    Shape sizes = x.shape();
    sizes[static_cast<std::size_t>(axis)] = 1;
    GatherDimensionNumbers dims;
    for (int64_t i = 0; i < x.ndim(); ++i) {
      if (i != axis) dims.offset_dims.push_back(i);
    }
    dims.collapsed_slice_dims = {axis};
    dims.start_index_map = {axis};
    return lax::gather(x, lax::expand_dims(at, {1}), dims, sizes);
  };
  return along(along(blocks, rows, 2), columns, 3);
}

Array BlockwiseAttention::seen(const AttentionBlock& query, const AttentionBlock& key, bool own_rows) const {
  const Array row = positions(query.start, query_size_, 5, 3), column = positions(key.start, key_size_, 5, 4);
  Array seen;
  if (sizes_.keys % key_size_ != 0) seen = column >= key.first_own;
  if (own_rows && sizes_.queries % query_size_ != 0) seen = both(seen, row >= query.first_own);
  if (spec_.by_position()) seen = both(seen, position_seen(row + position(spec_.query_offset), column));
  if (spec_.has_segments) {
    const Array own = queries_of(extras_[static_cast<std::size_t>(spec_.query_segments)], query, 1);
    const Array other = keys_of(extras_[static_cast<std::size_t>(spec_.key_segments)], key, 1);
    const Array rows = lax::expand_dims(own, {1, 2, 4});
    seen = both(seen, rows == lax::expand_dims(other, {1, 2, 3}));
  }
  if (spec_.has_blocks) {
    const Array rows = positions(query.start, query_size_, 1, 0), columns = positions(key.start, key_size_, 1, 0);
    seen = both(seen, grouped(block_seen(rows, columns)));
  }
  if (spec_.has_mask) seen = both(seen, pair_of(extras_[static_cast<std::size_t>(spec_.mask)], query, key));
  return seen;
}

Array BlockwiseAttention::logits(const Array& query, const Array& key, const AttentionBlock& query_at,
                                 const AttentionBlock& key_at, const Array& seen) const {
  Array logits =
      lax::dot_general(query, key, {{4}, {3}, {0, 1}, {0, 1}}, {.precision = {}, .preferred_element_type = sum_dtype_});
  logits = logits * scalar_of(sum_dtype_, spec_.scale);
  if (spec_.has_bias) {
    logits = logits + pair_of(extras_[static_cast<std::size_t>(spec_.bias)], query_at, key_at).astype(sum_dtype_);
  }
  if (!seen.defined()) return logits;
  const Array hidden = lax::full(logits.shape(), scalar_of(sum_dtype_, -std::numeric_limits<double>::infinity()));
  return lax::select(lax::broadcast_in_dim(seen, logits.shape(), {0, 1, 2, 3, 4}), logits, hidden);
}

// Sixteen random bits per element. Each word of the Philox block with counter (column / 16, 0, 8 (row / 16) + row % 8,
// 0) holds one binary digit of 32 numbers, those of two rows eight apart by 16 columns: column c uses the bit
// 16 (c >> 2 & 1) + 8 (c & 1) + 4 (c >> 1 & 1) + 2 (c >> 3 & 1), the later row the next one. The words are the first
// four digits, last word first. The next four come from the bit 13 higher (mod 32), of each word xor the next word
// rotated by 24 bits, so that the first eight digits of any two elements are independent. The last eight, which rarely
// decide, are the first eight digits from the bit 24 higher.
Array BlockwiseAttention::kept(const AttentionBlock& query, const AttentionBlock& key) const {
  const int64_t groups = (key_size_ + 15) / 16 + 1, batch = sizes_.batch, heads = sizes_.heads, rows = query_size_;
  const Array sixteen = position(16), first_group = lax::div(key.start, sixteen);
  const Array row = positions(query.start, rows, 4, 2).astype(DType::uint32);
  const Array column = positions(first_group, groups, 4, 3).astype(DType::uint32);
  const Array key0 = lax::expand_dims(lax::index_in_dim(head_keys_, 0, 2, false), {2, 3});
  const Array key1 = lax::expand_dims(lax::index_in_dim(head_keys_, 1, 2, false), {2, 3});
  auto shifted = [](const Array& x, uint32_t bits) {
    return lax::shift_right_logical(x, lax::full_like(x, word(bits)));
  };
  const Array counter = (shifted(row, 4) * word(8)) + (row & word(7));
  auto further = [&](const Array& x, uint32_t bits) { return shifted(x, bits) | (x * word(1u << (32 - bits))); };
  const std::array<Array, 4> words = philox(key0, key1, column, counter);
  const uint32_t threshold = spec_.dropout_threshold();
  Array kept = lax::full({batch, heads, rows, groups}, word(~0u));
  for (std::size_t place = 0; place < 16; ++place) {
    const std::size_t i = place % 4;
    const Array digit = place % 8 < 4 ? words[i] ^ further(words[(i + 1) % 4], 24) : words[i];
    if (place % 4 == 0 && place > 0) kept = further(kept, place == 8 ? 11 : 13);
    kept = threshold >> place & 1 ? digit & kept : digit | kept;
  }
  const Array c = lax::broadcasted_iota(DType::uint32, {1, 1, 1, 1, 16}, 4);
  auto bit = [&](uint32_t place, uint32_t times) { return (shifted(c, place) & word(1)) * word(times); };
  const Array upper = lax::expand_dims(shifted(row & word(8), 3), {4});
  const Array bits = bit(2, 16) + bit(0, 8) + bit(1, 4) + bit(3, 2) + upper;
  const Shape shape{batch, heads, rows, groups, 16};
  const Array all = lax::shift_right_logical(lax::broadcast_in_dim(kept, shape, {0, 1, 2, 3}),
                                             lax::broadcast_in_dim(bits, shape, {0, 1, 2, 3, 4}));
  const Array flat = lax::reshape(all & word(1), {batch, heads, rows, 16 * groups});
  const Array drawn = lax::dynamic_slice_in_dim(flat, key.start - first_group * sixteen, key_size_, 3, false);
  return grouped(drawn != word(0));
}

Array BlockwiseAttention::add_to_bias(const Array& dbias, const Array& gradients, const AttentionBlock& query,
                                      const AttentionBlock& key) const {
  Array sums = ungrouped(gradients);
  Ints axes;
  for (int64_t i = 0; i < 4; ++i) {
    if (dbias.shape(i) == 1 && sums.shape(i) != 1) axes.push_back(i);
  }
  if (!axes.empty()) sums = lax::expand_dims(lax::reduce_sum(sums, {.axes = axes}), axes);
  const Array zero = position(0);
  const Arrays start = {zero, zero, dbias.shape(2) == 1 ? zero : query.start, dbias.shape(3) == 1 ? zero : key.start};
  const Array before = lax::dynamic_slice(dbias, start, sums.shape(), false);
  return lax::dynamic_update_slice(dbias, before + sums, start, false);
}

}  // namespace capibara::kernels
