// Reference kernels of sorting: by keys, by a comparator region, and the largest elements of each row.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "backends/axis_rows.h"
#include "backends/reference/regions.h"
#include "backends/reference/sort.h"
#include "lax/sort/sort.h"
#include "program/ir/handles.h"

namespace capibara::reference {

namespace {

enum class Zeros { equal, distinct };

// Maps numbers to unsigned integers in the same order. Zeros::equal: both zeros and denormals are equal, and so are all
// NaNs; Zeros::distinct: the total order of all bit patterns.
template <class F>
uint64_t float_key(F value, Zeros zeros) {
  using Bits = std::conditional_t<sizeof(F) == 4, uint32_t, uint64_t>;
  if (zeros == Zeros::equal) {
    if (std::abs(value) < std::numeric_limits<F>::min()) value = 0;
    if (value != value) value = std::numeric_limits<F>::quiet_NaN();
  }
  Bits bits = std::bit_cast<Bits>(value), sign = Bits{1} << (8 * sizeof(F) - 1);
  return (bits & sign) ? static_cast<Bits>(~bits) : static_cast<Bits>(bits | sign);
}

using Keys = std::vector<uint64_t>;

void append_keys(const Array& x, Zeros zeros, std::vector<Keys>& keys) {
  visit_compute(x.dtype(), [&]<class C>(Type<C>) {
    auto values = read_all<C>(x.dtype(), x.raw_data(), x.size());
    auto add = [&](auto&& key_of) {
      Keys list(static_cast<std::size_t>(x.size()));
      for (int64_t i = 0; i < x.size(); ++i) list[static_cast<std::size_t>(i)] = key_of(values[i]);
      keys.push_back(std::move(list));
    };
    if constexpr (is_complex_number<C>) {
      add([&](const C& v) { return float_key(v.real(), zeros); });
      add([&](const C& v) { return float_key(v.imag(), zeros); });
    } else if constexpr (std::is_floating_point_v<C>) {
      add([&](C v) { return float_key(v, zeros); });
    } else if constexpr (std::is_signed_v<C>) {
      add([](C v) { return static_cast<uint64_t>(static_cast<int64_t>(v)) ^ (uint64_t{1} << 63); });
    } else {
      add([](C v) { return static_cast<uint64_t>(v); });
    }
  });
}

// The sorted order of each row as positions within it; equal keys keep their order.
void sort_rows(const AxisRows& rows, const std::vector<Keys>& keys, int64_t take,
               const std::function<void(int64_t row, const std::vector<int64_t>& order)>& emit) {
  struct Entry {
    uint64_t key;
    int64_t position;
  };
  std::vector<Entry> entries(static_cast<std::size_t>(rows.length));
  std::vector<int64_t> order(static_cast<std::size_t>(rows.length));
  for (int64_t row = 0; row < rows.count; ++row) {
    int64_t start = rows.start(row);
    for (int64_t i = 0; i < rows.length; ++i) {
      entries[static_cast<std::size_t>(i)] = {keys[0][static_cast<std::size_t>(start + i * rows.stride)], i};
    }
    auto before = [&](const Entry& a, const Entry& b) {
      if (a.key != b.key) return a.key < b.key;
      for (std::size_t k = 1; k < keys.size(); ++k) {
        uint64_t x = keys[k][static_cast<std::size_t>(start + a.position * rows.stride)];
        uint64_t y = keys[k][static_cast<std::size_t>(start + b.position * rows.stride)];
        if (x != y) return x < y;
      }
      return a.position < b.position;
    };
    if (take * 4 < rows.length)
      std::partial_sort(entries.begin(), entries.begin() + take, entries.end(), before);
    else
      std::sort(entries.begin(), entries.end(), before);
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = entries[i].position;
    emit(row, order);
  }
}

void copy_row(const Array& x, const AxisRows& rows, int64_t row, const std::vector<int64_t>& order, std::byte* out,
              const AxisRows& out_rows) {
  auto size = static_cast<std::size_t>(storage_size(x.dtype()));
  int64_t start = rows.start(row), out_start = out_rows.start(row);
  for (int64_t i = 0; i < std::min(out_rows.length, rows.length); ++i) {
    int64_t from = start + order[static_cast<std::size_t>(i)] * rows.stride, to = out_start + i * out_rows.stride;
    std::memcpy(out + static_cast<std::size_t>(to) * size, x.raw_data() + static_cast<std::size_t>(from) * size, size);
  }
}

Arrays sort_by_keys(std::span<const Array> inputs, const std::vector<Keys>& keys, int64_t axis) {
  AxisRows rows(inputs[0].shape(), axis);
  std::vector<Output> outputs;
  for (const Array& x : inputs) outputs.push_back(allocate(x.type()));
  sort_rows(rows, keys, rows.length, [&](int64_t row, const std::vector<int64_t>& order) {
    for (std::size_t k = 0; k < inputs.size(); ++k) copy_row(inputs[k], rows, row, order, outputs[k].data, rows);
  });
  Arrays arrays;
  for (Output& output : outputs) arrays.push_back(output.array);
  return arrays;
}

Arrays sort(const KernelArgs& args) {
  std::vector<Keys> keys;
  for (int64_t k = 0; k < args.attrs.integer("num_keys"); ++k) {
    append_keys(args.inputs[static_cast<std::size_t>(k)], Zeros::equal, keys);
  }
  return sort_by_keys(args.inputs, keys, args.attrs.integer("dimension"));
}

// The sort keys for a comparator that is a single comparison of one operand's two elements.
std::optional<std::vector<Keys>> single_comparison_keys(const Program& comparator, std::span<const Array> inputs) {
  if (comparator.equations().size() != 1) return std::nullopt;
  const Equation& equation = comparator.equations()[0];
  if (equation.inputs.size() != 2 || comparator.outputs()[0] != Atom(equation.outputs[0])) return std::nullopt;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Atom left = comparator.invars()[2 * i], right = comparator.invars()[2 * i + 1];
    bool straight = equation.inputs[0] == left && equation.inputs[1] == right;
    bool swapped = equation.inputs[0] == right && equation.inputs[1] == left;
    if (!straight && !swapped) continue;
    const Primitive& primitive = equation.primitive;
    bool total = primitive == prim::lt_to(), less = total || primitive == prim::lt(), greater = primitive == prim::gt();
    if ((!less && !greater) || is_complex(inputs[i].dtype())) return std::nullopt;
    std::vector<Keys> keys;
    append_keys(inputs[i], total ? Zeros::distinct : Zeros::equal, keys);
    if (greater == straight) {
      for (uint64_t& key : keys[0]) key = ~key;
    }
    return keys;
  }
  return std::nullopt;
}

// Batcher's odd-even merge network on all rows at once; the comparator runs on whole layers of pairs. Ties are broken
// by position, so the sort is stable.
Arrays sort_by_region(const Region& region, std::span<const Array> inputs, int64_t axis) {
  AxisRows rows(inputs[0].shape(), axis);
  std::vector<std::vector<int64_t>> order(static_cast<std::size_t>(rows.count));
  for (auto& row : order) {
    row.resize(static_cast<std::size_t>(rows.length));
    std::iota(row.begin(), row.end(), int64_t{0});
  }
  std::vector<std::pair<int64_t, int64_t>> pairs;
  auto compare_layer = [&] {
    if (pairs.empty()) return;
    auto lanes = static_cast<int64_t>(pairs.size()) * rows.count;
    auto gather = [&](const Array& x, bool second) {
      Output out = allocate(x.type().with_shape({lanes}));
      auto size = static_cast<std::size_t>(storage_size(x.dtype()));
      std::byte* target = out.data;
      for (int64_t row = 0; row < rows.count; ++row) {
        for (const auto& [a, b] : pairs) {
          int64_t position =
              rows.start(row) +
              order[static_cast<std::size_t>(row)][static_cast<std::size_t>(second ? b : a)] * rows.stride;
          std::memcpy(target, x.raw_data() + static_cast<std::size_t>(position) * size, size);
          target += size;
        }
      }
      return out.array;
    };
    Arrays forward, backward;
    for (const Array& x : inputs) {
      Array first = gather(x, false), second = gather(x, true);
      forward.insert(forward.end(), {first, second});
      backward.insert(backward.end(), {second, first});
    }
    Array before = region(forward)[0], after = region(backward)[0];
    int64_t lane = 0;
    for (int64_t row = 0; row < rows.count; ++row) {
      auto& places = order[static_cast<std::size_t>(row)];
      for (const auto& [a, b] : pairs) {
        int64_t &x = places[static_cast<std::size_t>(a)], &y = places[static_cast<std::size_t>(b)];
        bool less = load_as<bool>(DType::bool_, before.raw_data(), lane),
             more = load_as<bool>(DType::bool_, after.raw_data(), lane);
        if (more != less ? more : x > y) std::swap(x, y);
        ++lane;
      }
    }
    pairs.clear();
  };
  int64_t n = rows.length;
  for (int64_t p = 1; p < n && rows.count != 0; p *= 2) {
    for (int64_t k = p; k >= 1; k /= 2) {
      for (int64_t j = k % p; j + k < n; j += 2 * k) {
        for (int64_t i = 0; i < std::min(k, n - j - k); ++i) {
          if ((i + j) / (2 * p) == (i + j + k) / (2 * p)) pairs.emplace_back(i + j, i + j + k);
        }
      }
      compare_layer();
    }
  }
  Arrays arrays;
  for (const Array& x : inputs) {
    Output out = allocate(x.type());
    for (int64_t row = 0; row < rows.count; ++row)
      copy_row(x, rows, row, order[static_cast<std::size_t>(row)], out.data, rows);
    arrays.push_back(out.array);
  }
  return arrays;
}

Arrays sort_general(const KernelArgs& args) {
  const Program& comparator = args.attrs.program("comparator");
  int64_t axis = args.attrs.integer("dimension");
  if (auto keys = single_comparison_keys(comparator, args.inputs)) return sort_by_keys(args.inputs, *keys, axis);
  Region region(comparator);
  if (args.inputs[0].shape(axis) > 64) {
    Types types;
    for (const Array& x : args.inputs) types.push_back(x.type());
    if (std::optional<int64_t> num_keys = lexicographic_keys(comparator, types)) {
      std::vector<Keys> keys;
      for (int64_t k = 0; k < *num_keys; ++k) append_keys(args.inputs[static_cast<std::size_t>(k)], Zeros::equal, keys);
      return sort_by_keys(args.inputs, keys, axis);
    }
  }
  return sort_by_region(region, args.inputs, axis);
}

Arrays take_extremes(const KernelArgs& args, int64_t axis, bool greatest) {
  const Array& x = args.inputs[0];
  Output values = allocate(args.output_types[0]), positions = allocate(args.output_types[1]);
  if (args.output_types[0].size() == 0) return {values.array, positions.array};
  std::vector<Keys> keys;
  append_keys(x, Zeros::distinct, keys);
  if (greatest) {
    for (uint64_t& key : keys[0]) key = ~key;
  }
  Array filler = identity_element(greatest ? Monoid::max : Monoid::min, x.dtype());
  AxisRows rows(x.shape(), axis), out_rows(args.output_types[0].shape, axis);
  sort_rows(rows, keys, std::min(out_rows.length, rows.length), [&](int64_t row, const std::vector<int64_t>& order) {
    copy_row(x, rows, row, order, values.data, out_rows);
    for (int64_t i = 0; i < out_rows.length; ++i) {
      int64_t place = out_rows.start(row) + i * out_rows.stride;
      bool exists = i < rows.length;
      store_as<int64_t>(DType::int32, positions.data, place, exists ? order[static_cast<std::size_t>(i)] : -1);
      // A rounded-up number of candidates may exceed the row: the rest is filled with the identity, which never wins.
      if (!exists)
        std::memcpy(values.data + place * storage_size(x.dtype()), filler.raw_data(),
                    static_cast<std::size_t>(storage_size(x.dtype())));
    }
  });
  return {values.array, positions.array};
}

Arrays top_k(const KernelArgs& args) { return take_extremes(args, args.attrs.integer("axis"), true); }

Arrays approx_top_k(const KernelArgs& args) {
  int64_t axis = args.attrs.integer("reduction_dimension");
  return take_extremes(args, axis < 0 ? axis + args.inputs[0].ndim() : axis, args.attrs.boolean("is_max_k"));
}

// The number of operands up to the last one that a comparator reads.
std::size_t operands_read(const Program& comparator) {
  std::size_t count = 0;
  auto read = [&](Atom atom) {
    const auto it = std::find(comparator.invars().begin(), comparator.invars().end(), atom.var());
    if (!atom.is_literal() && it != comparator.invars().end()) {
      count = std::max(count, static_cast<std::size_t>(it - comparator.invars().begin()) / 2 + 1);
    }
  };
  for (const Equation& equation : comparator.equations()) {
    std::for_each(equation.inputs.begin(), equation.inputs.end(), read);
  }
  std::for_each(comparator.outputs().begin(), comparator.outputs().end(), read);
  return count;
}

}  // namespace

// A comparator made of comparisons, selects and logic, with no constants but zeros and NaNs, depends only on the order,
// signs and NaNs of the numbers that it reads. If it agrees with `sort`'s own comparator in each of these cases, it is
// the same function.
std::optional<int64_t> lexicographic_keys(const Program& program, const Types& operands) {
  for (const Equation& equation : program.equations()) {
    if (!equation.primitive->traits.only_order) return std::nullopt;
    // Operations on the bits of numbers do not follow their order.
    const bool of_bits =
        equation.primitive == prim::not_() || equation.primitive == prim::and_() || equation.primitive == prim::or_();
    if (of_bits && !is_bool(program.type(equation.outputs[0]).dtype)) return std::nullopt;
    if (equation.primitive == prim::convert_element_type() &&
        program.type(equation.inputs[0]).dtype != program.type(equation.outputs[0]).dtype) {
      return std::nullopt;
    }
  }
  auto harmless = [](const Array& constant) {
    if (constant.size() != 1 || is_complex(constant.dtype())) return false;
    double value = element_as_double(constant.dtype(), constant.raw_data(), 0);
    return value == 0 || value != value;
  };
  for (const Array& literal : program.body().literals) {
    if (!harmless(literal)) return std::nullopt;
  }
  for (const Array& constant : program.constants()) {
    if (!harmless(constant)) return std::nullopt;
  }
  const std::size_t first = std::max<std::size_t>(1, operands_read(program));
  for (std::size_t keys = first; keys <= std::min<std::size_t>(operands.size(), 2); ++keys) {
    // All combinations of probe values for the elements of the keys: four on each side of zero, enough for any order of
    // them; other operands are not read.
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    const std::vector<double> probes = {-4, -3, -2, -1, -0.0, 0.0, 1, 2, 3, 4, nan, -nan};
    int64_t cases = 1;
    for (std::size_t i = 0; i < 2 * keys; ++i) cases *= static_cast<int64_t>(probes.size());
    Arrays arguments;
    int64_t period = 1;
    for (std::size_t i = 0; i < 2 * operands.size(); ++i) {
      DType dtype = operands[i / 2].dtype;
      if (is_complex(dtype)) return std::nullopt;
      Elements<double> values(cases);
      for (int64_t c = 0; c < cases; ++c) {
        double value = i < 2 * keys ? probes[static_cast<std::size_t>(c / period) % probes.size()] : 0.0;
        if (!is_floating(dtype) && value != value) value = 3;
        if ((is_unsigned(dtype) || is_bool(dtype)) && value < 0) value = 1;
        values[c] = value;
      }
      if (i < 2 * keys) period *= static_cast<int64_t>(probes.size());
      Output probe = allocate(scalar_type(dtype).with_shape({cases}));
      store_all<double>(dtype, probe.data, values);
      arguments.push_back(probe.array);
    }
    Array got = Region(program)(arguments)[0],
          expected = Region(sort_comparator(operands, static_cast<int64_t>(keys)))(arguments)[0];
    if (std::memcmp(got.raw_data(), expected.raw_data(), static_cast<std::size_t>(cases)) == 0)
      return static_cast<int64_t>(keys);
  }
  return std::nullopt;
}

KernelList sort_kernels() {
  return {{"sort", sort}, {"sort_general", sort_general}, {"top_k", top_k}, {"approx_top_k", approx_top_k}};
}

}  // namespace capibara::reference
