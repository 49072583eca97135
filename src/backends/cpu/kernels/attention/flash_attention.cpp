// Fused attention on the CPU: blocks of queries by blocks of keys, each matmul computed by the GEMM tiles.
//
// Logits are computed as key query^T, so that a column is a query: the softmax runs down the rows, and its result
// is the right operand of value^T weights without repacking. Tasks are key heads and parts of their queries; each
// packs the keys and values it reads. Rows do not depend on how they are split among tasks.
#include "backends/cpu/kernels/attention/backward_work.h"
#include "backends/cpu/kernels/attention/hide.h"
#include "backends/cpu/kernels/attention/kernel.h"
#include "backends/cpu/kernels/attention/panels.h"
#include "backends/cpu/kernels/attention/panels_amx.h"
#include "backends/cpu/kernels/scratch.h"
#include "core/runtime/processor.h"
#include "lax/math/denormals.h"

// The gradient of attention on the CPU: softmax weights are recomputed from the log-sum-exp, block by block.
//
// Five matmuls for each pair of blocks. Tasks are key heads and parts of their keys; where there are several parts,
// each has its own dquery, and these are added in order. The number of parts follows from the shape, so results do not
// depend on the number of threads.

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
    // Heads that share a bias form one task: the bias gradient is a sum over them.
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

  // All query heads of a group by key blocks [begin, end) of its key head.
  void pull_group(Work& work, int64_t b, int64_t g, int64_t begin, int64_t end, C* partial, C* bias_sums) const {
    const int64_t key_row = (b * sizes_.groups + g) * sizes_.keys;
    work.begin_keys(rows_of(2, key_row, sizes_.size), rows_of(3, key_row, sizes_.value_size));
    for (int64_t p = 0; p < sizes_.per_group(); ++p) {
      const int64_t h = g * sizes_.per_group() + p, row = (b * sizes_.heads + h) * sizes_.queries;
      const Head head(plan_, buffers_, b, h);
      work.begin_queries(rows_of(1, row, sizes_.size), rows_of(0, row, sizes_.value_size),
                         reinterpret_cast<const C*>(buffers_[4]) + row, reinterpret_cast<const C*>(buffers_[5]) + row);
      C* gradients = bias_sums ? bias_sums + plan_.bias.at(b, h) : nullptr;
      for (int64_t j = begin; j < end; ++j) {
        const int64_t key = j * shape_.key_block, rows = std::min(shape_.key_block, sizes_.keys - key);
        for (int64_t i = 0; i < shape_.query_blocks; ++i) {
          const int64_t query = i * shape_.query_block, count = std::min(shape_.query_block, sizes_.queries - query);
          const auto [from, to] = plan_.seen(query, query + count);
          if (from >= key + rows || to <= key || !head.keeps(plan_, query, key)) continue;
          if (!head.segments_meet(query, count, key, rows)) continue;
          work.pull_block(head, i, j, gradients);
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
  const Tiles<K> tiles_{};
  const BackwardShape<K> shape_{plan_, tiles_};
  int64_t batch_share_ = 1, group_share_ = 1, parts_ = 1;
};

// Attention of a few queries by many keys, as in decoding: keys and values are read once, in place.
//
// Tasks are key heads and parts of their keys, whose number follows from the shape; parts are merged in order.

template <class K, class S>
class Decode {
 public:
  using C = typename K::Sum;
  using T = typename ElementOf<S>::type;
  // Queries of a head are the lanes of one vector.
  static bool takes(const Plan& plan) {
    return plan.pattern == 0 && plan.sizes.queries <= std::min<int64_t>(4, Tiles<K>().lanes());
  }

  Decode(const Plan& plan, std::byte* const* buffers) : plan_(plan), sizes_(plan.sizes), buffers_(buffers) {
    const int64_t groups = sizes_.batch * sizes_.groups;
    parts_ = std::clamp<int64_t>(32 / groups, 1, std::max<int64_t>(sizes_.keys / 512, 1));
  }

  void run() const {
    const int64_t groups = sizes_.batch * sizes_.groups, state = sizes_.value_size + 2;
    const int64_t rows = sizes_.batch * sizes_.heads * sizes_.queries;
    Scratch<C> states(rows * parts_ * state, name);  // per row and part: maximum, sum, weighted sum of values
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

  // Elements converted to the accumulator type; in place if they already have it.
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

  // Merges the parts of a row into the first.
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
  const Tiles<K> tiles_{};
  const RowFunctions<C> functions_ = row_functions<C>(tiles_.lanes());
  int64_t parts_;
};

}  // namespace capibara::cpu::attention

namespace capibara::cpu {

namespace attention {

namespace {

template <class K, class S>
class Forward {
 public:
  using C = typename K::Sum;
  using P = typename K::Packed;
  using T = typename ElementOf<S>::type;
  // Of a block. The tiles of AMX multiply so fast that what surrounds a matmul counts: fewer and larger ones.
  static constexpr int64_t near_keys = IsAmxKind<K> ? 128 : 64, near_queries = IsAmxKind<K> ? 64 : 96;

  Forward(const Plan& plan, std::byte* const* buffers)
      : plan_(plan),
        sizes_(plan.sizes),
        buffers_(buffers),
        key_block_(plan.pattern ? plan.block_size(64)
                                : std::max<int64_t>(near_keys / tiles_.tile.rows, 1) * tiles_.tile.rows),
        query_block_(plan.pattern ? plan.block_size(64)
                                  : std::max<int64_t>(near_queries / tiles_.full_width(), 1) * tiles_.full_width()),
        query_blocks_((sizes_.queries + query_block_ - 1) / query_block_),
        key_blocks_((sizes_.keys + key_block_ - 1) / key_block_),
        value_rows_(tiles_.packed_rows(sizes_.value_size)),
        key_panel_(tiles_.packed_rows(key_block_) * tiles_.padded(sizes_.size)),
        value_panel_(value_rows_ * tiles_.padded(key_block_)) {}

  void run() const {
    const int64_t groups = sizes_.batch * sizes_.groups, items = sizes_.per_group() * query_blocks_;
    const int64_t parts = std::clamp<int64_t>((4 * thread_count() + groups - 1) / groups, 1, items);
    const double pairs = static_cast<double>(sizes_.queries * sizes_.per_group()) * static_cast<double>(sizes_.keys);
    const double cost = pairs / static_cast<double>(parts) *
                        (1 + multiply_cost<K>(static_cast<double>(sizes_.size + sizes_.value_size)));
    parallel_for_cost(groups * parts, cost, [&](int64_t begin, int64_t end) {
      Work work(*this);
      for (int64_t task = begin; task < end; ++task) {
        const int64_t group = task / parts, part = task % parts;
        work.begin(group);
        for (int64_t item = part * items / parts; item < (part + 1) * items / parts; ++item) {
          attend(work, group, item / query_blocks_, item % query_blocks_);
          poll_stop();
        }
      }
      return 0;
    });
  }

 private:
  // Working memory of one thread.
  struct Work {
    explicit Work(const Forward& f)
        : keys(f.key_blocks_ * f.key_panel_, name),
          values(f.key_blocks_ * f.value_panel_, name),
          queries(f.query_width() * Tiles<K>::padded(f.sizes_.size), name),
          narrow(f.tiles_.packed_rows(f.key_block_) * f.tiles_.full_width(), name),
          panel((f.tiles_.packed_rows(f.key_block_) + std::max(8, K::together)) * f.tiles_.full_width(), name),
          logits(f.tiles_.packed_rows(f.key_block_) * f.tiles_.full_width(), name),
          sums(f.query_width() * f.value_rows_, name),
          maximum(f.query_width(), name),
          total(f.query_width(), name),
          packed(static_cast<std::size_t>(f.key_blocks_), false) {}

    void begin(int64_t next) {
      if (next != group) packed.assign(packed.size(), false);
      group = next;
    }

    static constexpr const char* name = "flash_attention";
    Scratch<P> keys, values, queries, narrow, panel;
    Scratch<C> logits, sums, maximum, total;
    std::vector<bool> packed;  // key blocks already packed
    int64_t group = -1;
    [[no_unique_address]] typename Tiles<K>::Session session;
  };

  int64_t query_width() const { return round_up(query_block_, tiles_.lanes()); }

  void pack(Work& work, int64_t block) const {
    if (work.packed[static_cast<std::size_t>(block)]) return;
    work.packed[static_cast<std::size_t>(block)] = true;
    const int64_t first = block * key_block_, rows = std::min(key_block_, sizes_.keys - first);
    const int64_t row = work.group * sizes_.keys + first;
    tiles_.pack_left(reinterpret_cast<const S*>(buffers_[1]) + row * sizes_.size, sizes_.size, rows, sizes_.size,
                     work.keys.data() + block * key_panel_);
    tiles_.pack_left_across(reinterpret_cast<const S*>(buffers_[2]) + row * sizes_.value_size, sizes_.value_size,
                            sizes_.value_size, rows, work.values.data() + block * value_panel_);
  }

  // One block of queries of one head.
  void attend(Work& work, int64_t group, int64_t head_in_group, int64_t block) const {
    const int64_t b = group / sizes_.groups, h = group % sizes_.groups * sizes_.per_group() + head_in_group;
    const Head head(plan_, buffers_, b, h);
    const int64_t query = block * query_block_, count = std::min(query_block_, sizes_.queries - query);
    const int64_t row = (b * sizes_.heads + h) * sizes_.queries + query;
    const ColumnPanels panels = tiles_.panels(count);
    const S* queries = reinterpret_cast<const S*>(buffers_[0]) + row * sizes_.size;
    for (int64_t p = 0; p < panels.count(); ++p) {
      const int64_t start = panels.start(p) * tiles_.lanes(), width = panels.width(p) * tiles_.lanes();
      tiles_.pack_right(queries + start * sizes_.size, sizes_.size, std::min(width, count - start), sizes_.size, width,
                        work.queries.data() + start * tiles_.padded(sizes_.size));
    }
    std::fill_n(work.maximum.data(), query_width(), minus_infinity<C>);
    std::fill_n(work.total.data(), query_width(), C(0));
    std::fill_n(work.sums.data(), query_width() * value_rows_, C(0));
    const auto [begin, end] = plan_.seen(query, query + count);
    for (int64_t j = begin / key_block_; j * key_block_ < end; ++j) {
      const int64_t key = j * key_block_, rows = std::min(key_block_, sizes_.keys - key);
      if (!head.keeps(plan_, query, key) || !head.segments_meet(query, count, key, rows)) continue;
      pack(work, j);
      for (int64_t p = 0; p < panels.count(); ++p) attend_panel(work, head, panels, p, query, count, j, rows);
    }
    for (int64_t p = 0; p < panels.count(); ++p) finish(work, head, panels, p, row, count);
  }

  void attend_panel(Work& work, const Head& head, const ColumnPanels& panels, int64_t p, int64_t query, int64_t count,
                    int64_t block, int64_t rows) const {
    const int64_t vectors = panels.width(p), start = panels.start(p) * tiles_.lanes(), width = vectors * tiles_.lanes();
    const int64_t own = std::min(width, count - start), key = block * key_block_, tile = tiles_.tile.rows;
    const auto [begin, end] = plan_.seen(query + start, query + start + own);
    const int64_t first = std::max<int64_t>(begin - key, 0) / tile * tile;
    const int64_t last = std::min(rows, round_up(std::clamp<int64_t>(end - key, 0, rows), tile));
    if (first >= last) return;
    C *logits = work.logits.data(), *sums = work.sums.data() + start * value_rows_;
    tiles_.multiply(work.keys.data() + block * key_panel_, rows, sizes_.size, first, last, 0, sizes_.size,
                    work.queries.data() + start * tiles_.padded(sizes_.size), width, logits, width, vectors, false);
    const C factor = change_logits(plan_, head, LogitPanel<C>{logits, width, key, first, last, query + start, own});
    alignas(64) C decay[max_panel_width];
    functions_.softmax[vectors - 1](logits + first * width, last - first, factor, work.maximum.data() + start,
                                    work.total.data() + start, decay);
    if (!std::all_of(decay, decay + width, [](C x) { return x == C(1); })) {
      functions_.scale[vectors - 1](sums, sizes_.value_size, decay);
    }
    if (head.dropout.threshold > 0) {
      functions_.drop[vectors - 1](head.dropout, logits, nullptr, first, last, key, query + start, C(1));
    }
    const P* shares =
        rounded_panel<K>(logits + first * width, last - first, width, work.narrow.data(), work.panel.data());
    tiles_.multiply(work.values.data() + block * value_panel_, sizes_.value_size, rows, 0, sizes_.value_size, first,
                    last, shares, width, sums, width, vectors, true);
  }

  void finish(const Work& work, const Head& head, const ColumnPanels& panels, int64_t p, int64_t row,
              int64_t count) const {
    const int64_t start = panels.start(p) * tiles_.lanes(), width = panels.width(p) * tiles_.lanes();
    const C* sums = work.sums.data() + start * value_rows_;
    const C natural = scaled_logits(plan_, head) ? C(1) : static_cast<C>(plan_.spec.scale);
    const C kept = head.dropout.threshold > 0 ? static_cast<C>(plan_.spec.keep_scale()) : C(1);
    const std::size_t outputs = plan_.extras + static_cast<std::size_t>(plan_.spec.extras);
    const int64_t own = std::min(width, count - start);
    if constexpr (IsAmxKind<K>) {
      alignas(64) C factors[max_panel_width] = {};
      for (int64_t i = 0; i < own; ++i) {
        const C total = work.total[start + i];
        factors[i] = total == C(0) ? C(0) : kept / total;
      }
      S* out = reinterpret_cast<S*>(buffers_[outputs]) + (row + start) * sizes_.value_size;
      tiles_.store_columns(sums, sizes_.value_size, width, factors, own, out);
    }
    for (int64_t i = 0; i < own; ++i) {
      const C total = work.total[start + i];
      if constexpr (!IsAmxKind<K>) {
        const C factor = kept / total;
        T* out = reinterpret_cast<T*>(buffers_[outputs]) + (row + start + i) * sizes_.value_size;
        for (int64_t d = 0; d < sizes_.value_size; ++d) {
          out[d] = static_cast<T>(total == C(0) ? C(0) : sums[d * width + i] * factor);
        }
      }
      reinterpret_cast<C*>(buffers_[outputs + 1])[row + start + i] =
          total == C(0) ? minus_infinity<C> : work.maximum[start + i] * natural + std::log(total);
    }
  }

  const Plan& plan_;
  const kernels::AttentionSizes& sizes_;
  std::byte* const* buffers_;
  const Tiles<K> tiles_{};
  const RowFunctions<C> functions_ = row_functions<C>(tiles_.lanes());
  const int64_t key_block_, query_block_, query_blocks_, key_blocks_, value_rows_, key_panel_, value_panel_;
};

// ---- choosing the kernel by the types of a call ---------------------------------------------------------------------

// Calls make(kind of matmul, type of the elements in memory); returns no kernel for other types and sizes.
template <class Make>
HostKernel make_for(const Plan& plan, Make&& make) {
  const kernels::AttentionSizes& sizes = plan.sizes;
  if (sizes.batch * sizes.heads * sizes.queries * sizes.keys == 0) return {};
  if (sizes.size > 256 || sizes.value_size > 256 || plan.pattern > 1024) return {};
  switch (plan.dtype) {
    case DType::float32:
      return make(Singles{}, Type<float>{});
    case DType::float64:
      return make(Doubles{}, Type<double>{});
    case DType::bfloat16:
#if defined(__x86_64__)
      if (has_amx()) return make(AmxBfloat16{}, Type<Bfloat16Bits>{});
#endif
      return has_tile<Bfloat16>() ? make(Bfloat16{}, Type<Bfloat16Bits>{}) : make(Singles{}, Type<Bfloat16Bits>{});
    case DType::float16:
      return make(Singles{}, Type<HalfBits>{});
    default:
      return {};
  }
}

}  // namespace

HostKernel make_forward(const KernelRequest& request) {
  const Plan plan(request, kernels::forward_operands);
  return make_for(plan, [&]<class K, class S>(K, Type<S>) -> HostKernel {
    return [plan](std::byte* const* buffers) {
      const math::FlushDenormals flush;
      Decode<K, S>::takes(plan) ? Decode<K, S>(plan, buffers).run() : Forward<K, S>(plan, buffers).run();
    };
  });
}

HostKernel make_backward(const KernelRequest& request) {
  const Plan plan(request, kernels::backward_operands);
  return make_for(plan, [&]<class K, class S>(K, Type<S>) -> HostKernel {
    return [plan](std::byte* const* buffers) {
      const math::FlushDenormals flush;
      Backward<K, S>(plan, buffers).run();
    };
  });
}

}  // namespace attention

KernelMakers flash_attention_makers() {
  return {{"flash_attention", attention::make_forward}, {"flash_attention_grad", attention::make_backward}};
}

}  // namespace capibara::cpu
