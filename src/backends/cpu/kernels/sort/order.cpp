// sort: maps numbers to unsigned keys of the same order, and sorts rows by digits, by comparison or in vector
// registers, stably.
//
// A single operand is sorted as keys only. Zeros of both signs and denormals share one key, and all NaNs share one:
// afterwards those of a row are restored in their original order.
#include <algorithm>
#include <limits>
#include <numeric>

#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/sort/order_keys.h"
#include "backends/cpu/kernels/sort/radix.h"
#include "backends/cpu/kernels/sort/vector_sort.h"
#include "backends/cpu/kernels/targets.h"
#include "backends/cpu/kernels/visit_bytes.h"
#include "core/runtime/interrupt.h"
#include "core/runtime/thread_pool.h"

namespace capibara::cpu {

namespace {

// Loops that run if has_vector_sort().
#if defined(__x86_64__)
#define CAPIBARA_WIDE_LOOP CAPIBARA_AVX512
#else
#define CAPIBARA_WIDE_LOOP
#endif

// ---- one operand -------------------------------------------------------------------------------------------------

enum class Numbers { natural, integer, floating };

// Keys of elements in their stored form.
template <class Key, Numbers N>
struct Code {
  Key infinity = 0;  // its bits; anything greater without its sign bit is a NaN
  Key normal = 1;    // bits of the least number that does not count as zero: for float32 denormals do
  static constexpr int last = 8 * sizeof(Key) - 1;
  static constexpr Key top = static_cast<Key>(Key{1} << last), magnitude = static_cast<Key>(~top);

  bool is_zero(Key bits) const { return (bits & magnitude) < normal; }
  // True if the key does not determine the bits it was made from.
  bool is_special(Key bits) const { return (is_zero(bits) && bits != 0) || is_nan(bits); }
  bool is_nan(Key bits) const { return (bits & magnitude) > infinity; }
  Key encode(Key bits) const {
    if constexpr (N == Numbers::floating) {
      const auto negative =
          static_cast<Key>(static_cast<std::make_signed_t<Key>>(bits) >> last);  // all bits, or none: no branch
      const Key rising = static_cast<Key>(is_zero(bits) ? top : bits ^ (negative | top));
      return is_nan(bits) ? static_cast<Key>(~Key{0}) : rising;
    }
    return N == Numbers::integer ? static_cast<Key>(bits ^ top) : bits;
  }
  Key decode(Key key) const {
    if constexpr (N == Numbers::floating) {
      const auto positive = static_cast<Key>(static_cast<std::make_signed_t<Key>>(key) >> last);
      return static_cast<Key>(key ^ (static_cast<Key>(~positive) | top));
    }
    return N == Numbers::integer ? static_cast<Key>(key ^ top) : key;
  }
};

template <class Key, Numbers N>
struct KeySort {
  Code<Key, N> code;

  // Sorts a contiguous row; `scratch` has the same length.
  void row(const Key* in, Key* out, Key* scratch, int64_t count) const {
    if constexpr (sizeof(Key) >= 4) {
      if (has_vector_sort()) return row_in_vectors(in, out, scratch, count);
    }
    if (count <= 64) return row_by_comparison(in, out, count);
    const RadixPasses passes(count);
    Key differing = 0;
    bool special = false;
    Scratch<Key> differ(passes.parts(), "sort");
    Scratch<uint8_t> specials(passes.parts(), "sort");
    passes.each_part([&](int64_t part, int64_t begin, int64_t end) {
      const Code<Key, N> own = code;
      const Key first = own.encode(in[0]);
      Key different = 0, marks = 0;
      for (int64_t i = begin; i < end; ++i) {
        different |= own.encode(in[i]) ^ first;
        if constexpr (N == Numbers::floating) marks |= own.is_special(in[i]) ? Key{1} : Key{0};
      }
      differ[part] = different;
      specials[part] = marks != 0;
    });
    for (int part = 0; part < passes.parts(); ++part) {
      differing |= differ[part];
      special = special || specials[part] != 0;
    }
    const Digits digits(differing, count);
    if (digits.passes == 0) {
      std::copy_n(in, count, out);
      return;
    }
    const Key mask = static_cast<Key>((Key{1} << digits.width) - 1);
    const Key* from = in;
    for (int pass = 0; pass < digits.passes; ++pass) {
      poll_stop();
      const int shift = digits.shift(pass);
      const bool first = pass == 0, last = pass + 1 == digits.passes;
      Key* to = (digits.passes - 1 - pass) % 2 == 0 ? out : scratch;
      auto digit = [=](Key key) { return static_cast<uint32_t>(key >> shift) & mask; };
      const Code<Key, N> own = code;
      auto encoded = [=](int64_t i) { return own.encode(from[i]); };
      auto plain = [=](int64_t i) { return from[i]; };
      auto decoded = [=](uint32_t place, Key key) { to[place] = own.decode(key); };
      auto kept = [=](uint32_t place, Key key) { to[place] = key; };
      if (first && last)
        passes.run(digits.width, digit, encoded, decoded);
      else if (first)
        passes.run(digits.width, digit, encoded, kept);
      else if (last)
        passes.run(digits.width, digit, plain, decoded);
      else
        passes.run(digits.width, digit, plain, kept);
      from = to;
    }
    if (special) restore(in, out, count);
  }

 private:
  void row_by_comparison(const Key* in, Key* out, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) out[i] = code.encode(in[i]);
    std::sort(out, out + count);
    for (int64_t i = 0; i < count; ++i) out[i] = code.decode(out[i]);
    if constexpr (N == Numbers::floating) restore(in, out, count);
  }

  void row_in_vectors(const Key* in, Key* out, Key* scratch, int64_t count) const {
    const bool special = encode_all(code, in, out, count);
    vector_sort(out, scratch, count);
    decode_all(code, out, count);
    if (special) restore(in, out, count);
  }

  // Returns true if zeros or NaNs lost their bits.
  CAPIBARA_WIDE_LOOP static bool encode_all(Code<Key, N> own, const Key* in, Key* out, int64_t count) {
    Key marks = 0;
    for (int64_t i = 0; i < count; ++i) {
      const Key bits = in[i];
      if constexpr (N == Numbers::floating) marks |= static_cast<Key>(own.is_special(bits));
      out[i] = own.encode(bits);
    }
    return marks != 0;
  }
  CAPIBARA_WIDE_LOOP static void decode_all(Code<Key, N> own, Key* keys, int64_t count) {
    for (int64_t i = 0; i < count; ++i) keys[i] = own.decode(keys[i]);
  }

  // Restores zeros and NaNs with their original bits, in their original order.
  void restore(const Key* in, Key* out, int64_t count) const {
    int64_t below = 0, nans = 0;
    for (int64_t i = 0; i < count; ++i) {
      const bool nan = code.is_nan(in[i]);
      nans += nan;
      below += in[i] > code.top && !code.is_zero(in[i]) && !nan;
    }
    int64_t zero = below, nan = count - nans;
    for (int64_t i = 0; i < count; ++i) {
      if (code.is_zero(in[i]))
        out[zero++] = in[i];
      else if (code.is_nan(in[i]))
        out[nan++] = in[i];
    }
  }
};

// Sorts the rows of one operand.
template <class Key, Numbers N>
void sort_keys(const KeySort<Key, N>& sort, const AxisRows& rows, const Key* in, Key* out) {
  if (rows.stride == 1) {
    parallel_for_cost(rows.count, row_cost(rows.length) / 2, [&](int64_t begin, int64_t end) {
      Scratch<Key> scratch(rows.length, "sort");
      for (int64_t row = begin; row < end; ++row)
        sort.row(in + row * rows.length, out + row * rows.length, scratch.data(), rows.length);
      return 0;
    });
    return;
  }
  // Reads and writes adjacent lanes together.
  constexpr int64_t together = 64 / sizeof(Key);
  const int64_t groups = (rows.stride + together - 1) / together, length = rows.length;
  parallel_for_cost(
      rows.count / rows.stride * groups, row_cost(length) * static_cast<double>(std::min(together, rows.stride)),
      [&](int64_t begin, int64_t end) {
        Scratch<Key> lanes(together * length, "sort"), sorted(together * length, "sort"), scratch(length, "sort");
        for (int64_t task = begin; task < end; ++task) {
          const int64_t lane = task % groups * together, count = std::min(together, rows.stride - lane),
                        start = task / groups * length * rows.stride + lane;
          for (int64_t i = 0; i < length; ++i) {
            for (int64_t k = 0; k < count; ++k) lanes[k * length + i] = in[start + i * rows.stride + k];
          }
          for (int64_t k = 0; k < count; ++k)
            sort.row(lanes.data() + k * length, sorted.data() + k * length, scratch.data(), length);
          for (int64_t i = 0; i < length; ++i) {
            for (int64_t k = 0; k < count; ++k) out[start + i * rows.stride + k] = sorted[k * length + i];
          }
        }
        return 0;
      });
}

template <class Key, Numbers N>
HostKernel key_kernel(const AxisRows& rows, Key infinity = 0, Key normal = 1) {
  return [rows, infinity, normal](std::byte* const* buffers) {
    const KeySort<Key, N> sort{{infinity, normal}};
    sort_keys(sort, rows, reinterpret_cast<const Key*>(buffers[0]), reinterpret_cast<Key*>(buffers[1]));
  };
}

// Returns an empty function if elements are not plain numbers.
HostKernel make_key_sort(DType dtype, const AxisRows& rows) {
  switch (dtype) {
    case DType::bool_:
    case DType::uint8:
      return key_kernel<uint8_t, Numbers::natural>(rows);
    case DType::uint16:
      return key_kernel<uint16_t, Numbers::natural>(rows);
    case DType::uint32:
      return key_kernel<uint32_t, Numbers::natural>(rows);
    case DType::uint64:
      return key_kernel<uint64_t, Numbers::natural>(rows);
    case DType::int8:
      return key_kernel<uint8_t, Numbers::integer>(rows);
    case DType::int16:
      return key_kernel<uint16_t, Numbers::integer>(rows);
    case DType::int32:
      return key_kernel<uint32_t, Numbers::integer>(rows);
    case DType::int64:
      return key_kernel<uint64_t, Numbers::integer>(rows);
    case DType::bfloat16:
      return key_kernel<uint16_t, Numbers::floating>(rows, 0x7f80, 0x0080);
    case DType::float16:
      return key_kernel<uint16_t, Numbers::floating>(rows, 0x7c00);
    case DType::float32:
      return key_kernel<uint32_t, Numbers::floating>(rows, 0x7f800000, 0x00800000);
    case DType::float64:
      return key_kernel<uint64_t, Numbers::floating>(rows, 0x7ff0000000000000, 0x0010000000000000);
    default:
      return {};
  }
}

// ---- several operands --------------------------------------------------------------------------------------------

// Working memory for sorting rows. Its loops are parallel if the loop over rows is not.
struct Workspace {
  Scratch<uint32_t> order, previous;
  Scratch<std::byte> values, between, entries;

  Workspace(int64_t length, int64_t widest)
      : order(length, "sort"),
        previous(length, "sort"),
        values(length * widest, "sort"),
        between(length * widest, "sort"),
        entries(length * 2 * (widest >= 8 ? 16 : 8), "sort") {}

  // Orders the row by `key(i)`; equal keys keep their previous order. `first`: there is none yet.
  template <class Key, class F>
  void arrange(int64_t length, bool first, F&& key) {
    auto* all = reinterpret_cast<Entry<Key>*>(entries.data());
    // A second pass sorts positions in the order of the first, which are translated at the end.
    parallel_for_cost(length, 1.0, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        all[i] = {key(first ? static_cast<uint32_t>(i) : order[i]), static_cast<uint32_t>(i)};
      return 0;
    });
    const Entry<Key>* sorted = sort_entries(all, all + length, length);
    if (!first) std::copy_n(order.data(), length, previous.data());
    parallel_for_cost(length, 1.0, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) order[i] = first ? sorted[i].position : previous[sorted[i].position];
      return 0;
    });
  }
};

void move_row(int64_t size, const std::byte* from, std::byte* to, const uint32_t* order, int64_t count, int64_t step) {
  visit_bytes(size, [&]<class T>(Type<T>) {
    const T* source = reinterpret_cast<const T*>(from);
    T* target = reinterpret_cast<T*>(to);
    parallel_for_cost(count, 2.0, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) target[i * step] = source[order[i] * step];
      return 0;
    });
  });
}

// The order of one row by one operand.
void arrange_by(Workspace& work, DType dtype, const std::byte* data, const AxisRows& rows, int64_t row, bool first) {
  visit_compute(dtype, [&]<class C>(Type<C>) {
    const C* values = reinterpret_cast<const C*>(data) + rows.start(row);
    if (rows.stride != 1 || !stored_as<C>(dtype)) {
      auto* loaded = reinterpret_cast<C*>(work.values.data());
      load_row<C>(dtype, data, rows, row, work.between.data(), loaded);
      values = loaded;
    }
    using Key = KeyOf<C>;
    if constexpr (is_complex_number<C>) {
      work.arrange<Key>(rows.length, first, [values](uint32_t i) { return key_of<Zeros::equal>(values[i].imag()); });
      work.arrange<Key>(rows.length, false, [values](uint32_t i) { return key_of<Zeros::equal>(values[i].real()); });
    } else {
      work.arrange<Key>(rows.length, first, [values](uint32_t i) { return key_of<Zeros::equal>(values[i]); });
    }
  });
}

HostKernel make_sort(const KernelRequest& request) {
  const std::size_t keys = static_cast<std::size_t>(request.attrs.integer("num_keys")),
                    operands = request.inputs.size();
  AxisRows rows(request.inputs[0].shape, request.attrs.integer("dimension"));
  if (rows.length >= std::numeric_limits<uint32_t>::max()) return {};
  if (operands == 1) {
    if (HostKernel kernel = make_key_sort(request.inputs[0].dtype, rows)) return kernel;
  }
  std::vector<DType> dtypes;
  for (const ArrayType& type : request.inputs) dtypes.push_back(type.dtype);
  int64_t widest = 4;
  for (std::size_t k = 0; k < keys; ++k) widest = std::max(widest, storage_size(dtypes[k]));
  return [rows, keys, operands, dtypes, widest](std::byte* const* buffers) {
    parallel_for_cost(rows.count, row_cost(rows.length) * static_cast<double>(keys), [&](int64_t begin, int64_t end) {
      Workspace work(rows.length, widest);
      for (int64_t row = begin; row < end; ++row) {
        poll_stop();
        if (keys == 0) std::iota(work.order.data(), work.order.data() + rows.length, 0u);
        for (std::size_t k = keys; k-- > 0;) arrange_by(work, dtypes[k], buffers[k], rows, row, k + 1 == keys);
        for (std::size_t k = 0; k < operands; ++k) {
          const int64_t size = storage_size(dtypes[k]), start = rows.start(row) * size;
          move_row(size, buffers[k] + start, buffers[operands + k] + start, work.order.data(), rows.length,
                   rows.stride);
        }
      }
      return 0;
    });
  };
}

}  // namespace

KernelMakers order_makers() { return {{"sort", make_sort}}; }

}  // namespace capibara::cpu
