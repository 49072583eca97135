// Offsets of the elements of sliding windows, as tables: padding and dilation are skipped.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "backends/cpu/kernels/scratch.h"
#include "backends/reference/kernels.h"
#include "core/array/element.h"
#include "core/runtime/thread_pool.h"
#include "program/ir/window_shape.h"

namespace capibara::cpu {

// Offsets of every window's elements. Trailing dimensions that the window does not span are one contiguous run.
struct WindowTaps {
  Shape out;  // without the dimensions of the run
  Ints window;
  std::vector<std::vector<int64_t>>
      taps;                       // by dimension, [place * window + element]: offset into the input, or -1 outside
  std::vector<int64_t> elements;  // [window element][dimension]
  int64_t run = 1, window_size = 1;
  int64_t batches = 1, batch_places = 1, batch_elements = 1;  // leading dimensions that the window does not span
  // The last dimension. If the input is dilated there, positions are split into phases without dilation.
  int64_t stride = 1, dilation = 1, padding = 0, base = 1, extent = 1;
  bool in_phases = false;
  // For a phase and a window element along the last dimension: its offset at the phase's first position, and the
  // positions for which it is in bounds; meets is false if the phase misses it.
  struct Part {
    int64_t place, from, to;
    bool meets;
  };
  std::vector<Part> parts;  // [phase][element]

  WindowTaps(const Shape& in, const Shape& results, const Window& w);

  int64_t places() const { return element_count(out); }
  int64_t step() const { return base == 1 ? stride : 1; }  // elements from one position of a phase to the next
  int64_t phase_places(int64_t phase) const { return std::max<int64_t>(0, (row() - phase + base - 1) / base); }
  int64_t row() const { return out.empty() ? 1 : out.back(); }  // positions along the last dimension
};

// The windows of one row of positions: the other dimensions' part of an offset is looked up once for each window
// element.
class RowTaps {
 public:
  explicit RowTaps(const WindowTaps& taps)
      : taps_(taps), outer_(static_cast<std::size_t>(taps.window_size)), last_(outer_.size()) {
    const std::size_t rank = taps.window.size();
    for (std::size_t e = 0; e < last_.size(); ++e) last_[e] = rank == 0 ? 0 : taps.elements[e * rank + rank - 1];
  }

  void move_to(int64_t row);
  // The offset of a window element at position `o` of the row; -1 outside.
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

// All elements in the compute type, converted once if they are stored otherwise.
template <class C>
const C* as_computed(DType dtype, bool stored, const std::byte* data, int64_t count, Scratch<C>& hold) {
  if (stored) return reinterpret_cast<const C*>(data);
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

// Elements of the windows of one phase of a row: addresses at the phase's first position, and positions in bounds.
template <class C>
struct PhaseTaps {
  std::vector<const C*> start;
  std::vector<int64_t> from, to;
  int64_t step = 1;  // elements from one position to the next
  int64_t low = 0, high = 0;

  // `places`: number of positions of the phase. False: no window has an element.
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
  // The same for a row already folded over the other dimensions.
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

}  // namespace capibara::cpu
