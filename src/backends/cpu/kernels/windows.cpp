// Sliding windows: folds with the known monoids, and the scattering of one value to each window's selected element.
//
// Each result meets the elements of its window in row-major order; padding and dilation are skipped by tables. Vectors
// run along dimensions that the window leaves alone where these are innermost, else along the places of the last
// dimension.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "array/element.h"
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/scratch.h"
#include "backends/cpu/kernels/window_lanes.h"
#include "backends/reference/regions.h"
#include "program/handles.h"
#include "program/window_shape.h"
#include "runtime/thread_pool.h"

namespace capibara::cpu {

namespace {

using reference::combine;
using reference::is_complex_number;

// Where the elements of every window lie. Trailing dimensions that the window leaves alone make one run of neighbours.
struct WindowTaps {
  Shape out;  // without the dimensions of the run
  Ints window;
  std::vector<std::vector<int64_t>>
      taps;                       // by dimension, [place * window + element]: offset into the input, or -1 outside
  std::vector<int64_t> elements;  // [window element][dimension]
  int64_t run = 1, window_size = 1;
  int64_t batches = 1, batch_places = 1, batch_elements = 1;  // leading dimensions that the window leaves alone
  // The last dimension. Where the input is dilated there, places fall into as many phases, each of which is not.
  int64_t stride = 1, dilation = 1, padding = 0, base = 1, extent = 1;
  bool in_phases = false;
  // Of a phase and an element along the last dimension: where it lies for the phase's first place, and for which places
  // it is inside; none where the phase misses it.
  struct Part {
    int64_t place, from, to;
    bool meets;
  };
  std::vector<Part> parts;  // [phase][element]

  WindowTaps(const Shape& in, const Shape& results, const Window& w) {
    auto untouched = [&](std::size_t d) {
      return w.dimensions[d] == 1 && w.strides[d] == 1 && w.base_dilation[d] == 1 &&
             w.padding[d] == std::pair<int64_t, int64_t>{0, 0};
    };
    std::size_t rank = in.size();
    Ints strides = reference::row_major_strides(in);
    while (rank > 0 && untouched(rank - 1)) run *= in[--rank];
    std::size_t leading = 0;
    while (leading < rank && untouched(leading)) batches *= in[leading++];
    for (std::size_t d = 0; d < rank; ++d) {
      out.push_back(results[d]);
      window.push_back(w.dimensions[d]);
      window_size *= w.dimensions[d];
      std::vector<int64_t> table;
      for (int64_t o = 0; o < results[d]; ++o) {
        for (int64_t e = 0; e < w.dimensions[d]; ++e) {
          int64_t position = o * w.strides[d] + e * w.window_dilation[d] - w.padding[d].first,
                  base = w.base_dilation[d];
          bool inside = position >= 0 && position % base == 0 && position / base < in[d];
          table.push_back(inside ? position / base * strides[d] : -1);
        }
      }
      taps.push_back(std::move(table));
    }
    if (window_size != 0) {
      Ints element(rank, 0);
      do elements.insert(elements.end(), element.begin(), element.end());
      while (reference::next_index(element, window));
    }
    if (rank > 0) {
      const std::size_t last = rank - 1;
      stride = w.strides[last];
      dilation = w.window_dilation[last];
      padding = w.padding[last].first;
      base = w.base_dilation[last];
      extent = in[last];
      in_phases = run == 1 && (base == 1 || stride == 1);
      for (int64_t phase = 0; in_phases && phase < base; ++phase) {
        for (int64_t e = 0; e < window[last]; ++e) {
          const int64_t position = phase * stride + e * dilation - padding, places = phase_places(phase);
          const int64_t place = position >= 0 ? position / base : -((-position + base - 1) / base);
          const int64_t from = std::min(places, place >= 0 ? 0 : (-place + step() - 1) / step());
          const int64_t to =
              std::clamp<int64_t>(place >= extent ? 0 : (extent - place + step() - 1) / step(), from, places);
          parts.push_back({place, from, to, place * base == position});
        }
      }
    }
    batches = std::max<int64_t>(batches, 1);
    batch_places = element_count(out) / batches;
    batch_elements = element_count(in) / batches;
  }

  int64_t places() const { return element_count(out); }
  int64_t step() const { return base == 1 ? stride : 1; }  // elements from one place of a phase to the next
  int64_t phase_places(int64_t phase) const { return std::max<int64_t>(0, (row() - phase + base - 1) / base); }
  int64_t row() const { return out.empty() ? 1 : out.back(); }  // places along the last dimension
};

// The windows of one row of places: what the other dimensions add to an offset is looked up once for each window
// element.
class RowTaps {
 public:
  explicit RowTaps(const WindowTaps& taps)
      : taps_(taps), outer_(static_cast<std::size_t>(taps.window_size)), last_(outer_.size()) {
    const std::size_t rank = taps.window.size();
    for (std::size_t e = 0; e < last_.size(); ++e) last_[e] = rank == 0 ? 0 : taps.elements[e * rank + rank - 1];
  }

  void move_to(int64_t row) {
    const std::size_t rank = taps_.window.size();
    int64_t start = 0;
    std::size_t d = rank == 0 ? 0 : rank - 1;
    places_.resize(d);
    for (std::size_t i = d; i-- > 0; row /= taps_.out[i]) places_[i] = row % taps_.out[i];
    // What all elements share: dimensions in which the window has one element.
    for (std::size_t i = 0; i < d; ++i) {
      const int64_t part = taps_.window[i] == 1 ? taps_.taps[i][static_cast<std::size_t>(places_[i])] : 0;
      start = part < 0 || start < 0 ? -1 : start + part;
    }
    std::fill(outer_.begin(), outer_.end(), start);
    for (; start >= 0 && d-- > 0;) {
      if (taps_.window[d] == 1) continue;
      const int64_t* table = taps_.taps[d].data() + places_[d] * taps_.window[d];
      for (std::size_t e = 0; e < outer_.size(); ++e) {
        const int64_t part = table[taps_.elements[e * rank + d]];
        outer_[e] = part < 0 || outer_[e] < 0 ? -1 : outer_[e] + part;
      }
    }
  }
  // The offset of an element of the window at the place `o` of the row; -1 outside.
  int64_t offset(int64_t o, int64_t element) const {
    const auto e = static_cast<std::size_t>(element);
    if (outer_[e] < 0 || taps_.window.empty()) return outer_[e];
    const int64_t part = taps_.taps.back()[static_cast<std::size_t>(o * taps_.window.back() + last_[e])];
    return part < 0 ? -1 : outer_[e] + part;
  }

  int64_t outer(int64_t element) const { return outer_[static_cast<std::size_t>(element)]; }
  int64_t last(int64_t element) const { return last_[static_cast<std::size_t>(element)]; }

 private:
  const WindowTaps& taps_;
  std::vector<int64_t> outer_, last_, places_;
};

// All elements in the compute type, converted once where they are stored otherwise.
template <class C>
const C* as_computed(DType dtype, const std::byte* data, int64_t count, Scratch<C>& hold) {
  if (stored_as<C>(dtype)) return reinterpret_cast<const C*>(data);
  hold = Scratch<C>(count, "converted operand of a window");
  constexpr int64_t chunk = 16384;
  parallel_for_cost((count + chunk - 1) / chunk, chunk * 1.0, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * chunk;
    load_range<C>(dtype, element_address(dtype, static_cast<const void*>(data), first),
                  std::min(end * chunk, count) - first, hold.data() + first);
    return 0;
  });
  return hold.data();
}

// The elements of the windows of one phase of a row: where they lie for the phase's first place, and for which places.
template <class C>
struct PhaseTaps {
  std::vector<const C*> start;
  std::vector<int64_t> from, to;
  int64_t step = 1;  // elements from one place to the next
  int64_t low = 0, high = 0;

  // `places` of the phase. False: no window has an element.
  bool find(const WindowTaps& taps, const RowTaps& row, const C* values, int64_t phase, int64_t places) {
    start.clear();
    from.clear();
    to.clear();
    step = taps.step();
    low = 0;
    high = places;
    const WindowTaps::Part* parts = taps.parts.data() + phase * taps.window.back();
    for (int64_t e = 0; e < taps.window_size; ++e) {
      const WindowTaps::Part& part = parts[row.last(e)];
      if (row.outer(e) < 0 || !part.meets) continue;
      start.push_back(values + row.outer(e) + part.place);
      from.push_back(part.from);
      to.push_back(part.to);
      low = std::max(low, part.from);
      high = std::min(high, part.to);
    }
    low = std::min(low, places);
    high = std::max(low, high);
    return !start.empty();
  }
  // The same for a row that has been folded over the other dimensions already.
  void find_along(const WindowTaps& taps, const C* row) {
    start.clear();
    from.clear();
    to.clear();
    step = taps.step();
    low = 0;
    high = taps.row();
    for (const WindowTaps::Part& part : taps.parts) {
      start.push_back(row + part.place);
      from.push_back(part.from);
      to.push_back(part.to);
      low = std::max(low, part.from);
      high = std::min(high, part.to);
    }
    low = std::min(low, taps.row());
    high = std::max(low, high);
  }
  int64_t count() const { return static_cast<int64_t>(start.size()); }
};

// Folds of one row of places without a run of neighbours.
template <Monoid M, class C>
struct RowFold {
  PhaseTaps<C> phase;
  std::vector<const C*> inside;
  Scratch<C> line;  // one phase of a dilated row, or a row of the input folded over the other dimensions

  // Extremes are the same in every order: the other dimensions first, each column once, not once for every window over
  // it.
  static bool columns_first(const WindowTaps& taps) {
    return (M == Monoid::max || M == Monoid::min) && !is_complex_number<C> && taps.base == 1 &&
           taps.window.back() > 1 && taps.stride <= taps.window.back() && taps.window_size > taps.window.back();
  }

  void operator()(const WindowTaps& taps, const RowTaps& row, const C* values, C initial, C* out) {
    for (int64_t p = 0; p < std::min(taps.base, taps.row()); ++p) {
      const int64_t places = taps.phase_places(p);
      if (taps.base != 1 && !line.data()) line = Scratch<C>(taps.row(), "places of a window");
      C* target = taps.base == 1 ? out : line.data();
      bool some;
      if (columns_first(taps)) {
        inside.clear();
        for (int64_t e = 0; e < taps.window_size; e += taps.window.back()) {
          if (row.outer(e) >= 0) inside.push_back(values + row.outer(e));
        }
        some = !inside.empty();
        if (!line.data()) line = Scratch<C>(taps.extent, "a row of a window");
        if (some) {
          fold_windows<M, C>(inside.data(), static_cast<int64_t>(inside.size()), initial, 1, line.data(), taps.extent);
          phase.find_along(taps, line.data());
        }
      } else {
        some = phase.find(taps, row, values, p, places);
      }
      if (!some) {
        std::fill_n(target, places, initial);
      } else {
        auto at_the_edge = [&](int64_t begin, int64_t end) {
          for (int64_t o = begin; o < end; ++o) {
            C total = initial;
            for (std::size_t e = 0; e < phase.start.size(); ++e) {
              if (o >= phase.from[e] && o < phase.to[e]) total = combine<M>(total, phase.start[e][o * phase.step]);
            }
            target[o] = total;
          }
        };
        at_the_edge(0, phase.low);
        inside.clear();
        for (const C* start : phase.start) inside.push_back(start + phase.low * phase.step);
        fold_windows<M, C>(inside.data(), phase.count(), initial, phase.step, target + phase.low,
                           phase.high - phase.low);
        at_the_edge(phase.high, places);
      }
      if (taps.base != 1) {
        for (int64_t o = 0; o < places; ++o) out[p + o * taps.base] = target[o];
      }
    }
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

// The folds begin with the second input, or with the monoid's identity.
HostKernel make_fold(const KernelRequest& request, Monoid monoid, bool has_initial) {
  const ArrayType &x = request.inputs[0], &out = request.outputs[0];
  Window window = Window::of(request.attrs);
  if (out.size() == 0 || x.size() == 0 || is_running(x.shape, window)) return {};
  auto taps = std::make_shared<WindowTaps>(x.shape, out.shape, window);
  const DType dtype = x.dtype;
  const int64_t count = x.size();
  Array identity = has_initial ? Array() : identity_element(monoid, dtype);
  HostKernel kernel;
  visit_compute(dtype, [&]<class C>(Type<C>) {
    reference::visit_monoid(monoid, [&]<Monoid M>(reference::MonoidTag<M>) {
      if constexpr (reference::folds<M, C>) {
        kernel = [=](std::byte* const* buffers) {
          Scratch<C> hold;
          const C* values = as_computed<C>(dtype, buffers[0], count, hold);
          std::byte* target = buffers[has_initial ? 2 : 1];
          const C initial = load_as<C>(dtype, has_initial ? buffers[1] : identity.raw_data(), 0);
          const int64_t run = taps->run;
          const int64_t row = taps->row();
          const double cost = static_cast<double>(taps->window_size * row) * (0.5 + 0.3 * static_cast<double>(run));
          const bool in_place = stored_as<C>(dtype);
          parallel_for_cost(taps->places() / row, cost, [&](int64_t begin, int64_t end) {
            Scratch<C> totals;
            if (!in_place) totals = Scratch<C>(row * run, "totals of a window");
            RowTaps windows(*taps);
            RowFold<M, C> fold_row;
            std::vector<const C*> elements(static_cast<std::size_t>(taps->window_size));
            for (int64_t r = begin; r < end; ++r) {
              C* out_row = in_place ? reinterpret_cast<C*>(target) + r * row * run : totals.data();
              windows.move_to(r);
              if (taps->in_phases) {
                fold_row(*taps, windows, values, initial, out_row);
              } else {
                for (int64_t o = 0; o < row; ++o) {
                  std::size_t count = 0;
                  for (int64_t e = 0; e < taps->window_size; ++e) {
                    const int64_t offset = windows.offset(o, e);
                    if (offset >= 0) elements[count++] = values + offset;
                  }
                  fold_in_lanes<M, C, 1>(elements.data(), static_cast<int64_t>(count), initial, 1, out_row + o * run,
                                         run);
                }
              }
              if (!in_place)
                store_range<C>(dtype, element_address(dtype, static_cast<void*>(target), r * row * run), row * run,
                               totals.data());
            }
            return 0;
          });
        };
      }
    });
  });
  return kernel;
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

// The comparison that a region makes between its two inputs, in their order.
std::optional<Keeps> recognise_comparison(const Program& region) {
  if (region.equations().size() != 1 || region.invars().size() != 2 || region.outputs().size() != 1)
    return std::nullopt;
  const Equation& equation = region.equations()[0];
  if (equation.inputs.size() != 2 || equation.inputs[0] != Atom(region.invars()[0]) ||
      equation.inputs[1] != Atom(region.invars()[1]) || region.outputs()[0] != Atom(equation.outputs[0])) {
    return std::nullopt;
  }
  static const std::pair<Primitive, Keeps> rows[] = {
      {prim::ge(), Keeps::ge}, {prim::le(), Keeps::le},
      {prim::gt(), Keeps::gt}, {prim::lt(), Keeps::lt}};
  for (const auto& [primitive, keeps] : rows) {
    if (equation.primitive == primitive) return keeps;
  }
  return std::nullopt;
}

template <class F>
void visit_keeps(Keeps keeps, F&& f) {
  switch (keeps) {
    case Keeps::ge:
      return f(std::integral_constant<Keeps, Keeps::ge>());
    case Keeps::le:
      return f(std::integral_constant<Keeps, Keeps::le>());
    case Keeps::gt:
      return f(std::integral_constant<Keeps, Keeps::gt>());
    default:
      return f(std::integral_constant<Keeps, Keeps::lt>());
  }
}

// One value for each place of a row without a run of neighbours, added to the element that its window selects.
template <Keeps K, Monoid M, class C>
struct RowScatter {
  PhaseTaps<C> phase;
  std::vector<const C*> inside;
  std::vector<std::int32_t> chosen;

  void operator()(const WindowTaps& taps, const RowTaps& row, const C* values, const C* updates, C* totals) {
    const int64_t places = taps.row();
    if (!phase.find(taps, row, values, 0, places)) return;
    auto add = [&](int64_t o, std::size_t e) {
      C& total = totals[phase.start[e] + o * phase.step - values];
      total = combine<M>(total, updates[o]);
    };
    auto one = [&](int64_t o) {
      std::ptrdiff_t held = -1;
      for (std::size_t e = 0; e < phase.start.size(); ++e) {
        if (o < phase.from[e] || o >= phase.to[e]) continue;
        if (held < 0 ||
            !keeps_held<K>(phase.start[static_cast<std::size_t>(held)][o * phase.step], phase.start[e][o * phase.step]))
          held = static_cast<std::ptrdiff_t>(e);
      }
      if (held >= 0) add(o, static_cast<std::size_t>(held));
    };
    int64_t o = 0;
    for (; o < phase.low; ++o) one(o);
    inside.clear();
    for (const C* start : phase.start) inside.push_back(start + phase.low * phase.step);
    chosen.resize(static_cast<std::size_t>(places));
    const int64_t count = phase.high - phase.low;
    int64_t done = 0;
    if (phase.step == 1)
      done = choose_in_lanes<K, C, 1>(inside.data(), phase.count(), chosen.data(), count);
    else if (phase.step == 2)
      done = choose_in_lanes<K, C, 2>(inside.data(), phase.count(), chosen.data(), count);
    for (int64_t i = 0; i < done; ++i, ++o) add(o, static_cast<std::size_t>(chosen[static_cast<std::size_t>(i)]));
    for (; o < places; ++o) one(o);
  }
};

HostKernel make_select_and_scatter(const KernelRequest& request) {
  const ArrayType &operand = request.inputs[0], &source = request.inputs[1], &out = request.outputs[0];
  std::optional<Keeps> keeps = recognise_comparison(request.attrs.program("select_jaxpr"));
  std::optional<Monoid> monoid = recognise_monoid(request.attrs.program("scatter_jaxpr"));
  // Anything but a sum is rare.
  if (!keeps || !monoid || *monoid != Monoid::add || is_complex(operand.dtype) || operand.dtype != source.dtype ||
      out.size() == 0)
    return {};
  auto taps = std::make_shared<WindowTaps>(operand.shape, source.shape, Window::of(request.attrs));
  const DType dtype = operand.dtype;
  const int64_t count = out.size(), sources = source.size();
  HostKernel kernel;
  visit_compute(dtype, [&]<class C>(Type<C>) {
    constexpr Monoid M = Monoid::add;
    if constexpr (!is_complex_number<C>) {
      kernel = [=](std::byte* const* buffers) {
        Scratch<C> hold, source_hold, totals_hold;
        const C* values = as_computed<C>(dtype, buffers[0], count, hold);
        const C* updates = as_computed<C>(dtype, buffers[1], sources, source_hold);
        C* totals = reinterpret_cast<C*>(buffers[3]);
        if (!stored_as<C>(dtype)) totals = (totals_hold = Scratch<C>(count, "totals of a window")).data();
        const C initial = load_as<C>(dtype, buffers[2], 0);
        const int64_t run = taps->run;
        const double cost = static_cast<double>(taps->batch_places * taps->window_size * run) * 3;
        // Windows of different batches never meet; those of one batch write in order.
        parallel_for_cost(taps->batches, cost, [&](int64_t begin, int64_t end) {
          RowTaps windows(*taps);
          const int64_t row = taps->row();
          visit_keeps(*keeps, [&]<Keeps K>(std::integral_constant<Keeps, K>) {
            RowScatter<K, M, C> scatter_row;
            std::vector<const C*> elements;
            std::vector<C*> targets;
            for (int64_t b = begin; b < end; ++b) {
              std::fill_n(totals + b * taps->batch_elements, taps->batch_elements, initial);
              for (int64_t place = b * taps->batch_places; place < (b + 1) * taps->batch_places; place += row) {
                windows.move_to(place / row);
                if (taps->in_phases) {
                  scatter_row(*taps, windows, values, updates + place, totals);
                  continue;
                }
                for (int64_t o = 0; o < row; ++o) {
                  elements.clear();
                  targets.clear();
                  for (int64_t e = 0; e < taps->window_size; ++e) {
                    const int64_t offset = windows.offset(o, e);
                    if (offset < 0) continue;
                    elements.push_back(values + offset);
                    targets.push_back(totals + offset);
                  }
                  if (!elements.empty()) {
                    select_and_add<K, M, C>(elements.data(), targets.data(), static_cast<int64_t>(elements.size()),
                                            updates + (place + o) * run, run);
                  }
                }
              }
            }
          });
          return 0;
        });
        if (!stored_as<C>(dtype)) store_range<C>(dtype, buffers[3], count, totals);
      };
    }
  });
  return kernel;
}

}  // namespace

KernelMakers window_makers() {
  return {{"reduce_window", make_reduce_window},
          {"reduce_window_sum", make_named_fold<Monoid::add>},
          {"reduce_window_max", make_named_fold<Monoid::max>},
          {"reduce_window_min", make_named_fold<Monoid::min>},
          {"select_and_scatter", make_select_and_scatter}};
}

}  // namespace capibara::cpu
