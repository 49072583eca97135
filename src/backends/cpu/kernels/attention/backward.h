// Attention backwards on the CPU: shares are computed again from the log-sum-exp, block by block.
//
// Five products for each pair of blocks. Tasks are heads of keys and parts of their keys; where there are several
// parts, each has a dquery of its own, added in order. Their number follows from the shape, so results do not depend on
// threads.
#pragma once

#include "backends/cpu/kernels/attention/backward_work.h"

namespace capibara::cpu::attention {

template <class K, class S>
class Backward {
 public:
  using C = typename K::Sum;
  using P = typename K::Packed;
  using T = typename ElementOf<S>::type;
  using Work = BackwardWork<K, S>;

  Backward(const Plan& plan, std::byte* const* buffers)
      : plan_(plan),
        sizes_(plan.sizes),
        buffers_(buffers),
        outputs_(plan.extras + static_cast<std::size_t>(plan.spec.extras)) {
    // Heads that share a bias are one task: its slopes are sums over them.
    if (plan.spec.has_bias && plan.bias.step[0] == 0) batch_share_ = sizes_.batch;
    if (plan.spec.has_bias && plan.bias.step[1] == 0) group_share_ = sizes_.groups;
    const int64_t heads = sizes_.batch / batch_share_ * (sizes_.groups / group_share_);
    const bool one_part = plan.spec.has_bias && plan.bias.step[3] == 0;
    parts_ = one_part ? 1 : std::clamp<int64_t>(8 / heads, 1, std::min<int64_t>(shape_.key_blocks, 8));
  }

  void run() const {
    const int64_t rows = sizes_.batch * sizes_.heads * sizes_.queries;
    Scratch<C> partial;
    if (parts_ > 1) partial = Scratch<C>(parts_ * rows * sizes_.size, "flash_attention_grad");
    Scratch<C> bias_sums;
    const int64_t bias_size = plan_.spec.has_bias ? plan_.bias_size : 0;
    if (bias_size > 0) {
      bias_sums = Scratch<C>(bias_size, "flash_attention_grad");
      std::fill_n(bias_sums.data(), bias_size, C(0));
    }
    const int64_t groups = sizes_.groups / group_share_, tasks = sizes_.batch / batch_share_ * groups * parts_;
    const double pairs =
        static_cast<double>(sizes_.batch * sizes_.heads) * static_cast<double>(sizes_.queries * sizes_.keys);
    const double cost = pairs / static_cast<double>(tasks) *
                        (2 + 2.5 * multiply_cost<K>(static_cast<double>(sizes_.size + sizes_.value_size)));
    parallel_for_cost(tasks, cost, [&](int64_t begin, int64_t end) {
      Work work(plan_, shape_, tiles_);
      for (int64_t task = begin; task < end; ++task) {
        const int64_t part = task % parts_, shared = task / parts_;
        const int64_t b0 = shared / groups * batch_share_, g0 = shared % groups * group_share_;
        for (int64_t b = b0; b < b0 + batch_share_; ++b) {
          for (int64_t g = g0; g < g0 + group_share_; ++g) {
            C* own = parts_ > 1 ? partial.data() + part * rows * sizes_.size : nullptr;
            pull_group(work, b, g, part * shape_.key_blocks / parts_, (part + 1) * shape_.key_blocks / parts_, own,
                       bias_sums.data());
          }
        }
      }
      return 0;
    });
    if (parts_ > 1) add_parts(partial.data(), rows * sizes_.size);
    if (bias_size > 0) store_range<C>(plan_.bias_dtype, buffers_[outputs_ + 3], bias_size, bias_sums.data());
  }

 private:
  const S* rows_of(std::size_t operand, int64_t row, int64_t size) const {
    return reinterpret_cast<const S*>(buffers_[operand]) + row * size;
  }

  void add_parts(const C* partial, int64_t count) const {
    T* out = reinterpret_cast<T*>(buffers_[outputs_]);
    parallel_for_cost((count + 4095) / 4096, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * 4096; i < std::min(count, end * 4096); ++i) {
        C sum = partial[i];
        for (int64_t part = 1; part < parts_; ++part) sum += partial[part * count + i];
        out[i] = static_cast<T>(sum);
      }
      return 0;
    });
  }

  // All heads of queries by the blocks [begin, end) of the keys of one head.
  void pull_group(Work& work, int64_t b, int64_t g, int64_t begin, int64_t end, C* partial, C* bias_sums) const {
    const int64_t key_row = (b * sizes_.groups + g) * sizes_.keys;
    work.begin_keys(rows_of(2, key_row, sizes_.size), rows_of(3, key_row, sizes_.value_size));
    for (int64_t p = 0; p < sizes_.per_group(); ++p) {
      const int64_t h = g * sizes_.per_group() + p, row = (b * sizes_.heads + h) * sizes_.queries;
      const Head head(plan_, buffers_, b, h);
      work.begin_queries(rows_of(1, row, sizes_.size), rows_of(0, row, sizes_.value_size),
                         reinterpret_cast<const C*>(buffers_[4]) + row, reinterpret_cast<const C*>(buffers_[5]) + row);
      C* slopes = bias_sums ? bias_sums + plan_.bias.at(b, h) : nullptr;
      for (int64_t j = begin; j < end; ++j) {
        const int64_t key = j * shape_.key_block, rows = std::min(shape_.key_block, sizes_.keys - key);
        for (int64_t i = 0; i < shape_.query_blocks; ++i) {
          const int64_t query = i * shape_.query_block, count = std::min(shape_.query_block, sizes_.queries - query);
          const auto [from, to] = plan_.seen(query, query + count);
          if (from >= key + rows || to <= key || !head.keeps(plan_, query, key)) continue;
          if (!head.segments_meet(query, count, key, rows)) continue;
          work.pull_block(head, i, j, slopes);
          poll_stop();
        }
      }
      T* dquery = reinterpret_cast<T*>(buffers_[outputs_]) + row * sizes_.size;
      if (partial)
        work.store_queries(partial + row * sizes_.size);
      else
        work.store_queries(dquery);
    }
    for (int64_t j = begin; j < end; ++j) {
      work.store_keys(j, reinterpret_cast<T*>(buffers_[outputs_ + 1]) + key_row * sizes_.size,
                      reinterpret_cast<T*>(buffers_[outputs_ + 2]) + key_row * sizes_.value_size);
    }
  }

  const Plan& plan_;
  const kernels::AttentionSizes& sizes_;
  std::byte* const* buffers_;
  const std::size_t outputs_;
  const Tiles<K> tiles_;
  const BackwardShape<K> shape_{plan_, tiles_};
  int64_t batch_share_ = 1, group_share_ = 1, parts_ = 1;
};

}  // namespace capibara::cpu::attention
