// sort and top_k: numbers become unsigned keys of the same order, and rows are sorted by radix or comparison, stably.
#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <numeric>
#include <span>

#include "array/element.h"
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/scratch.h"
#include "runtime/interrupt.h"
#include "runtime/thread_pool.h"

namespace capibara::cpu {

namespace {

// Rows along one axis: element i of row r stands at start(r) + i * stride.
struct Rows {
  int64_t length, stride, count;

  Rows(const Shape& shape, int64_t axis) : length(shape[static_cast<std::size_t>(axis)]), stride(1) {
    for (std::size_t d = static_cast<std::size_t>(axis) + 1; d < shape.size(); ++d) stride *= shape[d];
    count = length == 0 ? 0 : element_count(shape) / length;
  }
  int64_t start(int64_t row) const { return row / stride * length * stride + row % stride; }
};

// Whether both zeros are one key and all NaNs are one key, or every bit pattern has its own place.
enum class Zeros { equal, distinct };

template <class C>
inline constexpr bool is_complex_number = std::is_same_v<C, std::complex<float>> || std::is_same_v<C, std::complex<double>>;

// The unsigned type of the keys of a compute type, or of its parts.
template <class C>
using KeyOf = std::conditional_t<std::is_same_v<C, double> || std::is_same_v<C, std::complex<double>> || (std::is_integral_v<C> && sizeof(C) == 8),
                                 uint64_t, uint32_t>;

template <Zeros Z, class C>
KeyOf<C> key_of(C value) {
  using Key = KeyOf<C>;
  constexpr Key top = Key{1} << (8 * sizeof(Key) - 1);
  if constexpr (std::is_floating_point_v<C>) {
    if constexpr (Z == Zeros::equal) {
      if (value == 0) value = 0;
      if (value != value) value = std::numeric_limits<C>::quiet_NaN();
    }
    Key bits = std::bit_cast<Key>(value);
    return bits ^ ((Key{0} - (bits >> (8 * sizeof(Key) - 1))) | top);  // all bits of a negative one, the sign of others
  } else if constexpr (std::is_signed_v<C>) {
    return static_cast<Key>(static_cast<Key>(value) ^ top);
  } else {
    return static_cast<Key>(value);
  }
}

// The elements of a row next to each other, in the compute type.
template <class C>
void load_row(DType dtype, const std::byte* data, const Rows& rows, int64_t row, std::byte* between, C* out) {
  const int64_t size = storage_size(dtype);
  const std::byte* from = data + rows.start(row) * size;
  if (rows.stride == 1) return load_range<C>(dtype, from, rows.length, out);
  if (stored_as<C>(dtype)) {
    const C* source = reinterpret_cast<const C*>(from);
    for (int64_t i = 0; i < rows.length; ++i) out[i] = source[i * rows.stride];
    return;
  }
  for (int64_t i = 0; i < rows.length; ++i) std::memcpy(between + i * size, from + i * rows.stride * size, static_cast<std::size_t>(size));
  load_range<C>(dtype, between, rows.length, out);
}

template <class Key>
struct Entry {
  Key key;
  uint32_t position;
  bool operator<(const Entry& other) const { return key != other.key ? key < other.key : position < other.position; }
};

// Sorts entries by key, keeping the order of equal ones; `other` is as long. Returns the array that holds the result.
template <class Key>
Entry<Key>* sort_entries(Entry<Key>* entries, Entry<Key>* other, int64_t count) {
  if (count <= 512) {  // positions rise where keys are equal, so comparing them keeps the order
    std::sort(entries, entries + count);
    return entries;
  }
  constexpr int digits = sizeof(Key);
  auto counts = std::make_unique<int64_t[]>(static_cast<std::size_t>(digits * 256));
  for (int64_t i = 0; i < count; ++i) {
    for (int d = 0; d < digits; ++d) ++counts[static_cast<std::size_t>(d * 256) + ((entries[i].key >> (8 * d)) & 255)];
  }
  for (int d = 0; d < digits; ++d) {
    int64_t* places = counts.get() + d * 256;
    if (std::find(places, places + 256, count) != places + 256) continue;  // all the same digit
    std::exclusive_scan(places, places + 256, places, int64_t{0});
    for (int64_t i = 0; i < count; ++i) other[places[(entries[i].key >> (8 * d)) & 255]++] = entries[i];
    std::swap(entries, other);
  }
  return entries;
}

// What one thread needs to sort rows.
struct Workspace {
  Scratch<uint32_t> order;
  Scratch<std::byte> values, between, entries;

  explicit Workspace(int64_t length)
      : order(length, "sort"), values(length * 16, "sort"), between(length * 16, "sort"), entries(length * 2 * 16, "sort") {
    std::iota(order.data(), order.data() + length, 0u);
  }

  // The order of the row by `key(i)`; equal keys keep the order they had.
  template <class Key, class F>
  void arrange(int64_t length, F&& key) {
    auto* first = reinterpret_cast<Entry<Key>*>(entries.data());
    // A second pass works on the order of the first: positions count in it, and are looked up at the end.
    for (int64_t i = 0; i < length; ++i) first[i] = {key(order[i]), static_cast<uint32_t>(i)};
    Entry<Key>* sorted = sort_entries(first, first + length, length);
    auto* previous = reinterpret_cast<uint32_t*>(between.data());
    std::copy_n(order.data(), length, previous);
    for (int64_t i = 0; i < length; ++i) order[i] = previous[sorted[i].position];
  }
};

template <class T>
void move_elements(const T* from, T* to, const uint32_t* order, int64_t count, int64_t from_step, int64_t to_step) {
  for (int64_t i = 0; i < count; ++i) to[i * to_step] = from[order[i] * from_step];
}

struct Sixteen {
  uint64_t parts[2];
};

void move_row(int64_t size, const std::byte* from, std::byte* to, const uint32_t* order, int64_t count, int64_t from_step, int64_t to_step) {
  auto move = [&]<class T>(Type<T>) {
    move_elements(reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to), order, count, from_step, to_step);
  };
  switch (size) {
    case 1: return move(Type<uint8_t>{});
    case 2: return move(Type<uint16_t>{});
    case 4: return move(Type<uint32_t>{});
    case 8: return move(Type<uint64_t>{});
    default: return move(Type<Sixteen>{});
  }
}

// The order of one row by one operand.
template <Zeros Z>
void arrange_by(Workspace& work, DType dtype, const std::byte* data, const Rows& rows, int64_t row) {
  visit_compute(dtype, [&]<class C>(Type<C>) {
    auto* values = reinterpret_cast<C*>(work.values.data());
    load_row<C>(dtype, data, rows, row, work.between.data(), values);
    using Key = KeyOf<C>;
    if constexpr (is_complex_number<C>) {
      work.arrange<Key>(rows.length, [values](uint32_t i) { return key_of<Z>(values[i].imag()); });
      work.arrange<Key>(rows.length, [values](uint32_t i) { return key_of<Z>(values[i].real()); });
    } else {
      work.arrange<Key>(rows.length, [values](uint32_t i) { return key_of<Z>(values[i]); });
    }
  });
}

double row_cost(int64_t length) { return 50 + 12.0 * static_cast<double>(length); }

HostKernel make_sort(const KernelRequest& request) {
  const std::size_t keys = static_cast<std::size_t>(request.attrs.integer("num_keys")), operands = request.inputs.size();
  Rows rows(request.inputs[0].shape, request.attrs.integer("dimension"));
  if (rows.length >= std::numeric_limits<uint32_t>::max()) return {};
  std::vector<DType> dtypes;
  for (const ArrayType& type : request.inputs) dtypes.push_back(type.dtype);
  return [rows, keys, operands, dtypes](std::byte* const* buffers) {
    parallel_for_cost(rows.count, row_cost(rows.length) * static_cast<double>(keys), [&](int64_t begin, int64_t end) {
      Workspace work(rows.length);
      for (int64_t row = begin; row < end; ++row) {
        std::iota(work.order.data(), work.order.data() + rows.length, 0u);
        for (std::size_t k = keys; k-- > 0;) arrange_by<Zeros::equal>(work, dtypes[k], buffers[k], rows, row);
        for (std::size_t k = 0; k < operands; ++k) {
          const int64_t size = storage_size(dtypes[k]), start = rows.start(row) * size;
          move_row(size, buffers[k] + start, buffers[operands + k] + start, work.order.data(), rows.length, rows.stride, rows.stride);
        }
      }
      return 0;
    });
  };
}

constexpr int64_t block = 32;  // keys that are compared together

// The `take` least of keys that come by rising position: those below the greatest one kept gather until there are too many.
template <class Key>
class Selection {
 public:
  explicit Selection(int64_t take) : take_(take), capacity_(2 * take + 2 * block), entries_(capacity_, "candidates of top_k") {}

  void clear() { held_ = 0, bounded_ = false, limit_ = std::numeric_limits<Key>::max(); }
  void see(const Key* keys, int64_t count, int64_t position) {
    if (bounded_ && count == block) {
      Key below = 0;
      for (int64_t i = 0; i < block; ++i) below |= keys[i] < limit_;
      if (!below) return;
    }
    for (int64_t i = 0; i < count; ++i) {
      entries_[held_] = {keys[i], static_cast<uint32_t>(position + i)};
      held_ += !bounded_ || keys[i] < limit_;  // of equal keys the first stays
    }
    if (held_ > capacity_ - block) prune();
  }
  void see(const Entry<Key>& entry) {
    entries_[held_++] = entry;
    if (held_ > capacity_ - block) prune();
  }
  // The kept ones, in no order.
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

// The first `take` of each row's order by descending (or rising) total order of bits.
struct Extremes {
  DType dtype;
  Rows rows, out_rows;
  bool greatest;

  int64_t take() const { return out_rows.length; }

  // Shows a selection the keys of elements [begin, end) of a row.
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
        for (int64_t k = 0; k < count; ++k) std::memcpy(between + k * size, data + (start + (i + k) * stride) * size, static_cast<std::size_t>(size));
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
      std::memcpy(buffers[1] + place * size, buffers[0] + (from + position * rows.stride) * size, static_cast<std::size_t>(size));
      reinterpret_cast<int32_t*>(buffers[2])[place] = static_cast<int32_t>(position);
    }
  }

  // Few of each row: pieces of rows are searched by themselves, then what they found is searched once more. The order of
  // keys and positions is total, so the pieces do not show.
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

  // Many of each row: the whole row is sorted.
  template <class C>
  void sort(std::byte* const* buffers) const {
    using Key = KeyOf<C>;
    parallel_for_cost(rows.count, row_cost(rows.length), [&](int64_t begin, int64_t end) {
      Workspace work(rows.length);
      for (int64_t row = begin; row < end; ++row) {
        auto* values = reinterpret_cast<C*>(work.values.data());
        auto* entries = reinterpret_cast<Entry<Key>*>(work.entries.data());
        load_row<C>(dtype, buffers[0], rows, row, work.between.data(), values);
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
  Extremes extremes{dtype, Rows(request.inputs[0].shape, axis), Rows(request.outputs[0].shape, axis), greatest};
  const int64_t length = extremes.rows.length, take = extremes.take();
  if (take > length || request.outputs[1].dtype != DType::int32 || is_complex(dtype) || length >= std::numeric_limits<int32_t>::max()) return {};
  HostKernel kernel;
  visit_compute(dtype, [&]<class C>(Type<C>) {
    if constexpr (!is_complex_number<C>) {
      kernel = [extremes](std::byte* const* buffers) {
        if (extremes.take() == 0) return;
        if (extremes.take() * 4 < extremes.rows.length) extremes.select<C>(buffers);
        else extremes.sort<C>(buffers);
      };
    }
  });
  return kernel;
}

HostKernel make_top_k(const KernelRequest& request) { return make_extremes(request, request.attrs.integer("axis"), true); }

HostKernel make_approx_top_k(const KernelRequest& request) {
  int64_t axis = request.attrs.integer("reduction_dimension");
  return make_extremes(request, axis < 0 ? axis + request.inputs[0].rank() : axis, request.attrs.boolean("is_max_k"));
}

}  // namespace

KernelMakers order_makers() { return {{"sort", make_sort}, {"top_k", make_top_k}, {"approx_top_k", make_approx_top_k}}; }

}  // namespace capibara::cpu
