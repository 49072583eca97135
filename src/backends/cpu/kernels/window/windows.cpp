// Sliding windows folded with the known monoids.
//
// Each result folds the elements of its window in row-major order; padding and dilation are skipped by tables. Vectors
// run along dimensions that the window does not span where these are innermost, else along the positions of the last
// dimension.
#include <algorithm>
#include <memory>
#include <optional>

#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/window/window_lanes.h"
#include "backends/cpu/kernels/window/window_taps.h"
#include "backends/cpu/kernels/without_sign.h"

namespace capibara::cpu {

namespace {

// out[i] = initial combined with taps[e][i * stride] for every e in order, i in [0, count): the only code compiled for
// each monoid and type.
template <class C>
using Fold = void (*)(const C* const* taps, int64_t tap_count, C initial, int64_t stride, C* out, int64_t count);

bool is_extreme(Monoid monoid) { return monoid == Monoid::max || monoid == Monoid::min; }

// Folds one row of positions without a contiguous run.
template <class C>
struct RowFold {
  Fold<C> fold;
  bool extreme;
  PhaseTaps<C> phase = {};
  std::vector<const C*> inside = {};
  Scratch<C> line = {};  // one phase of a dilated row, or a row of the input folded over the other dimensions

  // Extremes do not depend on the order: the other dimensions can be folded first, each column once rather than once
  // per window over it.
  bool columns_first(const WindowTaps& taps) const {
    return extreme && !is_complex_number<C> && taps.base == 1 && taps.window.back() > 1 &&
           taps.stride <= taps.window.back() && taps.window_size > taps.window.back();
  }

  void operator()(const WindowTaps& taps, const RowTaps& row, const C* values, C initial, C* out) {
    for (int64_t p = 0; p < std::min(taps.base, taps.row()); ++p) {
      const int64_t places = taps.phase_places(p);
      if (taps.base != 1 && !line.data()) line = Scratch<C>(taps.row(), "places of a window");
      C* target = taps.base == 1 ? out : line.data();
      if (find(taps, row, values, initial, p, places))
        fold_phase(initial, places, target);
      else
        std::fill_n(target, places, initial);
      if (taps.base != 1) {
        for (int64_t o = 0; o < places; ++o) out[p + o * taps.base] = target[o];
      }
    }
  }

 private:
  // Finds the elements of a phase's windows; false if there are none.
  bool find(const WindowTaps& taps, const RowTaps& row, const C* values, C initial, int64_t number, int64_t places) {
    if (!columns_first(taps)) return phase.find(taps, row, values, number, places);
    inside.clear();
    for (int64_t e = 0; e < taps.window_size; e += taps.window.back()) {
      if (row.outer(e) >= 0) inside.push_back(values + row.outer(e));
    }
    if (!line.data()) line = Scratch<C>(taps.extent, "a row of a window");
    if (inside.empty()) return false;
    fold(inside.data(), static_cast<int64_t>(inside.size()), initial, 1, line.data(), taps.extent);
    phase.find_along(taps, line.data());
    return true;
  }

  void fold_phase(C initial, int64_t places, C* target) {
    auto at_the_edge = [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        inside.clear();
        for (std::size_t e = 0; e < phase.start.size(); ++e) {
          if (o >= phase.from[e] && o < phase.to[e]) inside.push_back(phase.start[e] + o * phase.step);
        }
        fold(inside.data(), static_cast<int64_t>(inside.size()), initial, 1, target + o, 1);
      }
    };
    at_the_edge(0, phase.low);
    inside.clear();
    for (const C* start : phase.start) inside.push_back(start + phase.low * phase.step);
    fold(inside.data(), phase.count(), initial, phase.step, target + phase.low, phase.high - phase.low);
    at_the_edge(phase.high, places);
  }
};

// A window as long as its axis, padded by all but one: a cumulative operation, which the reference kernel does in O(n).
bool is_running(const Shape& in, const Window& window) {
  for (std::size_t d = 0; d < in.size(); ++d) {
    if (window.dimensions[d] > 1 && window.dimensions[d] == in[d] &&
        window.padding[d].first + window.padding[d].second == in[d] - 1)
      return true;
  }
  return false;
}

// Parameters of a fold. Its initial value is the second input, or the monoid's identity.
struct FoldRequest {
  std::shared_ptr<const WindowTaps> taps;
  DType dtype;
  bool stored, extreme, has_initial;
  int64_t count;  // of the input
  Array identity;
};

// Computes in C; if `stored`, the buffers hold elements of that type.
template <class C>
HostKernel fold_kernel(const FoldRequest& request, Fold<C> fold) {
  return [request, fold](std::byte* const* buffers) {
    const WindowTaps& taps = *request.taps;
    const DType dtype = request.dtype;
    Scratch<C> hold;
    const C* values = as_computed<C>(dtype, request.stored, buffers[0], request.count, hold);
    std::byte* target = buffers[request.has_initial ? 2 : 1];
    const C initial = load_as<C>(dtype, request.has_initial ? buffers[1] : request.identity.raw_data(), 0);
    const int64_t run = taps.run, row = taps.row();
    const double cost = static_cast<double>(taps.window_size * row) * (0.5 + 0.3 * static_cast<double>(run));
    parallel_for_cost(taps.places() / row, cost, [&](int64_t begin, int64_t end) {
      Scratch<C> totals;
      if (!request.stored) totals = Scratch<C>(row * run, "totals of a window");
      RowTaps windows(taps);
      RowFold<C> fold_row{fold, request.extreme};
      std::vector<const C*> elements(static_cast<std::size_t>(taps.window_size));
      for (int64_t r = begin; r < end; ++r) {
        C* out_row = request.stored ? reinterpret_cast<C*>(target) + r * row * run : totals.data();
        windows.move_to(r);
        if (taps.in_phases) {
          fold_row(taps, windows, values, initial, out_row);
        } else {
          for (int64_t o = 0; o < row; ++o) {
            std::size_t count = 0;
            for (int64_t e = 0; e < taps.window_size; ++e) {
              const int64_t offset = windows.offset(o, e);
              if (offset >= 0) elements[count++] = values + offset;
            }
            fold(elements.data(), static_cast<int64_t>(count), initial, 1, out_row + o * run, run);
          }
        }
        if (request.stored) continue;
        void* out = element_address(dtype, static_cast<void*>(target), r * row * run);
        store_range<C>(dtype, out, row * run, totals.data());
      }
      return 0;
    });
  };
}

template <Monoid M, class C>
HostKernel fold_kernel(const FoldRequest& request) {
  if constexpr (reference::folds<M, C>) {
    using Own = std::conditional_t<M == Monoid::max || M == Monoid::min, C, WithoutSign<C>>;
    return fold_kernel<Own>(request, fold_windows<M, Own>);
  } else {
    return {};
  }
}

HostKernel make_fold(const KernelRequest& request, Monoid monoid, bool has_initial) {
  const ArrayType &x = request.inputs[0], &out = request.outputs[0];
  Window window = Window::of(request.attrs);
  if (out.size() == 0 || x.size() == 0 || is_running(x.shape, window)) return {};
  FoldRequest fold{std::make_shared<WindowTaps>(x.shape, out.shape, window),
                   x.dtype,
                   false,
                   is_extreme(monoid),
                   has_initial,
                   x.size(),
                   has_initial ? Array() : identity_element(monoid, x.dtype)};
  return visit_compute(x.dtype, [&]<class C>(Type<C>) {
    fold.stored = stored_as<C>(x.dtype);
    return reference::visit_monoid(monoid, [&]<Monoid M>(reference::MonoidTag<M>) { return fold_kernel<M, C>(fold); });
  });
}

template <Monoid M>
HostKernel make_named_fold(const KernelRequest& request) {
  return make_fold(request, M, false);
}

HostKernel make_reduce_window(const KernelRequest& request) {
  if (request.inputs.size() != 2) return {};
  std::optional<Monoid> monoid = recognise_monoid(request.attrs.program("jaxpr"));
  return monoid ? make_fold(request, *monoid, true) : HostKernel();
}

}  // namespace

KernelMakers window_makers() {
  return {{"reduce_window", make_reduce_window},
          {"reduce_window_sum", make_named_fold<Monoid::add>},
          {"reduce_window_max", make_named_fold<Monoid::max>},
          {"reduce_window_min", make_named_fold<Monoid::min>}};
}

}  // namespace capibara::cpu
