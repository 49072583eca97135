// Table rows for capibara.kernels: attention.
#include <capibara/kernels/attention.h>

#include "library/table/families.h"

namespace capibara::library {

namespace {

std::optional<std::pair<int64_t, int64_t>> window_of(const Arguments& a) {
  const std::optional<Ints> sides = a.optional_ints("window");
  if (!sides) return std::nullopt;
  if (sides->empty() || sides->size() > 2) {
    throw ValueError(concat(a.function(),
                            ": expected one number of keys or two, before and after (argument 'window'), got ",
                            sides->size()));
  }
  return std::pair(sides->front(), sides->back());
}

Value flash_attention(const Arguments& a) {
  return kernels::flash_attention(a.array("query"), a.array("key"), a.array("value"),
                                  {.attention_mask = a.optional_array("attention_mask"),
                                   .dropout_rate = a.real("dropout_rate"),
                                   .causal = a.flag("causal"),
                                   .sequence_parallel = a.flag("sequence_parallel"),
                                   .sequence_axis = a.text("sequence_axis"),
                                   .bias = a.optional_array("bias"),
                                   .scale = a.optional_real("scale"),
                                   .window = window_of(a),
                                   .sinks = a.integer("sinks"),
                                   .segment_ids = a.optional_array("segment_ids"),
                                   .key_segment_ids = a.optional_array("key_segment_ids"),
                                   .query_offset = a.integer("query_offset"),
                                   .dropout_key = a.optional_array("dropout_key")});
}

kernels::SparseAttentionOptions sparse_options(const Arguments& a) {
  kernels::SparseAttentionOptions options{.sparsity_pattern = {},
                                          .blocks = {},
                                          .block_size = a.integer("block_size"),
                                          .causal = a.flag("causal"),
                                          .window = a.optional_integer("window"),
                                          .sinks = a.optional_integer("sinks"),
                                          .global_blocks = a.optional_integer("global_blocks"),
                                          .random_blocks = a.optional_integer("random_blocks"),
                                          .seed = a.optional_integer("seed"),
                                          .prefix = a.optional_integer("prefix"),
                                          .scale = a.optional_real("scale"),
                                          .segment_ids = a.optional_array("segment_ids"),
                                          .key_segment_ids = a.optional_array("key_segment_ids")};
  if (a["sparsity_pattern"].get_if<std::string>())
    options.sparsity_pattern = a.text("sparsity_pattern");
  else
    options.blocks = a.array_like("sparsity_pattern");
  return options;
}

Value sparse_attention(const Arguments& a) {
  return kernels::sparse_attention(a.array("query"), a.array("key"), a.array("value"), sparse_options(a));
}

const Function attention_rows[] = {
    {"flash_attention",
     "query, key, value, attention_mask=None, dropout_rate: float = 0.0, causal: bool = False, "
     "sequence_parallel: bool = False, *, bias: ArrayLike = None, scale: float = None, window=None, sinks: int = 0, "
     "segment_ids=None, key_segment_ids=None, query_offset: int = 0, dropout_key=None, sequence_axis: str = None",
     flash_attention, "softmax(scale query key^T + bias) value by blocks, with masks, windows, segments and dropout."},
    {"sparse_attention",
     "query, key, value, sparsity_pattern: ArrayLike | str = 'block_sparse', block_size: int = 64, *, causal: bool = "
     "False, "
     "window: int = None, sinks: int = None, global_blocks: int = None, random_blocks: int = None, seed: int = None, "
     "prefix: int = None, scale: float = None, segment_ids=None, key_segment_ids=None",
     sparse_attention,
     "Attention over the blocks of keys that a pattern keeps for each block of queries; time is proportional to their "
     "number."},
};

}  // namespace

Family fused_attention() { return attention_rows; }

}  // namespace capibara::library
