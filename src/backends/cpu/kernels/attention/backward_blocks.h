// The steps of attention backwards for one pair of blocks; included by backward_work.h.
#pragma once

#include "backends/cpu/kernels/attention/backward_work.h"

namespace capibara::cpu::attention {

template <class K, class S>
void BackwardWork<K, S>::pull_block(const Head& head, int64_t i, int64_t j, C* bias_slopes) {
  pack_keys(j);
  pack_queries(i);
  const int64_t query = i * shape_.query_block, count = std::min(shape_.query_block, plan_.sizes.queries - query);
  const int64_t rows = std::min(shape_.key_block, plan_.sizes.keys - j * shape_.key_block);
  const ColumnPanels panels = tiles_.panels(count), key_panels = tiles_.panels(rows);
  for (int64_t p = 0; p < panels.count(); ++p) {
    const int64_t start = panels.start(p) * tiles_.lanes(), width = panels.width(p) * tiles_.lanes();
    pull_panel(head, i, j, {start, width, panels.width(p), std::min(width, count - start), query + start}, bias_slopes);
  }
  const int64_t across = tiles_.padded(shape_.query_block), width = shape_.key_width;
  for (int64_t p = 0; p < key_panels.count(); ++p) {
    const int64_t start = key_panels.start(p) * tiles_.lanes(), vectors = key_panels.width(p);
    tiles_.multiply(slope_across_.data() + i * value_rows_ * across, value_size_, count, 0, value_size_, 0, count,
                    weights_right_.data() + start * shape_.query_width, vectors * tiles_.lanes(),
                    dvalue_.data() + j * value_rows_ * width + start, width, vectors, true);
    tiles_.multiply(query_across_.data() + i * size_rows_ * across, size_, count, 0, size_, 0, count,
                    slopes_right_.data() + start * shape_.query_width, vectors * tiles_.lanes(),
                    dkey_.data() + j * size_rows_ * width + start, width, vectors, true);
  }
}

template <class K, class S>
void BackwardWork<K, S>::pull_panel(const Head& head, int64_t i, int64_t j, const Columns& columns, C* bias_slopes) {
  const int64_t key = j * shape_.key_block, rows = std::min(shape_.key_block, plan_.sizes.keys - key);
  const int64_t width = columns.width, vectors = columns.vectors, tile = tiles_.tile.rows;
  const int64_t place = i * shape_.query_width + columns.start;
  const auto [begin, end] = plan_.seen(columns.query, columns.query + columns.own);
  int64_t first = std::max<int64_t>(begin - key, 0) / tile * tile;
  const int64_t last = std::min(rows, round_up(std::clamp<int64_t>(end - key, 0, rows), tile));
  first = std::min(first, last);
  C *shares = shares_.data(), *slopes = slopes_.data(), *weights = shares;
  if (first < last) {
    tiles_.multiply(key_left_.data() + j * key_rows_ * tiles_.padded(size_), rows, size_, first, last, 0, size_,
                    query_right_.data() + place * tiles_.padded(size_), width, shares, width, vectors, false);
    tiles_.multiply(value_left_.data() + j * key_rows_ * tiles_.padded(value_size_), rows, value_size_, first, last, 0,
                    value_size_, slope_right_.data() + place * tiles_.padded(value_size_), width, slopes, width,
                    vectors, false);
    const C factor =
        change_logits(plan_, head, LogitPanel<C>{shares, width, key, first, last, columns.query, columns.own});
    functions_.shares[vectors - 1](shares + first * width, last - first, factor, base_.data() + place);
    if (head.dropout.threshold > 0) {
      weights = weights_.data();
      std::copy(shares + first * width, shares + last * width, weights + first * width);
      functions_.drop[vectors - 1](head.dropout, weights, slopes, first, last, key, columns.query,
                                   static_cast<C>(plan_.spec.keep_scale()));
    }
    functions_.slopes[vectors - 1](shares + first * width, slopes + first * width, last - first, delta_.data() + place);
    if (bias_slopes) add_bias_slopes(columns, key, first, last, bias_slopes);
  }
  for (C* part : {weights, slopes}) {  // what is not seen
    std::fill(part, part + first * width, C(0));
    std::fill(part + last * width, part + rows * width, C(0));
  }
  const P* narrow = narrowed<K>(slopes, 0, rows * width, narrow_slopes_.data());
  if (first < last) {
    tiles_.multiply(key_across_.data() + j * size_rows_ * tiles_.padded(shape_.key_block), size_, rows, 0, size_, first,
                    last, as_panel<K>(narrow + first * width, last - first, width, panel_.data()), width,
                    dquery_.data() + i * size_rows_ * shape_.query_width + columns.start * size_rows_, width, vectors,
                    true);
  }
  turn_panel(narrow, rows, columns, slopes_right_.data());
  turn_panel(narrowed<K>(weights, 0, rows * width, narrow_.data()), rows, columns, weights_right_.data());
}

// Rows of keys as the columns of right operands, whose k are queries.
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
void BackwardWork<K, S>::add_bias_slopes(const Columns& columns, int64_t key, int64_t first, int64_t last,
                                         C* to) const {
  for (int64_t q = 0; q < columns.own; ++q) {
    C* row = to + (columns.query + q) * plan_.bias.step[2] + key * plan_.bias.step[3];
    for (int64_t r = first; r < last; ++r) row[r * plan_.bias.step[3]] += slopes_[r * columns.width + q];
  }
}

}  // namespace capibara::cpu::attention
