// select_and_scatter: one value for each window, added to the element that the window selects.
//
// Windows are visited in row-major order. Vectors run along dimensions that the window does not span where these
// are innermost, else along the output positions of the last dimension.
#include <algorithm>
#include <memory>
#include <optional>

#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/window/pooling_gradient.h"
#include "backends/cpu/kernels/window/window_lanes.h"
#include "backends/cpu/kernels/window/window_taps.h"
#include "program/ir/handles.h"

// Vectorised windows: selects one element in each of several adjacent windows.

namespace capibara::cpu {

// When a comparison `held ? candidate` keeps the held element.
enum class Keeps { ge, le, gt, lt };

template <Keeps K, class X>
inline __attribute__((always_inline)) auto keeps_held(X held, X candidate) {
  if constexpr (K == Keeps::ge)
    return held >= candidate;
  else if constexpr (K == Keeps::le)
    return held <= candidate;
  else if constexpr (K == Keeps::gt)
    return held > candidate;
  else
    return held < candidate;
}

// Index of the chosen tap for `count` adjacent windows, Stride elements apart. Returns the number of windows done.
template <Keeps K, class C, int Stride>
inline int64_t choose_in_lanes(const C* const* taps, int64_t tap_count, std::int32_t* chosen, int64_t count) {
  int64_t i = 0;
  if constexpr (has_lanes<C>) {
    using L = Lanes<C>;
    if (tap_count > 127) return 0;  // tap indices must fit the lanes
    for (; i + L::count + (Stride - 1) <= count; i += L::count) {
      typename L::V held = L::template load<Stride>(taps[0] + i * Stride);
      typename L::Mask which = {};
      for (int64_t e = 1; e < tap_count; ++e) {
        const typename L::V next = L::template load<Stride>(taps[e] + i * Stride);
        const auto keep = keeps_held<K>(held, next);
        held = keep ? held : next;
        which = keep ? which : typename L::Mask{} + static_cast<typename L::Integer>(e);
      }
#pragma GCC unroll 16
      for (int l = 0; l < L::count; ++l) chosen[i + l] = static_cast<std::int32_t>(which[l]);
    }
  }
  return i;
}

// The same for all of `count` windows, for any stride.
template <Keeps K, class C>
void choose_windows(const C* const* taps, int64_t tap_count, int64_t stride, std::int32_t* chosen, int64_t count) {
  int64_t i = 0;
  if (stride == 1)
    i = choose_in_lanes<K, C, 1>(taps, tap_count, chosen, count);
  else if (stride == 2)
    i = choose_in_lanes<K, C, 2>(taps, tap_count, chosen, count);
  for (; i < count; ++i) {
    std::int32_t held = 0;
    for (int64_t e = 1; e < tap_count; ++e) {
      if (!keeps_held<K>(taps[held][i * stride], taps[e][i * stride])) held = static_cast<std::int32_t>(e);
    }
    chosen[i] = held;
  }
}

// For `count` contiguous elements: the choice among taps[e][i] decides to which targets[e][i] update[i] is added.
template <Keeps K, Monoid M, class C>
void select_and_add(const C* const* taps, C* const* targets, int64_t tap_count, const C* update, int64_t count) {
  int64_t i = 0;
  if constexpr (has_lanes<C>) {
    using L = Lanes<C>;
    for (; tap_count <= 127 && i + L::count <= count; i += L::count) {
      typename L::V held = L::template load<1>(taps[0] + i);
      typename L::Mask which = {};
      for (int64_t e = 1; e < tap_count; ++e) {
        const typename L::V next = L::template load<1>(taps[e] + i);
        const auto keep = keeps_held<K>(held, next);
        held = keep ? held : next;
        which = keep ? which : typename L::Mask{} + static_cast<typename L::Integer>(e);
      }
      const typename L::V own = L::template load<1>(update + i);
      for (int64_t e = 0; e < tap_count; ++e) {
        const typename L::V before = L::template load<1>(targets[e] + i);
        L::store(targets[e] + i, which == typename L::Mask{} + static_cast<typename L::Integer>(e)
                                     ? L::template combine<M>(before, own)
                                     : before);
      }
    }
  }
  for (; i < count; ++i) {
    int64_t which = 0;
    for (int64_t e = 1; e < tap_count; ++e) {
      if (!keeps_held<K>(taps[which][i], taps[e][i])) which = e;
    }
    targets[which][i] = reference::combine<M>(targets[which][i], update[i]);
  }
}

namespace {

// The comparison that a region applies to its two inputs, in order.
std::optional<Keeps> recognise_comparison(const Program& region) {
  if (region.equations().size() != 1 || region.invars().size() != 2 || region.outputs().size() != 1)
    return std::nullopt;
  const Equation& equation = region.equations()[0];
  if (equation.inputs.size() != 2 || equation.inputs[0] != Atom(region.invars()[0]) ||
      equation.inputs[1] != Atom(region.invars()[1]) || region.outputs()[0] != Atom(equation.outputs[0])) {
    return std::nullopt;
  }
  static const std::pair<Primitive, Keeps> rows[] = {
      {prim::ge(), Keeps::ge}, {prim::le(), Keeps::le}, {prim::gt(), Keeps::gt}, {prim::lt(), Keeps::lt}};
  for (const auto& [primitive, keeps] : rows) {
    if (equation.primitive == primitive) return keeps;
  }
  return std::nullopt;
}

// The functions compiled for each comparison and type.
template <class C>
struct Choosing {
  // Index of the chosen tap for `count` adjacent windows, `stride` elements apart.
  void (*choose)(const C* const* taps, int64_t tap_count, int64_t stride, std::int32_t* chosen, int64_t count);
  // For `count` contiguous elements: the choice among taps[e][i] decides to which targets[e][i] update[i] is added.
  void (*add)(const C* const* taps, C* const* targets, int64_t tap_count, const C* update, int64_t count);
};

template <class C>
Choosing<C> selection_of(Keeps keeps) {
  switch (keeps) {
    case Keeps::ge:
      return {choose_windows<Keeps::ge, C>, select_and_add<Keeps::ge, Monoid::add, C>};
    case Keeps::le:
      return {choose_windows<Keeps::le, C>, select_and_add<Keeps::le, Monoid::add, C>};
    case Keeps::gt:
      return {choose_windows<Keeps::gt, C>, select_and_add<Keeps::gt, Monoid::add, C>};
    default:
      return {choose_windows<Keeps::lt, C>, select_and_add<Keeps::lt, Monoid::add, C>};
  }
}

// Adds one value for each position of a row, without a contiguous run, to the element that its window selects.
template <class C>
struct RowScatter {
  Choosing<C> selection;
  PhaseTaps<C> phase = {};
  std::vector<const C*> inside = {};
  std::vector<std::size_t> numbers = {};  // of the taps in bounds
  std::vector<std::int32_t> chosen = {};

  void operator()(const WindowTaps& taps, const RowTaps& row, const C* values, const C* updates, C* totals) {
    const int64_t places = taps.row();
    if (!phase.find(taps, row, values, 0, places)) return;
    auto add = [&](int64_t o, std::size_t e) {
      C& total = totals[phase.start[e] + o * phase.step - values];
      total = reference::combine<Monoid::add>(total, updates[o]);
    };
    auto at_the_edge = [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        inside.clear();
        numbers.clear();
        for (std::size_t e = 0; e < phase.start.size(); ++e) {
          if (o < phase.from[e] || o >= phase.to[e]) continue;
          inside.push_back(phase.start[e] + o * phase.step);
          numbers.push_back(e);
        }
        if (inside.empty()) continue;
        std::int32_t held = 0;
        selection.choose(inside.data(), static_cast<int64_t>(inside.size()), 1, &held, 1);
        add(o, numbers[static_cast<std::size_t>(held)]);
      }
    };
    at_the_edge(0, phase.low);
    inside.clear();
    for (const C* start : phase.start) inside.push_back(start + phase.low * phase.step);
    chosen.resize(static_cast<std::size_t>(places));
    selection.choose(inside.data(), phase.count(), phase.step, chosen.data(), phase.high - phase.low);
    for (int64_t o = phase.low; o < phase.high; ++o)
      add(o, static_cast<std::size_t>(chosen[static_cast<std::size_t>(o - phase.low)]));
    at_the_edge(phase.high, places);
  }
};

// The windows of some batches, in order.
template <class C>
void scatter_batches(const WindowTaps& taps, const Choosing<C>& selection, const C* values, const C* updates, C initial,
                     C* totals, int64_t begin, int64_t end) {
  RowTaps windows(taps);
  RowScatter<C> scatter_row{selection};
  std::vector<const C*> elements;
  std::vector<C*> targets;
  const int64_t row = taps.row(), run = taps.run;
  for (int64_t b = begin; b < end; ++b) {
    std::fill_n(totals + b * taps.batch_elements, taps.batch_elements, initial);
    for (int64_t place = b * taps.batch_places; place < (b + 1) * taps.batch_places; place += row) {
      windows.move_to(place / row);
      if (taps.in_phases) {
        scatter_row(taps, windows, values, updates + place, totals);
        continue;
      }
      for (int64_t o = 0; o < row; ++o) {
        elements.clear();
        targets.clear();
        for (int64_t e = 0; e < taps.window_size; ++e) {
          const int64_t offset = windows.offset(o, e);
          if (offset < 0) continue;
          elements.push_back(values + offset);
          targets.push_back(totals + offset);
        }
        if (elements.empty()) continue;
        selection.add(elements.data(), targets.data(), static_cast<int64_t>(elements.size()),
                      updates + (place + o) * run, run);
      }
    }
  }
}

HostKernel make_select_and_scatter(const KernelRequest& request) {
  const ArrayType &operand = request.inputs[0], &source = request.inputs[1], &out = request.outputs[0];
  std::optional<Keeps> keeps = recognise_comparison(request.attrs.program("select_jaxpr"));
  std::optional<Monoid> monoid = recognise_monoid(request.attrs.program("scatter_jaxpr"));
  // Anything but a sum is rare and left to the reference kernel.
  if (!keeps || !monoid || *monoid != Monoid::add || is_complex(operand.dtype) || operand.dtype != source.dtype ||
      out.size() == 0)
    return {};
  auto taps = std::make_shared<WindowTaps>(operand.shape, source.shape, Window::of(request.attrs));
  const DType dtype = operand.dtype;
  const int64_t count = out.size(), sources = source.size();
  return visit_compute(dtype, [&]<class C>(Type<C>) -> HostKernel {
    if constexpr (is_complex_number<C>) {
      return {};
    } else {
      return [=, selection = selection_of<C>(*keeps)](std::byte* const* buffers) {
        const bool stored = stored_as<C>(dtype);
        Scratch<C> hold, source_hold, totals_hold;
        const C* values = as_computed<C>(dtype, stored, buffers[0], count, hold);
        const C* updates = as_computed<C>(dtype, stored, buffers[1], sources, source_hold);
        C* totals = reinterpret_cast<C*>(buffers[3]);
        if (!stored) totals = (totals_hold = Scratch<C>(count, "totals of a window")).data();
        const C initial = load_as<C>(dtype, buffers[2], 0);
        const double cost = static_cast<double>(taps->batch_places * taps->window_size * taps->run) * 3;
        // Windows of different batches never overlap; those of one batch write in order.
        parallel_for_cost(taps->batches, cost, [&](int64_t begin, int64_t end) {
          scatter_batches(*taps, selection, values, updates, initial, totals, begin, end);
          return 0;
        });
        if (!stored) store_range<C>(dtype, buffers[3], count, totals);
      };
    }
  });
}

}  // namespace

KernelMakers select_and_scatter_makers() {
  return {{"select_and_scatter", make_select_and_scatter}, {"select_and_scatter_add", make_pooling_gradient}};
}

}  // namespace capibara::cpu
