// Reference kernels of sliding windows: folds, selections, and cumulative operations.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <span>

#include "backends/reference/regions.h"
#include "core/runtime/thread_pool.h"
#include "program/ir/handles.h"
#include "program/ir/window_shape.h"

namespace capibara::reference {

namespace {

// An element that a window covers along one dimension, and the position of that window.
struct Tap {
  int64_t in, out;
};

// Calls row(taps, in, out) for the taps of the last dimension, with the offsets from the other dimensions.
void for_each_row(const Shape& in, const Shape& out, const Window& window,
                  FunctionRef<void(std::span<const Tap> taps, int64_t in, int64_t out)> row) {
  std::size_t rank = in.size();
  if (element_count(out) == 0 || element_count(in) == 0) return;
  if (rank == 0) return row(std::vector<Tap>{{0, 0}}, 0, 0);
  Ints in_strides = row_major_strides(in), out_strides = row_major_strides(out);
  std::vector<std::vector<Tap>> taps(rank);
  Ints place(rank, 0);
  do {
    bool any = true;
    for (std::size_t d = 0; d < rank; ++d) {
      taps[d].clear();
      int64_t offset = place[d] * window.window_dilation[d] - window.padding[d].first;
      int64_t base = window.base_dilation[d];
      for (int64_t o = 0; o < out[d]; ++o) {
        int64_t position = o * window.strides[d] + offset;
        if (position < 0 || position % base != 0 || position / base >= in[d]) continue;
        taps[d].push_back({position / base * in_strides[d], o * out_strides[d]});
      }
      any = any && !taps[d].empty();
    }
    if (!any) continue;
    Shape counts;
    for (std::size_t d = 0; d + 1 < rank; ++d) counts.push_back(static_cast<int64_t>(taps[d].size()));
    Ints index(counts.size(), 0);
    do {
      int64_t in_base = 0, out_base = 0;
      for (std::size_t d = 0; d < index.size(); ++d) {
        const Tap& tap = taps[d][static_cast<std::size_t>(index[d])];
        in_base += tap.in;
        out_base += tap.out;
      }
      row(taps[rank - 1], in_base, out_base);
    } while (next_index(index, counts));
  } while (next_index(place, window.dimensions));
}

// Calls visit(in, out) for every element that a window covers, with row-major positions; padding and dilation holes
// are skipped. The window's elements are the outer loop, so each result accumulates them in row-major order.
template <class F>
void for_each_tap(const Shape& in, const Shape& out, const Window& window, F&& visit) {
  for_each_row(in, out, window, [&](std::span<const Tap> taps, int64_t in_base, int64_t out_base) {
    for (const Tap& tap : taps) visit(in_base + tap.in, out_base + tap.out);
  });
}

// A window as long as its axis, padded on one side by its length minus one: what cumulative operations lower to.
struct Running {
  int64_t axis;
  bool reverse;
};
std::optional<Running> as_running(const Shape& in, const Window& window) {
  std::optional<Running> found;
  for (std::size_t d = 0; d < in.size(); ++d) {
    if (window.strides[d] != 1 || window.base_dilation[d] != 1 || window.window_dilation[d] != 1) return std::nullopt;
    std::pair<int64_t, int64_t> none{0, 0}, before{in[d] - 1, 0}, after{0, in[d] - 1};
    if (window.dimensions[d] == 1 && window.padding[d] == none) continue;
    bool whole = window.dimensions[d] == in[d] && (window.padding[d] == before || window.padding[d] == after);
    if (!whole || found) return std::nullopt;
    found = Running{static_cast<int64_t>(d), window.padding[d] == after};
  }
  return found;
}

Array fold_windows(Monoid monoid, const Array& x, const Array& init, const Window& window, const ArrayType& out_type) {
  if (std::optional<Running> running = as_running(x.shape(), window)) {
    if (x.size() != 0 && is_identity_element(monoid, init)) {
      return running_fold(monoid, x, running->axis, running->reverse, out_type);
    }
  }
  Output out = allocate(out_type);
  int64_t count = out_type.size();
  if (count == 0) return out.array;
  visit_compute(x.dtype(), [&]<class C>(Type<C>) {
    auto values = read_all<C>(x.dtype(), x.raw_data(), x.size());
    Elements<C> totals(count);  // short sums: rounded at each step, as in XLA
    std::fill(totals.begin(), totals.end(), load_as<C>(init.dtype(), init.raw_data(), 0));
    visit_monoid(monoid, [&]<Monoid M>(MonoidTag<M>) {
      if constexpr (folds<M, C>) {
        for_each_tap(x.shape(), out_type.shape, window,
                     [&](int64_t i, int64_t o) { totals[o] = combine<M>(totals[o], values[i]); });
      }
    });
    store_all<C>(out_type.dtype, out.data, totals);
  });
  return out.array;
}

template <Monoid M>
Arrays named_window(const KernelArgs& args) {
  const Array& x = args.inputs[0];
  return {fold_windows(M, x, identity_element(M, x.dtype()), Window::of(args.attrs), args.output_types[0])};
}

void copy_element(const Array& from, int64_t i, std::byte* to, int64_t o) {
  auto size = static_cast<std::size_t>(storage_size(from.dtype()));
  std::memcpy(to + static_cast<std::size_t>(o) * size, from.raw_data() + static_cast<std::size_t>(i) * size, size);
}

// Prefix folds by a region: short ones element by element, long ones by doubling the reach in every step, which
// processes O(n log n) elements in O(log n) calls.
Arrays running_region(const Region& region, const Arrays& operands, const Arrays& init, Running running) {
  std::size_t n = operands.size();
  int64_t rank = operands[0].ndim(), length = operands[0].shape(running.axis);
  Ints to_front = {running.axis};
  for (int64_t d = 0; d < rank; ++d) {
    if (d != running.axis) to_front.push_back(d);
  }
  int64_t lanes = operands[0].size() / length;
  Arrays values;
  for (const Array& x : operands) values.push_back(reshaped(permute(x, to_front), {length * lanes}));
  // The first element is folded with the initial value.
  auto part = [&](const Array& x, int64_t row, int64_t rows) {
    Output out = allocate(x.type().with_shape({rows * lanes}));
    auto bytes = static_cast<std::size_t>(lanes * storage_size(x.dtype()));
    std::memcpy(out.data, x.raw_data() + static_cast<std::size_t>(row) * bytes, static_cast<std::size_t>(rows) * bytes);
    return out.array;
  };
  auto replace = [&](const Array& x, int64_t row, const Array& with) {
    Output out = allocate(x.type());
    auto size = static_cast<std::size_t>(storage_size(x.dtype()));
    std::memcpy(out.data, x.raw_data(), static_cast<std::size_t>(x.size()) * size);
    std::memcpy(out.data + static_cast<std::size_t>(row * lanes) * size, with.raw_data(),
                static_cast<std::size_t>(with.size()) * size);
    return out.array;
  };
  Arrays start;
  int64_t first = running.reverse ? length - 1 : 0;
  for (const Array& x : init) start.push_back(repeat(x, {lanes}));
  for (const Array& x : values) start.push_back(part(x, first, 1));
  start = region(start);
  for (std::size_t i = 0; i < n; ++i) values[i] = replace(values[i], first, start[i]);
  constexpr int64_t short_length = 64;
  for (int64_t step = 1; length <= short_length && step < length; ++step) {
    int64_t row = running.reverse ? length - 1 - step : step, left = running.reverse ? row : row - 1;
    Arrays pairs;
    for (const Array& x : values) pairs.push_back(part(x, left, 1));
    for (const Array& x : values) pairs.push_back(part(x, left + 1, 1));
    pairs = region(pairs);
    for (std::size_t i = 0; i < n; ++i) values[i] = replace(values[i], row, pairs[i]);
  }
  for (int64_t reach = 1; length > short_length && reach < length; reach *= 2) {
    int64_t rows = length - reach;
    Arrays pairs;
    for (const Array& x : values) pairs.push_back(part(x, 0, rows));
    for (const Array& x : values) pairs.push_back(part(x, reach, rows));
    pairs = region(pairs);
    for (std::size_t i = 0; i < n; ++i) values[i] = replace(values[i], running.reverse ? 0 : reach, pairs[i]);
  }
  Ints back(static_cast<std::size_t>(rank));
  Shape front_shape;
  for (std::size_t d = 0; d < to_front.size(); ++d) {
    back[static_cast<std::size_t>(to_front[d])] = static_cast<int64_t>(d);
    front_shape.push_back(operands[0].shape()[static_cast<std::size_t>(to_front[d])]);
  }
  for (Array& x : values) x = permute(reshaped(x, front_shape), back);
  return values;
}

Arrays fold_windows_by_region(const KernelArgs& args, const Region& region) {
  std::size_t n = args.inputs.size() / 2;
  Window window = Window::of(args.attrs);
  Arrays operands(args.inputs.begin(), args.inputs.begin() + static_cast<std::ptrdiff_t>(n));
  Arrays init(args.inputs.begin() + static_cast<std::ptrdiff_t>(n), args.inputs.end());
  const Shape &in = operands[0].shape(), &out = args.output_types[0].shape;
  int64_t lanes = element_count(out);
  Arrays totals;
  for (const Array& value : init) totals.push_back(repeat(value, {lanes}));
  std::optional<Running> running = as_running(in, window);
  if (running && lanes != 0) {
    totals = running_region(region, operands, init, *running);
  } else if (lanes != 0 && element_count(in) != 0) {
    // One call of the region per element of the window, on all window positions at once.
    Window single = window;
    single.dimensions.assign(window.dimensions.size(), 1);
    Ints place(window.dimensions.size(), 0);
    do {
      for (std::size_t d = 0; d < place.size(); ++d) {
        single.padding[d].first = window.padding[d].first - place[d] * window.window_dilation[d];
      }
      std::vector<uint8_t> seen(static_cast<std::size_t>(lanes), 0);
      Arrays arguments = totals;
      for (std::size_t k = 0; k < n; ++k) {
        Output view = allocate(operands[k].type().with_shape({lanes}));
        std::memcpy(view.data, totals[k].raw_data(),
                    static_cast<std::size_t>(lanes * storage_size(operands[k].dtype())));
        for_each_tap(in, out, single, [&](int64_t i, int64_t o) {
          copy_element(operands[k], i, view.data, o);
          seen[static_cast<std::size_t>(o)] = 1;
        });
        arguments.push_back(view.array);
      }
      Arrays folded = region(arguments);
      for (std::size_t k = 0; k < n; ++k) {
        Output next = allocate(totals[k].type());
        for (int64_t o = 0; o < lanes; ++o) {
          copy_element(seen[static_cast<std::size_t>(o)] ? folded[k] : totals[k], o, next.data, o);
        }
        totals[k] = next.array;
      }
    } while (next_index(place, window.dimensions));
  }
  for (std::size_t k = 0; k < n; ++k) totals[k] = Array::from_buffer(args.output_types[k], totals[k].buffer());
  return totals;
}

Arrays general_window(const KernelArgs& args) {
  Region region(args.attrs.program("jaxpr"));
  if (args.inputs.size() == 2 && region.monoid()) {
    return {
        fold_windows(*region.monoid(), args.inputs[0], args.inputs[1], Window::of(args.attrs), args.output_types[0])};
  }
  return fold_windows_by_region(args, region);
}

// For each window the position of the selected element, or -1 if it covers none. `keeps(held, candidate)`
// returns true if the held element stays selected.
template <class C, class Keeps>
std::vector<int64_t> selected_positions(const C* values, const Shape& in, const Shape& out, const Window& window,
                                        Keeps&& keeps) {
  std::vector<int64_t> positions(static_cast<std::size_t>(element_count(out)), -1);
  for_each_tap(in, out, window, [&](int64_t i, int64_t o) {
    int64_t& held = positions[static_cast<std::size_t>(o)];
    if (held < 0 || !keeps(values[held], values[i])) held = i;
  });
  return positions;
}

template <class C>
bool keeps_held(const Primitive& comparison, C held, C candidate) {
  if constexpr (is_complex_number<C>)
    return true;
  else {
    if (comparison == prim::ge()) return held >= candidate;
    if (comparison == prim::le()) return held <= candidate;
    if (comparison == prim::gt()) return held > candidate;
    return held < candidate;
  }
}

std::vector<int64_t> select_by_comparison(const Primitive& comparison, const Array& operand, const Shape& out,
                                          const Window& window) {
  return visit_compute(operand.dtype(), [&]<class C>(Type<C>) {
    auto values = read_all<C>(operand.dtype(), operand.raw_data(), operand.size());
    return selected_positions(values.data(), operand.shape(), out, window,
                              [&](C held, C candidate) { return keeps_held(comparison, held, candidate); });
  });
}

// The comparison of a region's two inputs, in their order; undefined for any other region.
Primitive recognised_comparison(const Program& region) {
  if (region.equations().size() != 1 || region.invars().size() != 2 || region.outputs().size() != 1) return {};
  const Equation& equation = region.equations()[0];
  if (equation.inputs.size() != 2 || equation.inputs[0] != Atom(region.invars()[0]) ||
      equation.inputs[1] != Atom(region.invars()[1]) || region.outputs()[0] != Atom(equation.outputs[0])) {
    return {};
  }
  const Primitive& primitive = equation.primitive;
  const bool orders =
      primitive == prim::ge() || primitive == prim::le() || primitive == prim::gt() || primitive == prim::lt();
  return orders ? primitive : Primitive();
}

std::vector<int64_t> select_by_region(const Region& region, const Array& operand, const Shape& out,
                                      const Window& window) {
  auto lanes = static_cast<std::size_t>(element_count(out));
  std::vector<int64_t> positions(lanes, -1);
  Window single = window;
  single.dimensions.assign(window.dimensions.size(), 1);
  Ints place(window.dimensions.size(), 0);
  if (lanes == 0) return positions;
  do {
    for (std::size_t d = 0; d < place.size(); ++d) {
      single.padding[d].first = window.padding[d].first - place[d] * window.window_dilation[d];
    }
    std::vector<int64_t> candidates(lanes, -1);
    for_each_tap(operand.shape(), out, single,
                 [&](int64_t i, int64_t o) { candidates[static_cast<std::size_t>(o)] = i; });
    Output held = allocate(operand.type().with_shape({static_cast<int64_t>(lanes)}));
    Output offered = allocate(held.array.type());
    for (std::size_t o = 0; o < lanes; ++o) {
      copy_element(operand, std::max<int64_t>(positions[o], 0), held.data, static_cast<int64_t>(o));
      copy_element(operand, std::max<int64_t>(candidates[o], 0), offered.data, static_cast<int64_t>(o));
    }
    Array kept = region(Arrays{held.array, offered.array})[0];
    for (std::size_t o = 0; o < lanes; ++o) {
      if (candidates[o] < 0) continue;
      if (positions[o] < 0 || !load_as<bool>(DType::bool_, kept.raw_data(), static_cast<int64_t>(o)))
        positions[o] = candidates[o];
    }
  } while (next_index(place, window.dimensions));
  return positions;
}

Array scatter_fold(Monoid monoid, const Array& source, const std::vector<int64_t>& positions, const Array& init,
                   const ArrayType& out_type) {
  Output out = allocate(out_type);
  visit_compute(source.dtype(), [&]<class C>(Type<C>) {
    auto values = read_all<C>(source.dtype(), source.raw_data(), source.size());
    Elements<C> totals(out_type.size());  // short sums: rounded at each step, as in XLA
    std::fill(totals.begin(), totals.end(), load_as<C>(init.dtype(), init.raw_data(), 0));
    visit_monoid(monoid, [&]<Monoid M>(MonoidTag<M>) {
      if constexpr (folds<M, C>) {
        for (std::size_t i = 0; i < positions.size(); ++i) {
          if (positions[i] < 0) continue;
          C& total = totals[positions[i]];
          total = combine<M>(total, values[static_cast<int64_t>(i)]);
        }
      }
    });
    store_all<C>(out_type.dtype, out.data, totals);
  });
  return out.array;
}

Arrays select_and_scatter(const KernelArgs& args) {
  const Array &operand = args.inputs[0], &source = args.inputs[1], &init = args.inputs[2];
  Window window = Window::of(args.attrs);
  Region select(args.attrs.program("select_jaxpr")), scatter(args.attrs.program("scatter_jaxpr"));
  const Primitive comparison = recognised_comparison(select.program());
  std::vector<int64_t> positions = !comparison.defined()
                                       ? select_by_region(select, operand, source.shape(), window)
                                       : select_by_comparison(comparison, operand, source.shape(), window);
  const ArrayType& out_type = args.output_types[0];
  if (scatter.monoid()) return {scatter_fold(*scatter.monoid(), source, positions, init, out_type)};
  Output out = allocate(out_type);
  std::memcpy(out.data, repeat(init, out_type.shape).raw_data(),
              static_cast<std::size_t>(out_type.size() * storage_size(out_type.dtype)));
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] < 0) continue;
    Output held = allocate(scalar_type(out_type.dtype)), value = allocate(scalar_type(out_type.dtype));
    copy_element(out.array, positions[i], held.data, 0);
    copy_element(source, static_cast<int64_t>(i), value.data, 0);
    copy_element(scatter(Arrays{held.array, value.array})[0], 0, out.data, positions[i]);
  }
  return {out.array};
}

Arrays select_and_gather_add(const KernelArgs& args) {
  const Array &tangents = args.inputs[0], &operand = args.inputs[1];
  const ArrayType& out_type = args.output_types[0];
  bool greatest = args.attrs.text("select_prim") == "ge";
  Array start = identity_element(greatest ? Monoid::max : Monoid::min, operand.dtype());
  Output out = allocate(out_type);
  std::memset(out.data, 0, static_cast<std::size_t>(out_type.size() * storage_size(out_type.dtype)));
  visit_compute(operand.dtype(), [&]<class C>(Type<C>) {
    if constexpr (!is_complex_number<C>) {
      auto values = read_all<C>(operand.dtype(), operand.raw_data(), operand.size());
      Elements<C> held(out_type.size());
      std::fill(held.begin(), held.end(), load_as<C>(start.dtype(), start.raw_data(), 0));
      for_each_tap(operand.shape(), out_type.shape, Window::of(args.attrs), [&](int64_t i, int64_t o) {
        if (greatest ? held[o] >= values[i] : held[o] <= values[i]) return;
        held[o] = values[i];
        copy_element(tangents, i, out.data, o);
      });
    }
  });
  return {out.array};
}

template <Monoid M>
Arrays cumulative(const KernelArgs& args) {
  return {
      running_fold(M, args.inputs[0], args.attrs.integer("axis"), args.attrs.boolean("reverse"), args.output_types[0])};
}

template <class C>
C log_add_exp(C x, C y) {
  if constexpr (is_complex_number<C>) {
    using R = typename C::value_type;
    C greatest = choose_extreme<true>(x, y);
    C delta = x + y - greatest * R(2);
    C sum = greatest + std::log(R(1) + std::exp(delta));
    R pi = std::numbers::pi_v<R>;
    R rest = std::fmod(sum.imag() + pi, 2 * pi);
    return C(sum.real(), (rest < 0 ? rest + 2 * pi : rest) - pi);
  } else {
    C delta = x - y;
    if (std::isnan(delta)) return x + y;
    return choose_extreme<true>(x, y) + std::log1p(std::exp(-std::fabs(delta)));
  }
}

Arrays cumlogsumexp(const KernelArgs& args) {
  const Array& x = args.inputs[0];
  Output out = allocate(args.output_types[0]);
  if (x.size() == 0) return {out.array};
  int64_t axis = args.attrs.integer("axis"), n = x.shape(axis), inner = 1;
  bool reverse = args.attrs.boolean("reverse");
  for (int64_t d = axis + 1; d < x.ndim(); ++d) inner *= x.shape(d);
  int64_t outer = x.size() / (n * inner);
  visit_compute(x.dtype(), [&]<class C>(Type<C>) {
    if constexpr (std::is_floating_point_v<C> || is_complex_number<C>) {
      Elements<C> values = load_all<C>(x.dtype(), x.raw_data(), x.size());
      int64_t step = reverse ? -inner : inner;
      for (int64_t o = 0; o < outer; ++o) {
        C* row = values.data() + o * n * inner + (reverse ? (n - 1) * inner : 0);
        for (int64_t k = 0; k < inner; ++k) row[k] += C(0);  // folding with log 0 makes -0 become 0
        for (int64_t i = 1; i < n; ++i) {
          C* next = row + step;
          for (int64_t k = 0; k < inner; ++k) next[k] = log_add_exp(row[k], next[k]);
          row = next;
        }
      }
      store_all<C>(x.dtype(), out.data, values);
    }
  });
  return {out.array};
}

}  // namespace

KernelList window_kernels() {
  return {
      {"reduce_window", general_window},
      {"reduce_window_sum", named_window<Monoid::add>},
      {"reduce_window_max", named_window<Monoid::max>},
      {"reduce_window_min", named_window<Monoid::min>},
      {"select_and_scatter", select_and_scatter},
      {"select_and_gather_add", select_and_gather_add},
      {"cumsum", cumulative<Monoid::add>},
      {"cumprod", cumulative<Monoid::mul>},
      {"cummax", cumulative<Monoid::max>},
      {"cummin", cumulative<Monoid::min>},
      {"cumlogsumexp", cumlogsumexp},
  };
}

}  // namespace capibara::reference
