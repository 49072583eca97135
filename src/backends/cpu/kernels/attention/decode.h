// Attention of a few queries by many keys, as when tokens are generated: keys and values are read once, as they are.
//
// Tasks are heads of keys and parts of their keys, whose number follows from the shape; parts are merged in order.
#pragma once

#include "backends/cpu/kernels/attention/hide.h"
#include "backends/cpu/kernels/attention/panels.h"
#include "backends/cpu/kernels/scratch.h"

namespace capibara::cpu::attention {

template <class K, class S>
class Decode {
 public:
  using C = typename K::Sum;
  using T = typename ElementOf<S>::type;
  // Queries of a head are the lanes of one vector.
  static bool takes(const Plan& plan) {
    return plan.pattern == 0 && plan.sizes.queries <= std::min<int64_t>(4, best_tile<K>().lanes);
  }

  Decode(const Plan& plan, std::byte* const* buffers) : plan_(plan), sizes_(plan.sizes), buffers_(buffers) {
    const int64_t groups = sizes_.batch * sizes_.groups;
    parts_ = std::clamp<int64_t>(32 / groups, 1, std::max<int64_t>(sizes_.keys / 512, 1));
  }

  void run() const {
    const int64_t groups = sizes_.batch * sizes_.groups, state = sizes_.value_size + 2;
    const int64_t rows = sizes_.batch * sizes_.heads * sizes_.queries;
    Scratch<C> states(rows * parts_ * state, name);  // of each row and part: maximum, sum, sums of values
    const double bytes = static_cast<double>(sizes_.keys * (sizes_.size + sizes_.value_size)) * sizeof(S);
    parallel_for_cost(groups * parts_, bytes / 8 / static_cast<double>(parts_), [&](int64_t begin, int64_t end) {
      Work work(*this);
      for (int64_t task = begin; task < end; ++task) attend(work, task / parts_, task % parts_, states.data());
      return 0;
    });
    const std::size_t outputs = plan_.extras + static_cast<std::size_t>(plan_.spec.extras);
    for (int64_t row = 0; row < rows; ++row) {
      C* merged = states.data() + row * parts_ * state;
      merge(merged);
      const bool dropped = plan_.spec.dropout_key >= 0;
      const C total = merged[1], kept = dropped ? static_cast<C>(plan_.spec.keep_scale()) : C(1);
      const C factor = kept / total;
      T* out = reinterpret_cast<T*>(buffers_[outputs]) + row * sizes_.value_size;
      for (int64_t d = 0; d < sizes_.value_size; ++d) {
        out[d] = static_cast<T>(total == C(0) ? C(0) : merged[2 + d] * factor);
      }
      reinterpret_cast<C*>(buffers_[outputs + 1])[row] =
          total == C(0) ? minus_infinity<C> : merged[0] + std::log(total);
    }
  }

 private:
  static constexpr const char* name = "flash_attention";
  static constexpr int64_t block = 64;  // keys

  struct Work {
    explicit Work(const Decode& d)
        : keys(block * d.sizes_.size, name),
          values(block * d.sizes_.value_size, name),
          queries(d.sizes_.per_group() * d.sizes_.queries * d.sizes_.size, name),
          logits(block * max_panel_width, name),
          sums(d.sizes_.per_group() * d.sizes_.queries * d.sizes_.value_size, name),
          maximum(d.sizes_.per_group() * max_panel_width, name),
          total(d.sizes_.per_group() * max_panel_width, name) {}
    Scratch<C> keys, values, queries, logits, sums, maximum, total;
  };

  // Elements as sums are, in place where they are.
  static const C* widened(const S* from, int64_t count, C* hold) {
    if constexpr (std::is_same_v<S, C>) return from;
    for (int64_t i = 0; i < count; ++i) hold[i] = packed_element<C>(from[i]);
    return hold;
  }

  void attend(Work& work, int64_t group, int64_t part, C* states) const {
    const int64_t heads = sizes_.per_group(), count = sizes_.queries, size = sizes_.size,
                  value_size = sizes_.value_size;
    const int64_t b = group / sizes_.groups, h0 = group % sizes_.groups * heads, lanes = tiles_.lanes();
    const int64_t row0 = (b * sizes_.heads + h0) * count, key0 = group * sizes_.keys;
    const C* queries =
        widened(reinterpret_cast<const S*>(buffers_[0]) + row0 * size, heads * count * size, work.queries.data());
    std::fill_n(work.maximum.data(), heads * lanes, minus_infinity<C>);
    std::fill_n(work.total.data(), heads * lanes, C(0));
    std::fill_n(work.sums.data(), heads * count * value_size, C(0));
    std::fill_n(work.logits.data(), block * lanes, C(0));
    const int64_t blocks = (sizes_.keys + block - 1) / block;
    const auto [begin, end] = plan_.seen(0, count);
    for (int64_t j = part * blocks / parts_; j < (part + 1) * blocks / parts_; ++j) {
      const int64_t key = j * block, rows = std::min(block, sizes_.keys - key);
      if (key >= end || key + rows <= begin) continue;
      const C* keys =
          widened(reinterpret_cast<const S*>(buffers_[1]) + (key0 + key) * size, rows * size, work.keys.data());
      const C* values = widened(reinterpret_cast<const S*>(buffers_[2]) + (key0 + key) * value_size, rows * value_size,
                                work.values.data());
      for (int64_t p = 0; p < heads; ++p) {
        const Head head(plan_, buffers_, b, h0 + p);
        C *logits = work.logits.data(), *sums = work.sums.data() + p * count * value_size;
        for (int64_t i = 0; i < count; ++i) {
          functions_.dot(keys, rows, size, queries + (p * count + i) * size, logits + i, lanes);
        }
        const C factor = change_logits(plan_, head, LogitPanel<C>{logits, lanes, key, 0, rows, 0, count});
        alignas(64) C decay[max_panel_width];
        functions_.softmax[0](logits, rows, factor, work.maximum.data() + p * lanes, work.total.data() + p * lanes,
                              decay);
        if (head.dropout.threshold > 0) functions_.drop[0](head.dropout, logits, nullptr, 0, rows, key, 0, C(1));
        for (int64_t i = 0; i < count; ++i) {
          C* own = sums + i * value_size;
          if (decay[i] != C(1))
            for (int64_t d = 0; d < value_size; ++d) own[d] *= decay[i];
          functions_.add(own, values, rows, value_size, logits + i, lanes);
        }
      }
    }
    for (int64_t p = 0; p < heads; ++p) {
      const C natural =
          scaled_logits(plan_, Head(plan_, buffers_, b, h0 + p)) ? C(1) : static_cast<C>(plan_.spec.scale);
      for (int64_t i = 0; i < count; ++i) {
        C* state = states + ((row0 + p * count + i) * parts_ + part) * (value_size + 2);
        state[0] = work.maximum[p * lanes + i] * natural;
        state[1] = work.total[p * lanes + i];
        std::copy_n(work.sums.data() + (p * count + i) * value_size, value_size, state + 2);
      }
    }
  }

  // The parts of a row into the first.
  void merge(C* states) const {
    const int64_t size = sizes_.value_size + 2;
    for (int64_t part = 1; part < parts_; ++part) {
      const C* next = states + part * size;
      if (next[1] == C(0)) continue;
      const C most = states[1] == C(0) ? next[0] : std::max(states[0], next[0]);
      const C before = states[1] == C(0) ? C(0) : std::exp(states[0] - most), after = std::exp(next[0] - most);
      states[0] = most;
      for (int64_t i = 1; i < size; ++i) states[i] = states[i] * before + next[i] * after;
    }
  }

  const Plan& plan_;
  const kernels::AttentionSizes& sizes_;
  std::byte* const* buffers_;
  const Tiles<K> tiles_;
  const RowFunctions<C> functions_ = row_functions<C>(tiles_.lanes());
  int64_t parts_;
};

}  // namespace capibara::cpu::attention
