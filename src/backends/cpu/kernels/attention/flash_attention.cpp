// Fused attention on the CPU: blocks of queries by blocks of keys, each product by the tiles of the matmul.
//
// Logits are computed as key query^T, so that a column is a query: the softmax goes down the rows, and what it leaves
// is the right operand of value^T shares as it is. Tasks are heads of keys and parts of their queries; each packs the
// keys and values that it reads. Rows do not depend on how they are shared out.
#include "backends/cpu/kernels/attention/backward.h"
#include "backends/cpu/kernels/attention/decode.h"
#include "backends/cpu/kernels/attention/kernel.h"
#include "lax/math/denormals.h"

namespace capibara::cpu {

namespace attention {

namespace {

template <class K, class S>
class Forward {
 public:
  using C = typename K::Sum;
  using P = typename K::Packed;
  using T = typename ElementOf<S>::type;

  Forward(const Plan& plan, std::byte* const* buffers)
      : plan_(plan),
        sizes_(plan.sizes),
        buffers_(buffers),
        key_block_(plan.pattern ? plan.block_size(64) : std::max<int64_t>(64 / tiles_.tile.rows, 1) * tiles_.tile.rows),
        query_block_(plan.pattern ? plan.block_size(64)
                                  : std::max<int64_t>(96 / tiles_.full_width(), 1) * tiles_.full_width()),
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
  // What one thread works in.
  struct Work {
    explicit Work(const Forward& f)
        : keys(f.key_blocks_ * f.key_panel_, name),
          values(f.key_blocks_ * f.value_panel_, name),
          queries(f.query_width() * Tiles<K>::padded(f.sizes_.size), name),
          narrow(f.tiles_.packed_rows(f.key_block_) * f.tiles_.full_width(), name),
          panel((f.tiles_.packed_rows(f.key_block_) + 8) * f.tiles_.full_width(), name),
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
    std::vector<bool> packed;  // blocks of keys
    int64_t group = -1;
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
    const P* shares = narrowed<K>(logits, first * width, last * width, work.narrow.data()) + first * width;
    tiles_.multiply(work.values.data() + block * value_panel_, sizes_.value_size, rows, 0, sizes_.value_size, first,
                    last, as_panel<K>(shares, last - first, width, work.panel.data()), width, sums, width, vectors,
                    true);
  }

  void finish(const Work& work, const Head& head, const ColumnPanels& panels, int64_t p, int64_t row,
              int64_t count) const {
    const int64_t start = panels.start(p) * tiles_.lanes(), width = panels.width(p) * tiles_.lanes();
    const C* sums = work.sums.data() + start * value_rows_;
    const C natural = scaled_logits(plan_, head) ? C(1) : static_cast<C>(plan_.spec.scale);
    const C kept = head.dropout.threshold > 0 ? static_cast<C>(plan_.spec.keep_scale()) : C(1);
    const std::size_t outputs = plan_.extras + static_cast<std::size_t>(plan_.spec.extras);
    for (int64_t i = 0; i < std::min(width, count - start); ++i) {
      const C total = work.total[start + i], factor = kept / total;
      T* out = reinterpret_cast<T*>(buffers_[outputs]) + (row + start + i) * sizes_.value_size;
      for (int64_t d = 0; d < sizes_.value_size; ++d) {
        out[d] = static_cast<T>(total == C(0) ? C(0) : sums[d * width + i] * factor);
      }
      reinterpret_cast<C*>(buffers_[outputs + 1])[row + start + i] =
          total == C(0) ? minus_infinity<C> : work.maximum[start + i] * natural + std::log(total);
    }
  }

  const Plan& plan_;
  const kernels::AttentionSizes& sizes_;
  std::byte* const* buffers_;
  const Tiles<K> tiles_;
  const RowFunctions<C> functions_ = row_functions<C>(tiles_.lanes());
  const int64_t key_block_, query_block_, query_blocks_, key_blocks_, value_rows_, key_panel_, value_panel_;
};

// ---- the kernel for the types of a call
// ------------------------------------------------------------------------------

// Calls make(kind of product, type of the elements in memory); no kernel for other types and sizes.
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
      return has_tile<Brains>() ? make(Brains{}, Type<BrainBits>{}) : make(Singles{}, Type<BrainBits>{});
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
