// Block-sparse attention: its records, the patterns as programs that compute their block lists on the device, the
// function.
#include <capibara/kernels/attention.h>
#include <capibara/lax.h>

#include <cmath>
#include <limits>

#include "kernels/attention/spec.h"
#include "lax/families.h"
#include "lax/reduce/monoid.h"
#include "lax/rules.h"
#include "program/ir/handles.h"

namespace capibara::kernels {

namespace lax = jax::lax;

namespace {

constexpr const char* name = "sparse_attention";
constexpr const char* patterns =
    "'causal', 'sliding_window', 'bigbird', 'block_sparse', 'longformer', 'prefix', 'document'";

struct Grid {
  const SparseAttentionOptions& options;
  int64_t queries, keys, size;

  int64_t rows() const { return (queries + size - 1) / size; }
  int64_t columns() const { return (keys + size - 1) / size; }
  // Block indices, [rows, columns].
  Array row() const { return lax::broadcasted_iota(DType::int32, {rows(), columns()}, 0); }
  Array column() const { return lax::broadcasted_iota(DType::int32, {rows(), columns()}, 1); }
};

Array number(int64_t value) { return exact_scalar(DType::int32, value); }
Array word(int64_t value) { return exact_scalar(DType::uint32, value); }

Array causal_blocks(const Grid& grid) {
  const Array column = grid.column();
  return column <= grid.row();
}

Array window_blocks(const Grid& grid) {
  const int64_t window = grid.options.window.value_or(4 * grid.size), size = grid.size;
  const Array row = grid.row() * number(size), column = grid.column() * number(size);
  const Array begins = column <= row + number(size - 1 + window);
  const Array near = begins & (column + number(size - 1) >= row - number(window));
  const int64_t sinks = grid.options.sinks.value_or(0);
  const Array kept = sinks > 0 ? near | (column < number(sinks)) : near;
  return grid.options.causal ? kept & causal_blocks(grid) : kept;
}

// Blocks around the diagonal, and the first ones, which attend to all blocks and are attended by all.
Array local_and_global(const Grid& grid) {
  const Array row = grid.row(), column = grid.column(), distance = lax::abs(row - column);
  const Array global = number(grid.options.global_blocks.value_or(1));
  const Array near = distance <= number(grid.options.window.value_or(1)), by_rows = row < global;
  return near | by_rows | (column < global);
}

// Adds, of the blocks that are not yet kept, those with the smallest random numbers of their row.
Array with_random(const Grid& grid, const Array& kept) {
  const int64_t count = std::min(grid.options.random_blocks.value_or(3), grid.columns());
  if (count == 0 || grid.rows() == 0) return kept;
  const int64_t seed = grid.options.seed.value_or(0);
  const Shape shape = kept.shape();
  const Array high = lax::full(shape, word(static_cast<uint32_t>(static_cast<uint64_t>(seed) >> 32)));
  const Array low = lax::full(shape, word(static_cast<uint32_t>(seed)));
  const Array row = lax::broadcasted_iota(DType::uint32, shape, 0),
              column = lax::broadcasted_iota(DType::uint32, shape, 1);
  const Array drawn = capibara::bind(prim::threefry2x32(), Arrays{high, low, row, column})[0];
  Array eligible = ~kept;
  if (grid.options.causal) eligible = eligible & causal_blocks(grid);
  const Array score = lax::select(eligible, drawn, lax::full(shape, word(std::numeric_limits<uint32_t>::max())));
  const Array last = lax::slice_in_dim(lax::sort(score, {.dimension = 1}), count - 1, count, 1, 1);
  return kept | (eligible & (score <= lax::broadcast_in_dim(last, shape, {0, 1})));
}

Array prefix_blocks(const Grid& grid) {
  const Array first = grid.column() * number(grid.size);
  return causal_blocks(grid) | (first < number(*grid.options.prefix));
}

// The smallest or largest segment id of each block, [batch, blocks].
Array segment_bound(const Array& ids, int64_t size, bool smallest) {
  const int64_t batch = ids.shape(0), length = ids.shape(1), blocks = (length + size - 1) / size;
  using Limits = std::numeric_limits<int32_t>;
  const Array fill = number(smallest ? Limits::max() : Limits::min());
  const Array whole = lax::pad(ids, fill, {{}, {.low = 0, .high = blocks * size - length}});
  const Array split = lax::reshape(whole, {batch, blocks, size});
  return smallest ? lax::reduce_min(split, {.axes = {2}}) : lax::reduce_max(split, {.axes = {2}});
}

// Blocks whose ranges of segment ids overlap; the ids then decide which tokens attend to each other.
Array document_blocks(const Grid& grid) {
  const Array own = grid.options.segment_ids->astype(DType::int32);
  const Array other = grid.options.key_segment_ids ? grid.options.key_segment_ids->astype(DType::int32) : own;
  const Array low = lax::expand_dims(segment_bound(own, grid.size, true), {1, 3});
  const Array high = lax::expand_dims(segment_bound(own, grid.size, false), {1, 3});
  const Array first = lax::expand_dims(segment_bound(other, grid.size, true), {1, 2});
  const Array last = lax::expand_dims(segment_bound(other, grid.size, false), {1, 2});
  const Array begins = first <= high;
  return begins & (last >= low);
}

// Converts lists of key blocks, [..., rows, count], to a mask [..., rows, columns].
Array listed_blocks(const Grid& grid, const Array& lists) {
  Shape shape(static_cast<std::size_t>(lists.ndim()), 1);
  shape.push_back(grid.columns());
  const Array column = lax::broadcasted_iota(DType::int32, shape, lists.ndim());
  const Array hits = lax::expand_dims(lists.astype(DType::int32), {lists.ndim()}) == column;
  return lax::reduce_or(hits, {.axes = {lists.ndim() - 1}});
}

Array given_blocks(const Grid& grid, const Array& blocks) {
  const bool lists = is_integer(blocks.dtype());
  const int64_t rank = blocks.ndim();
  const bool rows_fit = rank >= 2 && rank <= 4 && blocks.shape(rank - 2) == grid.rows();
  if (rows_fit && lists) return listed_blocks(grid, blocks);
  if (rows_fit && is_bool(blocks.dtype()) && blocks.shape(rank - 1) == grid.columns()) return blocks;
  throw TypeError(concat(name, ": expected bool[...,", grid.rows(), ",", grid.columns(), "], or int lists [...,",
                         grid.rows(), ",count] of blocks of keys (argument 'sparsity_pattern'), got ",
                         to_string(blocks.type())));
}

void check_options(const SparseAttentionOptions& options) {
  const std::string& pattern = options.blocks ? std::string("an array") : options.sparsity_pattern;
  if (options.block_size < 1) {
    throw ValueError(concat(name, ": expected 1 or more (argument 'block_size'), got ", options.block_size));
  }
  auto belongs = [&](const char* argument, const std::optional<int64_t>& value, std::initializer_list<const char*> to) {
    if (!value) return;
    if (*value < 0) throw ValueError(concat(name, ": expected 0 or more (argument '", argument, "'), got ", *value));
    std::string names;
    for (const char* one : to) {
      if (pattern == one) return;
      names += concat(names.empty() ? "'" : ", '", one, "'");
    }
    throw ValueError(concat(name, ": the argument '", argument, "' belongs to the patterns ", names, ", got it with ",
                            options.blocks ? pattern : concat("'", pattern, "'")));
  };
  belongs("window", options.window, {"sliding_window", "bigbird", "block_sparse", "longformer"});
  belongs("sinks", options.sinks, {"sliding_window"});
  belongs("global_blocks", options.global_blocks, {"bigbird", "block_sparse", "longformer"});
  belongs("random_blocks", options.random_blocks, {"bigbird", "block_sparse"});
  belongs("seed", options.seed, {"bigbird", "block_sparse"});
  belongs("prefix", options.prefix, {"prefix"});
  if (pattern == "prefix" && !options.prefix) {
    throw ValueError(concat(name, ": the pattern 'prefix' needs its number of tokens (argument 'prefix')"));
  }
  if (pattern == "document" && !options.segment_ids) {
    throw ValueError(
        concat(name, ": the pattern 'document' needs the documents of the tokens (argument 'segment_ids')"));
  }
}

Array blocks_of(const Grid& grid) {
  const SparseAttentionOptions& options = grid.options;
  const std::string& pattern = options.sparsity_pattern;
  if (options.blocks) return given_blocks(grid, *options.blocks);
  if (pattern == "causal") return causal_blocks(grid);
  if (pattern == "sliding_window") return window_blocks(grid);
  if (pattern == "longformer") return local_and_global(grid);
  if (pattern == "bigbird" || pattern == "block_sparse") return with_random(grid, local_and_global(grid));
  if (pattern == "prefix") return prefix_blocks(grid);
  if (pattern == "document") return document_blocks(grid);
  throw ValueError(concat(name, ": expected one of ", patterns,
                          ", or an array of blocks (argument 'sparsity_pattern'), got '", pattern, "'"));
}

}  // namespace

Family sparse_attention_records() {
  return attention_records(name, "Attention over the blocks of keys that each block of queries keeps.", true);
}

Array sparsity_blocks(int64_t queries, int64_t keys, const SparseAttentionOptions& options) {
  check_options(options);
  const Array blocks = blocks_of({options, queries, keys, options.block_size});
  return blocks.ndim() == 4 ? blocks : lax::broadcast_to_rank(blocks, 4);
}

Array sparse_attention(const Array& query, const Array& key, const Array& value,
                       const SparseAttentionOptions& options) {
  static const Primitive& handle = *new Primitive(primitive(name));
  const bool ranks_fit = query.ndim() == 4 && key.ndim() == 4;  // else the type rule reports the error
  if (options.segment_ids && (options.segment_ids->ndim() != 2 || !is_integer(options.segment_ids->dtype()))) {
    throw TypeError(concat(name, ": expected int32 [batch, queries] (argument 'segment_ids'), got ",
                           to_string(options.segment_ids->type())));
  }
  const Array blocks = sparsity_blocks(ranks_fit ? query.shape(2) : 1, ranks_fit ? key.shape(2) : 1, options);
  const std::string pattern = options.blocks ? std::string() : options.sparsity_pattern;
  const int64_t window = pattern == "sliding_window" ? options.window.value_or(4 * options.block_size) : -1;
  const double size = ranks_fit ? static_cast<double>(query.shape(3)) : 1;
  return bind_attention(handle,
                        {name, query, key, value, {}, {}, options.segment_ids, options.key_segment_ids, {}, blocks},
                        {{"causal", options.causal || pattern == "causal" || pattern == "prefix"},
                         {"scale", options.scale.value_or(1 / std::sqrt(size))},
                         {"dropout_rate", 0.0},
                         {"window", Ints{window, window}},
                         {"sinks", options.sinks.value_or(0)},
                         {"prefix", options.prefix.value_or(0)},
                         {"query_offset", 0},
                         {"block_size", options.block_size}});
}

}  // namespace capibara::kernels
