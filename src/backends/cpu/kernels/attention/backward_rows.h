// How attention backwards packs its rows and stores its results; included by backward_work.h.
#pragma once

#include "backends/cpu/kernels/attention/backward_work.h"

namespace capibara::cpu::attention {

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
  const S *queries = queries_ + first * size_, *slopes = cotangents_ + first * value_size_;
  const int64_t padded = tiles_.padded(size_), value_padded = tiles_.padded(value_size_),
                place = i * shape_.query_width;
  const ColumnPanels panels = tiles_.panels(count);
  for (int64_t p = 0; p < panels.count(); ++p) {
    const int64_t start = panels.start(p) * tiles_.lanes(), width = panels.width(p) * tiles_.lanes();
    const int64_t own = std::min(width, count - start);
    tiles_.pack_right(queries + start * size_, size_, own, size_, width,
                      query_right_.data() + (place + start) * padded);
    tiles_.pack_right(slopes + start * value_size_, value_size_, own, value_size_, width,
                      slope_right_.data() + (place + start) * value_padded);
  }
  const int64_t across = tiles_.padded(shape_.query_block);
  tiles_.pack_left_across(queries, size_, size_, count, query_across_.data() + i * size_rows_ * across);
  tiles_.pack_left_across(slopes, value_size_, value_size_, count, slope_across_.data() + i * value_rows_ * across);
  for (int64_t q = 0; q < shape_.query_width; ++q) {
    const bool own = q < count;
    const C lse = own ? lse_[first + q] : C(0);
    // Columns beyond the queries have no shares; nor has a query that sees no key, whose logits are all hidden.
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
  pack_keys(j);  // zeros where no query saw the block
  const C *dkey = dkey_.data() + j * size_rows_ * width, *dvalue = dvalue_.data() + j * value_rows_ * width;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t d = 0; d < size_; ++d) dkeys[(first + r) * size_ + d] = static_cast<To>(dkey[d * width + r] * scale);
    for (int64_t d = 0; d < value_size_; ++d)
      dvalues[(first + r) * value_size_ + d] = static_cast<To>(dvalue[d * width + r]);
  }
}

}  // namespace capibara::cpu::attention
