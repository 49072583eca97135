// top_k: maps numbers to unsigned keys of the same order, and selects the least keys of each row or sorts it, stably.
#include <algorithm>
#include <memory>
#include <span>

#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/sort/order_keys.h"
#include "backends/cpu/kernels/sort/radix.h"
#include "core/runtime/thread_pool.h"

namespace capibara::cpu {

namespace {

constexpr int64_t block = 32;  // keys compared at once

// The `take` least of keys seen at increasing positions: keys below the greatest kept one accumulate up to a limit.
template <class Key>
class Selection {
 public:
  explicit Selection(int64_t take)
      : take_(take), capacity_(2 * take + 2 * block), entries_(capacity_, "candidates of top_k") {}

  void clear() { held_ = 0, bounded_ = false, limit_ = std::numeric_limits<Key>::max(); }
  void see(const Key* keys, int64_t count, int64_t position) {
    if (bounded_ && count == block) {
      Key below = 0;
      for (int64_t i = 0; i < block; ++i) below |= keys[i] < limit_;
      if (!below) return;
    }
    for (int64_t i = 0; i < count; ++i) {
      entries_[held_] = {keys[i], static_cast<uint32_t>(position + i)};
      held_ += !bounded_ || keys[i] < limit_;  // of equal keys the first one stays
    }
    if (held_ > capacity_ - block) prune();
  }
  void see(const Entry<Key>& entry) {
    entries_[held_++] = entry;
    if (held_ > capacity_ - block) prune();
  }
  // The kept entries, unordered.
  std::span<const Entry<Key>> kept() {
    if (held_ > take_) prune();
    return {entries_.data(), static_cast<std::size_t>(held_)};
  }
  std::span<const Entry<Key>> sorted() {
    kept();
    std::sort(entries_.data(), entries_.data() + held_);
    return {entries_.data(), static_cast<std::size_t>(held_)};
  }

 private:
  void prune() {
    std::nth_element(entries_.data(), entries_.data() + take_ - 1, entries_.data() + held_);
    held_ = take_;
    limit_ = entries_[take_ - 1].key;
    bounded_ = true;
  }

  int64_t take_, capacity_, held_ = 0;
  bool bounded_ = false;
  Key limit_ = std::numeric_limits<Key>::max();
  Scratch<Entry<Key>> entries_;
};

// The first `take` of each row in descending (or ascending) total order of bits.
struct Extremes {
  DType dtype;
  AxisRows rows, out_rows;
  bool greatest;

  int64_t take() const { return out_rows.length; }

  // Passes the keys of elements [begin, end) of a row to a selection.
  template <class C>
  void show(const std::byte* data, int64_t row, int64_t begin, int64_t end, Selection<KeyOf<C>>& selection) const {
    using Key = KeyOf<C>;
    const int64_t size = storage_size(dtype), start = rows.start(row), stride = rows.stride;
    const bool in_place = stored_as<C>(dtype) && stride == 1;
    const Key flip = greatest ? ~Key{0} : Key{0};
    C values[block];
    std::byte between[block * 16];
    Key keys[block];
    for (int64_t i = begin; i < end; i += block) {
      const int64_t count = std::min(block, end - i);
      const C* from = values;
      if (in_place) {
        from = reinterpret_cast<const C*>(data) + start + i;
      } else {
        for (int64_t k = 0; k < count; ++k)
          std::memcpy(between + k * size, data + (start + (i + k) * stride) * size, static_cast<std::size_t>(size));
        load_range<C>(dtype, between, count, values);
      }
      if (count == block) {
        for (int64_t k = 0; k < block; ++k) keys[k] = key_of<Zeros::distinct>(from[k]) ^ flip;
      } else {
        for (int64_t k = 0; k < count; ++k) keys[k] = key_of<Zeros::distinct>(from[k]) ^ flip;
      }
      selection.see(keys, count, i);
    }
  }

  template <class Key>
  void write(std::byte* const* buffers, int64_t row, std::span<const Entry<Key>> entries) const {
    const int64_t size = storage_size(dtype), from = rows.start(row), to = out_rows.start(row);
    for (int64_t i = 0; i < take(); ++i) {
      const int64_t position = entries[static_cast<std::size_t>(i)].position, place = to + i * out_rows.stride;
      std::memcpy(buffers[1] + place * size, buffers[0] + (from + position * rows.stride) * size,
                  static_cast<std::size_t>(size));
      reinterpret_cast<int32_t*>(buffers[2])[place] = static_cast<int32_t>(position);
    }
  }

  // For small k: searches pieces of rows separately, then searches their results once more. The order of keys with
  // positions is total, so the pieces do not affect the result.
  template <class C>
  void select(std::byte* const* buffers) const {
    using Key = KeyOf<C>;
    const int64_t piece = std::max<int64_t>(int64_t{1} << 16, 8 * take()), pieces = (rows.length + piece - 1) / piece;
    const double cost = 200 + 0.5 * static_cast<double>(std::min(rows.length, piece));
    if (pieces == 1) {
      parallel_for_cost(rows.count, cost, [&](int64_t begin, int64_t end) {
        Selection<Key> selection(take());
        for (int64_t row = begin; row < end; ++row) {
          selection.clear();
          show<C>(buffers[0], row, 0, rows.length, selection);
          write<Key>(buffers, row, selection.sorted());
        }
        return 0;
      });
      return;
    }
    for (int64_t row = 0; row < rows.count; ++row) {
      Scratch<Entry<Key>> found(pieces * take(), "candidates of top_k");
      Scratch<int64_t> counts(pieces, "candidates of top_k");
      parallel_for_cost(pieces, cost, [&](int64_t begin, int64_t end) {
        Selection<Key> selection(take());
        for (int64_t p = begin; p < end; ++p) {
          selection.clear();
          show<C>(buffers[0], row, p * piece, std::min(rows.length, (p + 1) * piece), selection);
          const auto kept = selection.kept();
          std::copy(kept.begin(), kept.end(), found.data() + p * take());
          counts[p] = static_cast<int64_t>(kept.size());
        }
        return 0;
      });
      Selection<Key> selection(take());
      for (int64_t p = 0; p < pieces; ++p) {
        for (int64_t i = 0; i < counts[p]; ++i) selection.see(found[p * take() + i]);
      }
      write<Key>(buffers, row, selection.sorted());
    }
  }

  // For large k: sorts the whole row.
  template <class C>
  void sort(std::byte* const* buffers) const {
    using Key = KeyOf<C>;
    parallel_for_cost(rows.count, row_cost(rows.length), [&](int64_t begin, int64_t end) {
      Scratch<C> values(rows.length, "top_k");
      Scratch<std::byte> between(rows.length * storage_size(dtype), "top_k");
      Scratch<Entry<Key>> both(2 * rows.length, "top_k");
      for (int64_t row = begin; row < end; ++row) {
        Entry<Key>* entries = both.data();
        load_row<C>(dtype, buffers[0], rows, row, between.data(), values.data());
        for (int64_t i = 0; i < rows.length; ++i) {
          const Key key = key_of<Zeros::distinct>(values[i]);
          entries[i] = {greatest ? static_cast<Key>(~key) : key, static_cast<uint32_t>(i)};
        }
        entries = sort_entries(entries, entries + rows.length, rows.length);
        write<Key>(buffers, row, {entries, static_cast<std::size_t>(rows.length)});
      }
      return 0;
    });
  }
};

HostKernel make_extremes(const KernelRequest& request, int64_t axis, bool greatest) {
  const DType dtype = request.inputs[0].dtype;
  Extremes extremes{dtype, AxisRows(request.inputs[0].shape, axis), AxisRows(request.outputs[0].shape, axis), greatest};
  const int64_t length = extremes.rows.length, take = extremes.take();
  if (take > length || request.outputs[1].dtype != DType::int32 || is_complex(dtype) ||
      length >= std::numeric_limits<int32_t>::max())
    return {};
  HostKernel kernel;
  visit_compute(dtype, [&]<class C>(Type<C>) {
    if constexpr (!is_complex_number<C>) {
      kernel = [extremes](std::byte* const* buffers) {
        if (extremes.take() == 0) return;
        if (extremes.take() * 4 < extremes.rows.length)
          extremes.select<C>(buffers);
        else
          extremes.sort<C>(buffers);
      };
    }
  });
  return kernel;
}

HostKernel make_top_k(const KernelRequest& request) {
  return make_extremes(request, request.attrs.integer("axis"), true);
}

HostKernel make_approx_top_k(const KernelRequest& request) {
  int64_t axis = request.attrs.integer("reduction_dimension");
  return make_extremes(request, axis < 0 ? axis + request.inputs[0].rank() : axis, request.attrs.boolean("is_max_k"));
}

}  // namespace

KernelMakers top_k_makers() { return {{"top_k", make_top_k}, {"approx_top_k", make_approx_top_k}}; }

}  // namespace capibara::cpu
