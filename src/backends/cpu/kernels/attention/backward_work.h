// Block steps of the attention gradient: packing and accumulation of one thread, and the matmuls of one pair of blocks.
#pragma once

#include "backends/cpu/kernels/attention/hide.h"
#include "backends/cpu/kernels/attention/panels.h"
#include "backends/cpu/kernels/attention/panels_amx.h"
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
    query_width = round_up(query_block, std::max<int64_t>(tiles.lanes(), K::together));
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
    gradient_right_ = make(shape.query_blocks * shape.query_width * value_padded);
    gradient_across_ = make(shape.query_blocks * value_rows_ * queries);
    base_ = sums(shape.query_blocks * shape.query_width);
    delta_ = sums(shape.query_blocks * shape.query_width);
    dquery_ = sums(shape.query_blocks * size_rows_ * shape.query_width);
    dkey_ = sums(shape.key_blocks * size_rows_ * shape.key_width);
    dvalue_ = sums(shape.key_blocks * value_rows_ * shape.key_width);
    for (Scratch<C>* buffer : {&shares_, &weights_, &gradients_}) *buffer = sums(key_rows_ * tiles.full_width());
    for (Scratch<P>* buffer : {&narrow_, &narrow_gradients_}) *buffer = make(key_rows_ * tiles.full_width());
    panel_ = make((key_rows_ + std::max(8, K::together)) * tiles.full_width());
    weights_right_ = make(shape.key_width * tiles.padded(shape.query_width));
    gradients_right_ = make(shape.key_width * tiles.padded(shape.query_width));
  }

  void begin_keys(const S* keys, const S* values) {
    keys_ = keys, values_ = values;
    keys_packed_.assign(static_cast<std::size_t>(shape_.key_blocks), false);
  }
  void begin_queries(const S* queries, const S* gradients, const C* lse, const C* delta) {
    queries_ = queries, cotangents_ = gradients, lse_ = lse, deltas_ = delta;
    queries_packed_.assign(static_cast<std::size_t>(shape_.query_blocks), false);
    std::fill_n(dquery_.data(), shape_.query_blocks * size_rows_ * shape_.query_width, C(0));
  }

  // Adds the gradients of one block of queries by one block of keys; `bias_gradients` belong to this head.
  void pull_block(const Head& head, int64_t i, int64_t j, C* bias_gradients);
  // Stores the sums of a head of queries, or of a block of keys, as rows.
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
  void pull_panel(const Head& head, int64_t i, int64_t j, const Columns& columns, C* bias_gradients);
  void turn_panel(const P* rows, int64_t keys, const Columns& columns, P* right) const;
  void add_bias_gradients(const Columns& columns, int64_t key, int64_t first, int64_t last, C* bias_gradients) const;

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
  Scratch<P> key_left_, key_across_, value_left_, query_right_, query_across_, gradient_right_, gradient_across_;
  Scratch<C> base_, delta_, dquery_, dkey_, dvalue_;  // sums are transposed: [size, queries or keys of a block]
  Scratch<C> shares_, weights_, gradients_;           // of a panel: [keys, queries]; weights: after dropout
  Scratch<P> narrow_, narrow_gradients_, panel_, weights_right_, gradients_right_;
  [[no_unique_address]] typename Tiles<K>::Session session_;
};

// ---- the steps for one pair of blocks

template <class K, class S>
void BackwardWork<K, S>::pull_block(const Head& head, int64_t i, int64_t j, C* bias_gradients) {
  pack_keys(j);
  pack_queries(i);
  const int64_t query = i * shape_.query_block, count = std::min(shape_.query_block, plan_.sizes.queries - query);
  const int64_t rows = std::min(shape_.key_block, plan_.sizes.keys - j * shape_.key_block);
  const ColumnPanels panels = tiles_.panels(count), key_panels = tiles_.panels(rows);
  for (int64_t p = 0; p < panels.count(); ++p) {
    const int64_t start = panels.start(p) * tiles_.lanes(), width = panels.width(p) * tiles_.lanes();
    pull_panel(head, i, j, {start, width, panels.width(p), std::min(width, count - start), query + start},
               bias_gradients);
  }
  const int64_t across = tiles_.padded(shape_.query_block), width = shape_.key_width;
  for (int64_t p = 0; p < key_panels.count(); ++p) {
    const int64_t start = key_panels.start(p) * tiles_.lanes(), vectors = key_panels.width(p);
    tiles_.multiply(gradient_across_.data() + i * value_rows_ * across, value_size_, count, 0, value_size_, 0, count,
                    weights_right_.data() + start * shape_.query_width, vectors * tiles_.lanes(),
                    dvalue_.data() + j * value_rows_ * width + start, width, vectors, true);
    tiles_.multiply(query_across_.data() + i * size_rows_ * across, size_, count, 0, size_, 0, count,
                    gradients_right_.data() + start * shape_.query_width, vectors * tiles_.lanes(),
                    dkey_.data() + j * size_rows_ * width + start, width, vectors, true);
  }
}

template <class K, class S>
void BackwardWork<K, S>::pull_panel(const Head& head, int64_t i, int64_t j, const Columns& columns, C* bias_gradients) {
  const int64_t key = j * shape_.key_block, rows = std::min(shape_.key_block, plan_.sizes.keys - key);
  const int64_t width = columns.width, vectors = columns.vectors, tile = tiles_.tile.rows;
  const int64_t place = i * shape_.query_width + columns.start;
  const auto [begin, end] = plan_.seen(columns.query, columns.query + columns.own);
  int64_t first = std::max<int64_t>(begin - key, 0) / tile * tile;
  const int64_t last = std::min(rows, round_up(std::clamp<int64_t>(end - key, 0, rows), tile));
  first = std::min(first, last);
  C *shares = shares_.data(), *gradients = gradients_.data(), *weights = shares;
  if (first < last) {
    tiles_.multiply(key_left_.data() + j * key_rows_ * tiles_.padded(size_), rows, size_, first, last, 0, size_,
                    query_right_.data() + place * tiles_.padded(size_), width, shares, width, vectors, false);
    tiles_.multiply(value_left_.data() + j * key_rows_ * tiles_.padded(value_size_), rows, value_size_, first, last, 0,
                    value_size_, gradient_right_.data() + place * tiles_.padded(value_size_), width, gradients, width,
                    vectors, false);
    const C factor =
        change_logits(plan_, head, LogitPanel<C>{shares, width, key, first, last, columns.query, columns.own});
    functions_.shares[vectors - 1](shares + first * width, last - first, factor, base_.data() + place);
    if (head.dropout.threshold > 0) {
      weights = weights_.data();
      std::copy(shares + first * width, shares + last * width, weights + first * width);
      functions_.drop[vectors - 1](head.dropout, weights, gradients, first, last, key, columns.query,
                                   static_cast<C>(plan_.spec.keep_scale()));
    }
    functions_.gradients[vectors - 1](shares + first * width, gradients + first * width, last - first,
                                      delta_.data() + place);
    if (bias_gradients) add_bias_gradients(columns, key, first, last, bias_gradients);
  }
  for (C* part : {weights, gradients}) {  // hidden keys
    std::fill(part, part + first * width, C(0));
    std::fill(part + last * width, part + rows * width, C(0));
  }
  const P* narrow = narrowed<K>(gradients, 0, rows * width, narrow_gradients_.data());
  if (first < last) {
    tiles_.multiply(key_across_.data() + j * size_rows_ * tiles_.padded(shape_.key_block), size_, rows, 0, size_, first,
                    last, as_panel<K>(narrow + first * width, last - first, width, panel_.data()), width,
                    dquery_.data() + i * size_rows_ * shape_.query_width + columns.start * size_rows_, width, vectors,
                    true);
  }
  turn_panel(narrow, rows, columns, gradients_right_.data());
  turn_panel(narrowed<K>(weights, 0, rows * width, narrow_.data()), rows, columns, weights_right_.data());
}

// Packs rows of keys as the columns of right operands, whose k are queries.
template <class K, class S>
void BackwardWork<K, S>::turn_panel(const P* rows, int64_t keys, const Columns& columns, P* right) const {
  const ColumnPanels panels = tiles_.panels(keys);
  for (int64_t p = 0; p < panels.count(); ++p) {
    const int64_t start = panels.start(p) * tiles_.lanes(), width = panels.width(p) * tiles_.lanes();
    tiles_.pack_right(rows + start * columns.width, columns.width, std::min(width, keys - start), columns.width, width,
                      right + start * shape_.query_width + columns.start * width);
  }
}

template <class K, class S>
void BackwardWork<K, S>::add_bias_gradients(const Columns& columns, int64_t key, int64_t first, int64_t last,
                                            C* to) const {
  for (int64_t q = 0; q < columns.own; ++q) {
    C* row = to + (columns.query + q) * plan_.bias.step[2] + key * plan_.bias.step[3];
    for (int64_t r = first; r < last; ++r) row[r * plan_.bias.step[3]] += gradients_[r * columns.width + q];
  }
}

// ---- packing rows and storing results

template <class K, class S>
void BackwardWork<K, S>::pack_keys(int64_t j) {
  if (keys_packed_[static_cast<std::size_t>(j)]) return;
  keys_packed_[static_cast<std::size_t>(j)] = true;
  const int64_t first = j * shape_.key_block, rows = std::min(shape_.key_block, plan_.sizes.keys - first);
  const S *keys = keys_ + first * size_, *values = values_ + first * value_size_;
  tiles_.pack_left(keys, size_, rows, size_, key_left_.data() + j * key_rows_ * tiles_.padded(size_));
  tiles_.pack_left(values, value_size_, rows, value_size_,
                   value_left_.data() + j * key_rows_ * tiles_.padded(value_size_));
  tiles_.pack_left_across(keys, size_, size_, rows,
                          key_across_.data() + j * size_rows_ * tiles_.padded(shape_.key_block));
  std::fill_n(dkey_.data() + j * size_rows_ * shape_.key_width, size_rows_ * shape_.key_width, C(0));
  std::fill_n(dvalue_.data() + j * value_rows_ * shape_.key_width, value_rows_ * shape_.key_width, C(0));
}

template <class K, class S>
void BackwardWork<K, S>::pack_queries(int64_t i) {
  if (queries_packed_[static_cast<std::size_t>(i)]) return;
  queries_packed_[static_cast<std::size_t>(i)] = true;
  const int64_t first = i * shape_.query_block, count = std::min(shape_.query_block, plan_.sizes.queries - first);
  const S *queries = queries_ + first * size_, *gradients = cotangents_ + first * value_size_;
  const int64_t padded = tiles_.padded(size_), value_padded = tiles_.padded(value_size_),
                place = i * shape_.query_width;
  const ColumnPanels panels = tiles_.panels(count);
  for (int64_t p = 0; p < panels.count(); ++p) {
    const int64_t start = panels.start(p) * tiles_.lanes(), width = panels.width(p) * tiles_.lanes();
    const int64_t own = std::min(width, count - start);
    tiles_.pack_right(queries + start * size_, size_, own, size_, width,
                      query_right_.data() + (place + start) * padded);
    tiles_.pack_right(gradients + start * value_size_, value_size_, own, value_size_, width,
                      gradient_right_.data() + (place + start) * value_padded);
  }
  const int64_t across = tiles_.padded(shape_.query_block);
  tiles_.pack_left_across(queries, size_, size_, count, query_across_.data() + i * size_rows_ * across);
  tiles_.pack_left_across(gradients, value_size_, value_size_, count,
                          gradient_across_.data() + i * value_rows_ * across);
  for (int64_t q = 0; q < shape_.query_width; ++q) {
    const bool own = q < count;
    const C lse = own ? lse_[first + q] : C(0);
    // Columns beyond the queries have no weights; nor has a query that sees no key, whose logits are all hidden.
    base_[place + q] = !own                       ? -minus_infinity<C>
                       : lse == minus_infinity<C> ? C(0)
                                                  : lse * static_cast<C>(1.4426950408889634);
    delta_[place + q] = own ? deltas_[first + q] : C(0);
  }
}

template <class K, class S>
template <class To>
void BackwardWork<K, S>::store_queries(To* dquery) const {
  const C scale = static_cast<C>(plan_.spec.scale);
  for (int64_t i = 0; i < shape_.query_blocks; ++i) {
    const int64_t first = i * shape_.query_block, count = std::min(shape_.query_block, plan_.sizes.queries - first);
    const ColumnPanels panels = tiles_.panels(count);
    for (int64_t p = 0; p < panels.count(); ++p) {
      const int64_t start = panels.start(p) * tiles_.lanes(), width = panels.width(p) * tiles_.lanes();
      const C* sums = dquery_.data() + i * size_rows_ * shape_.query_width + start * size_rows_;
      for (int64_t q = 0; q < std::min(width, count - start); ++q) {
        To* row = dquery + (first + start + q) * size_;
        for (int64_t d = 0; d < size_; ++d) row[d] = static_cast<To>(sums[d * width + q] * scale);
      }
    }
  }
}

template <class K, class S>
template <class To>
void BackwardWork<K, S>::store_keys(int64_t j, To* dkeys, To* dvalues) {
  const int64_t first = j * shape_.key_block, rows = std::min(shape_.key_block, plan_.sizes.keys - first);
  const int64_t width = shape_.key_width;
  const C scale = static_cast<C>(plan_.spec.scale);
  pack_keys(j);  // zeros if no query saw the block
  const C *dkey = dkey_.data() + j * size_rows_ * width, *dvalue = dvalue_.data() + j * value_rows_ * width;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t d = 0; d < size_; ++d) dkeys[(first + r) * size_ + d] = static_cast<To>(dkey[d * width + r] * scale);
    for (int64_t d = 0; d < value_size_; ++d)
      dvalues[(first + r) * value_size_ + d] = static_cast<To>(dvalue[d * width + r]);
  }
}

}  // namespace capibara::cpu::attention
