// The blocks of attention backwards: what one thread packs and accumulates, and the products of one pair of blocks.
#pragma once

#include "backends/cpu/kernels/attention/hide.h"
#include "backends/cpu/kernels/attention/panels.h"
#include "backends/cpu/kernels/scratch.h"
#include "core/runtime/interrupt.h"

namespace capibara::cpu::attention {

template <class K>
struct BackwardShape {
  int64_t key_block, query_block, key_blocks, query_blocks, key_width, query_width;

  BackwardShape(const Plan& plan, const Tiles<K>& tiles) {
    const int64_t full = tiles.full_width();
    key_block = plan.pattern ? plan.block_size(64) : std::max<int64_t>(96 / full, 1) * full;
    query_block = plan.pattern ? plan.block_size(64) : std::max<int64_t>(48 / full, 1) * full;
    key_blocks = (plan.sizes.keys + key_block - 1) / key_block;
    query_blocks = (plan.sizes.queries + query_block - 1) / query_block;
    key_width = round_up(key_block, tiles.lanes());
    query_width = round_up(query_block, tiles.lanes());
  }
};

template <class K, class S>
class BackwardWork {
 public:
  using C = typename K::Sum;
  using P = typename K::Packed;

  BackwardWork(const Plan& plan, const BackwardShape<K>& shape, const Tiles<K>& tiles)
      : plan_(plan),
        shape_(shape),
        tiles_(tiles),
        size_(plan.sizes.size),
        value_size_(plan.sizes.value_size),
        size_rows_(tiles.packed_rows(size_)),
        value_rows_(tiles.packed_rows(value_size_)),
        key_rows_(tiles.packed_rows(shape.key_block)) {
    const int64_t padded = tiles.padded(size_), value_padded = tiles.padded(value_size_);
    const int64_t keys = tiles.padded(shape.key_block), queries = tiles.padded(shape.query_block);
    auto make = [](int64_t count) { return Scratch<P>(count, name); };
    auto sums = [](int64_t count) { return Scratch<C>(count, name); };
    key_left_ = make(shape.key_blocks * key_rows_ * padded);
    key_across_ = make(shape.key_blocks * size_rows_ * keys);
    value_left_ = make(shape.key_blocks * key_rows_ * value_padded);
    query_right_ = make(shape.query_blocks * shape.query_width * padded);
    query_across_ = make(shape.query_blocks * size_rows_ * queries);
    slope_right_ = make(shape.query_blocks * shape.query_width * value_padded);
    slope_across_ = make(shape.query_blocks * value_rows_ * queries);
    base_ = sums(shape.query_blocks * shape.query_width);
    delta_ = sums(shape.query_blocks * shape.query_width);
    dquery_ = sums(shape.query_blocks * size_rows_ * shape.query_width);
    dkey_ = sums(shape.key_blocks * size_rows_ * shape.key_width);
    dvalue_ = sums(shape.key_blocks * value_rows_ * shape.key_width);
    for (Scratch<C>* buffer : {&shares_, &weights_, &slopes_}) *buffer = sums(key_rows_ * tiles.full_width());
    for (Scratch<P>* buffer : {&narrow_, &narrow_slopes_}) *buffer = make(key_rows_ * tiles.full_width());
    panel_ = make((key_rows_ + 8) * tiles.full_width());
    weights_right_ = make(shape.key_width * tiles.padded(shape.query_width));
    slopes_right_ = make(shape.key_width * tiles.padded(shape.query_width));
  }

  void begin_keys(const S* keys, const S* values) {
    keys_ = keys, values_ = values;
    keys_packed_.assign(static_cast<std::size_t>(shape_.key_blocks), false);
  }
  void begin_queries(const S* queries, const S* slopes, const C* lse, const C* delta) {
    queries_ = queries, cotangents_ = slopes, lse_ = lse, deltas_ = delta;
    queries_packed_.assign(static_cast<std::size_t>(shape_.query_blocks), false);
    std::fill_n(dquery_.data(), shape_.query_blocks * size_rows_ * shape_.query_width, C(0));
  }

  // Adds the slopes of one block of queries by one block of keys; `bias_slopes` are those of the head.
  void pull_block(const Head& head, int64_t i, int64_t j, C* bias_slopes);
  // The sums of a head of queries, or of a block of keys, as rows.
  template <class To>
  void store_queries(To* dquery) const;
  template <class To>
  void store_keys(int64_t j, To* dkeys, To* dvalues);

 private:
  struct Columns {  // of a panel of queries
    int64_t start, width, vectors, own, query;
  };
  void pack_keys(int64_t j);
  void pack_queries(int64_t i);
  void pull_panel(const Head& head, int64_t i, int64_t j, const Columns& columns, C* bias_slopes);
  void turn_panel(const P* rows, int64_t keys, const Columns& columns, P* right) const;
  void add_bias_slopes(const Columns& columns, int64_t key, int64_t first, int64_t last, C* bias_slopes) const;

  static constexpr const char* name = "flash_attention_grad";
  const Plan& plan_;
  const BackwardShape<K>& shape_;
  const Tiles<K>& tiles_;
  const RowFunctions<C> functions_ = row_functions<C>(tiles_.lanes());
  const int64_t size_, value_size_, size_rows_, value_rows_, key_rows_;
  const S *keys_ = nullptr, *values_ = nullptr, *queries_ = nullptr, *cotangents_ = nullptr;
  const C *lse_ = nullptr, *deltas_ = nullptr;
  std::vector<bool> keys_packed_, queries_packed_;
  // Packed as left operands with their own rows (left) or their columns (across), or as right operands.
  Scratch<P> key_left_, key_across_, value_left_, query_right_, query_across_, slope_right_, slope_across_;
  Scratch<C> base_, delta_, dquery_, dkey_, dvalue_;  // sums are transposed: [size, keys or queries of a block]
  Scratch<C> shares_, weights_, slopes_;              // of a panel: [keys, queries]; weights: after dropout
  Scratch<P> narrow_, narrow_slopes_, panel_, weights_right_, slopes_right_;
};

}  // namespace capibara::cpu::attention

#include "backends/cpu/kernels/attention/backward_blocks.h"
#include "backends/cpu/kernels/attention/backward_rows.h"
