// Tables of sliding windows, and the row of output positions for which they are read.
#include "backends/cpu/kernels/window/window_taps.h"

namespace capibara::cpu {

WindowTaps::WindowTaps(const Shape& in, const Shape& results, const Window& w) {
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

void RowTaps::move_to(int64_t row) {
  const std::size_t rank = taps_.window.size();
  int64_t start = 0;
  std::size_t d = rank == 0 ? 0 : rank - 1;
  places_.resize(d);
  for (std::size_t i = d; i-- > 0; row /= taps_.out[i]) places_[i] = row % taps_.out[i];
  // The common part: dimensions in which the window has one element.
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

}  // namespace capibara::cpu
