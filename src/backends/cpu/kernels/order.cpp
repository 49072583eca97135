// sort and top_k: numbers become unsigned keys of the same order, and rows are sorted by radix or comparison, stably.
#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <numeric>

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
    return (bits & top) ? static_cast<Key>(~bits) : static_cast<Key>(bits | top);
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

// The first `take` of each row's order by descending (or rising) total order of bits.
HostKernel make_extremes(const KernelRequest& request, int64_t axis, bool greatest) {
  const DType dtype = request.inputs[0].dtype;
  Rows rows(request.inputs[0].shape, axis), out_rows(request.outputs[0].shape, axis);
  const int64_t take = out_rows.length;
  if (take > rows.length || request.outputs[1].dtype != DType::int32 || is_complex(dtype) || rows.length >= std::numeric_limits<int32_t>::max()) return {};
  return [=](std::byte* const* buffers) {
    if (take == 0) return;
    parallel_for_cost(rows.count, 50 + 4.0 * static_cast<double>(rows.length), [&](int64_t begin, int64_t end) {
      Workspace work(rows.length);
      for (int64_t row = begin; row < end; ++row) {
        visit_compute(dtype, [&]<class C>(Type<C>) {
          if constexpr (!is_complex_number<C>) {
            using Key = KeyOf<C>;
            auto* values = reinterpret_cast<C*>(work.values.data());
            auto* entries = reinterpret_cast<Entry<Key>*>(work.entries.data());
            load_row<C>(dtype, buffers[0], rows, row, work.between.data(), values);
            for (int64_t i = 0; i < rows.length; ++i) {
              Key key = key_of<Zeros::distinct>(values[i]);
              entries[i] = {greatest ? static_cast<Key>(~key) : key, static_cast<uint32_t>(i)};
            }
            if (take * 4 < rows.length) {
              std::nth_element(entries, entries + take, entries + rows.length);
              std::sort(entries, entries + take);
            } else {
              entries = sort_entries(entries, entries + rows.length, rows.length);
            }
            for (int64_t i = 0; i < take; ++i) work.order[i] = entries[i].position;
          }
        });
        const int64_t size = storage_size(dtype), to = out_rows.start(row);
        move_row(size, buffers[0] + rows.start(row) * size, buffers[1] + to * size, work.order.data(), take, rows.stride, out_rows.stride);
        auto* positions = reinterpret_cast<int32_t*>(buffers[2]) + to;
        for (int64_t i = 0; i < take; ++i) positions[i * out_rows.stride] = static_cast<int32_t>(work.order[i]);
      }
      return 0;
    });
  };
}

HostKernel make_top_k(const KernelRequest& request) { return make_extremes(request, request.attrs.integer("axis"), true); }

HostKernel make_approx_top_k(const KernelRequest& request) {
  int64_t axis = request.attrs.integer("reduction_dimension");
  return make_extremes(request, axis < 0 ? axis + request.inputs[0].rank() : axis, request.attrs.boolean("is_max_k"));
}

}  // namespace

KernelMakers order_makers() { return {{"sort", make_sort}, {"top_k", make_top_k}, {"approx_top_k", make_approx_top_k}}; }

}  // namespace capibara::cpu
