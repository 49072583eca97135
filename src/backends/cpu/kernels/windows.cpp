// Sliding windows: folds with the known monoids, and the scattering of one value to each window's selected element.
//
// Each result meets the elements of its window in row-major order; padding and dilation are skipped by tables.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "array/element.h"
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/scratch.h"
#include "backends/reference/regions.h"
#include "primitives/window_shape.h"
#include "runtime/thread_pool.h"

namespace capibara::cpu {

namespace {

using reference::combine;
using reference::is_complex_number;

// Where the elements of every window lie. Trailing dimensions that the window leaves alone make one run of neighbours.
struct WindowTaps {
  Shape out;                               // without the dimensions of the run
  Ints window;
  std::vector<std::vector<int64_t>> taps;  // by dimension, [place * window + element]: offset into the input, or -1 outside
  std::vector<int64_t> elements;           // [window element][dimension]
  int64_t run = 1, window_size = 1;
  int64_t batches = 1, batch_places = 1, batch_elements = 1;  // leading dimensions that the window leaves alone

  WindowTaps(const Shape& in, const Shape& results, const Window& w) {
    auto untouched = [&](std::size_t d) {
      return w.dimensions[d] == 1 && w.strides[d] == 1 && w.base_dilation[d] == 1 && w.padding[d] == std::pair<int64_t, int64_t>{0, 0};
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
          int64_t position = o * w.strides[d] + e * w.window_dilation[d] - w.padding[d].first, base = w.base_dilation[d];
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
    batches = std::max<int64_t>(batches, 1);
    batch_places = element_count(out) / batches;
    batch_elements = element_count(in) / batches;
  }

  int64_t places() const { return element_count(out); }
  int64_t row() const { return out.empty() ? 1 : out.back(); }  // places along the last dimension
};

// The windows of one row of places: what the other dimensions add to an offset is looked up once for each window element.
class RowTaps {
 public:
  explicit RowTaps(const WindowTaps& taps) : taps_(taps), outer_(static_cast<std::size_t>(taps.window_size)), last_(outer_.size()) {
    const std::size_t rank = taps.window.size();
    for (std::size_t e = 0; e < last_.size(); ++e) last_[e] = rank == 0 ? 0 : taps.elements[e * rank + rank - 1];
  }

  void move_to(int64_t row) {
    const std::size_t rank = taps_.window.size();
    std::fill(outer_.begin(), outer_.end(), 0);
    for (std::size_t d = rank == 0 ? 0 : rank - 1; d-- > 0; row /= taps_.out[d]) {
      const int64_t* table = taps_.taps[d].data() + row % taps_.out[d] * taps_.window[d];
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

 private:
  const WindowTaps& taps_;
  std::vector<int64_t> outer_, last_;
};

// All elements in the compute type, converted once where they are stored otherwise.
template <class C>
const C* as_computed(DType dtype, const std::byte* data, int64_t count, Scratch<C>& hold) {
  if (stored_as<C>(dtype)) return reinterpret_cast<const C*>(data);
  hold = Scratch<C>(count, "converted operand of a window");
  load_range<C>(dtype, data, count, hold.data());
  return hold.data();
}

// A window as long as its axis, padded by all but one: a cumulative operation, which the reference kernel does in O(n).
bool is_running(const Shape& in, const Window& window) {
  for (std::size_t d = 0; d < in.size(); ++d) {
    if (window.dimensions[d] > 1 && window.dimensions[d] == in[d] && window.padding[d].first + window.padding[d].second == in[d] - 1) return true;
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
          const double cost = static_cast<double>(taps->window_size * row) * (1.5 + static_cast<double>(run));
          parallel_for_cost(taps->places() / row, cost, [&](int64_t begin, int64_t end) {
            Scratch<C> totals(row * run, "totals of a window");
            RowTaps windows(*taps);
            for (int64_t r = begin; r < end; ++r) {
              windows.move_to(r);
              std::fill_n(totals.data(), row * run, initial);
              for (int64_t e = 0; e < taps->window_size; ++e) {
                for (int64_t o = 0; o < row; ++o) {
                  const int64_t offset = windows.offset(o, e);
                  if (offset < 0) continue;
                  const C* element = values + offset;
                  C* total = totals.data() + o * run;
                  for (int64_t i = 0; i < run; ++i) total[i] = combine<M>(total[i], element[i]);
                }
              }
              store_range<C>(dtype, target + r * row * run * storage_size(dtype), row * run, totals.data());
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

enum class Keeps { ge, le, gt, lt };

// The comparison that a region makes between its two inputs, in their order.
std::optional<Keeps> recognise_comparison(const Program& region) {
  if (region.equations().size() != 1 || region.invars().size() != 2 || region.outputs().size() != 1) return std::nullopt;
  const Equation& equation = region.equations()[0];
  if (equation.inputs.size() != 2 || equation.inputs[0] != Atom(region.invars()[0]) || equation.inputs[1] != Atom(region.invars()[1]) ||
      region.outputs()[0] != Atom(equation.outputs[0])) {
    return std::nullopt;
  }
  static constexpr std::pair<const char*, Keeps> names[] = {{"ge", Keeps::ge}, {"le", Keeps::le}, {"gt", Keeps::gt}, {"lt", Keeps::lt}};
  for (const auto& [name, keeps] : names) {
    if (equation.primitive.is(name)) return keeps;
  }
  return std::nullopt;
}

template <class C>
bool keeps_held(Keeps keeps, C held, C candidate) {
  switch (keeps) {
    case Keeps::ge: return held >= candidate;
    case Keeps::le: return held <= candidate;
    case Keeps::gt: return held > candidate;
    default: return held < candidate;
  }
}

HostKernel make_select_and_scatter(const KernelRequest& request) {
  const ArrayType &operand = request.inputs[0], &source = request.inputs[1], &out = request.outputs[0];
  std::optional<Keeps> keeps = recognise_comparison(request.attrs.program("select_jaxpr"));
  std::optional<Monoid> monoid = recognise_monoid(request.attrs.program("scatter_jaxpr"));
  if (!keeps || !monoid || is_complex(operand.dtype) || operand.dtype != source.dtype || out.size() == 0) return {};
  auto taps = std::make_shared<WindowTaps>(operand.shape, source.shape, Window::of(request.attrs));
  const DType dtype = operand.dtype;
  const int64_t count = out.size(), sources = source.size();
  HostKernel kernel;
  visit_compute(dtype, [&]<class C>(Type<C>) {
    reference::visit_monoid(*monoid, [&]<Monoid M>(reference::MonoidTag<M>) {
      if constexpr (reference::folds<M, C> && !is_complex_number<C>) {
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
            Scratch<int64_t> held(run, "positions in a window");
            RowTaps windows(*taps);
            const int64_t row = taps->row();
            for (int64_t b = begin; b < end; ++b) {
              std::fill_n(totals + b * taps->batch_elements, taps->batch_elements, initial);
              for (int64_t place = b * taps->batch_places; place < (b + 1) * taps->batch_places; ++place) {
                if (place % row == 0) windows.move_to(place / row);
                std::fill_n(held.data(), run, int64_t{-1});
                for (int64_t e = 0; e < taps->window_size; ++e) {
                  const int64_t offset = windows.offset(place % row, e);
                  if (offset < 0) continue;
                  for (int64_t i = 0; i < run; ++i) {
                    if (held[i] < 0 || !keeps_held(*keeps, values[held[i]], values[offset + i])) held[i] = offset + i;
                  }
                }
                for (int64_t i = 0; i < run; ++i) {
                  if (held[i] >= 0) totals[held[i]] = combine<M>(totals[held[i]], updates[place * run + i]);
                }
              }
            }
            return 0;
          });
          if (!stored_as<C>(dtype)) store_range<C>(dtype, buffers[3], count, totals);
        };
      }
    });
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
