// Offsets of the elements of a padded plane, split into phases by the strides of a window.
//
// In the padded plane the window's element e meets, at place (output position) o, index o * stride + e * dilation: the
// phase (e * dilation) % stride holds it at index o + (e * dilation) / stride. Phases are planes of [row][pitch], so
// that a window element meets places that are `pitch` apart from row to row: all rows of places are one loop, whose
// results between the rows are discarded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "backends/cpu/kernels/planes/code.h"

namespace capibara::cpu {

// One dimension of a window over a plane; the leading padding may be negative.
struct PlaneDimension {
  int64_t size = 1, places = 1, extent = 1, stride = 1, dilation = 1, padding = 0;

  int64_t reach() const { return (size - 1) * dilation + 1; }
  // Number of indices of a phase that this many places meet.
  int64_t length(int64_t some_places) const { return ((some_places - 1) * stride + reach() + stride - 1) / stride; }
};

class PlaneLayout {
 public:
  // For up to `max_rows` rows of places at once.
  PlaneLayout(const PlaneDimension& rows, const PlaneDimension& columns, int64_t max_rows, int64_t lanes)
      : rows_(rows),
        columns_(columns),
        max_rows_(max_rows),
        pitch_(columns.length(columns.places)),
        phase_size_(spread((rows.length(max_rows) * pitch_ + 2 * lanes - 1) / lanes * lanes, lanes)) {
    used_rows_.resize(static_cast<std::size_t>(rows.stride));
    used_columns_.resize(static_cast<std::size_t>(columns.stride));
    for (int64_t r = 0; r < rows.size; ++r)
      used_rows_[static_cast<std::size_t>(r * rows.dilation % rows.stride)] = true;
    for (int64_t c = 0; c < columns.size; ++c)
      used_columns_[static_cast<std::size_t>(c * columns.dilation % columns.stride)] = true;
    for (int64_t r = 0; r < rows.size; ++r) {
      for (int64_t c = 0; c < columns.size; ++c) {
        taps_.push_back(tap(r * rows.dilation, c * columns.dilation));
      }
    }
    for (int64_t phase = 0; phase < columns.stride; ++phase) {
      const int64_t start = phase - columns.padding, stride = columns.stride;
      const int64_t low = std::clamp<int64_t>(start >= 0 ? 0 : (-start + stride - 1) / stride, 0, pitch_);
      const int64_t high = start >= columns.extent ? 0 : (columns.extent - start + stride - 1) / stride;
      parts_.push_back({start, low, std::clamp(high, low, pitch_)});
    }
  }

  // Rows of places at once, so that the planes fit the L1 cache; at least a few, since their windows overlap.
  static int64_t band(const PlaneDimension& rows, const PlaneDimension& columns, int64_t element_bytes) {
    constexpr int64_t cache = 24 * 1024;
    const int64_t row = columns.length(columns.places) * columns.stride * rows.stride * element_bytes;
    return std::clamp<int64_t>((cache / row) - rows.reach() / rows.stride,
                               std::min<int64_t>(rows.places, 8 + rows.reach()), rows.places);
  }

  int64_t max_rows() const { return max_rows_; }
  int64_t pitch() const { return pitch_; }
  int64_t elements() const { return phase_size_ * rows_.stride * columns_.stride; }
  // For every window element, row-major: its offset at the first place.
  const std::vector<int64_t>& taps() const { return taps_; }
  // Offset of an index of the padded rows in one phase of columns.
  int64_t at(int64_t y, int64_t phase) const {
    return (y % rows_.stride * columns_.stride + phase) * phase_size_ + y / rows_.stride * pitch_;
  }
  // Offset of an index of the padded plane.
  int64_t tap(int64_t y, int64_t x) const { return at(y, x % columns_.stride) + x / columns_.stride; }
  // Length of this many rows of places as one loop.
  int64_t count(int64_t rows) const { return (rows - 1) * pitch_ + columns_.places; }

  // Rows [begin, end) of an image met by `count` rows of places from `first` on.
  std::pair<int64_t, int64_t> rows_met(int64_t first, int64_t count) const {
    const int64_t begin = first * rows_.stride - rows_.padding,
                  end = begin + (count - 1) * rows_.stride + rows_.reach();
    const int64_t from = std::clamp<int64_t>(begin, 0, rows_.extent);
    return {from, std::clamp(end, from, rows_.extent)};
  }

  // Lays out the rows of an image, `row_step` elements apart, that `count` rows of places from `first` on meet.
  template <class T>
  void lay(const PlaneCode<T>& code, const T* image, int64_t row_step, int64_t first, int64_t count, T blank,
           T* planes) const {
    const int64_t positions = (count - 1) * rows_.stride + rows_.reach();
    int64_t row_phase = 0, index = 0;  // tracked incrementally, since divisions are slow
    for (int64_t y = 0; y < positions; ++y, ++row_phase) {
      if (row_phase == rows_.stride) {
        row_phase = 0;
        ++index;
      }
      if (!used_rows_[static_cast<std::size_t>(row_phase)]) continue;
      const int64_t row = first * rows_.stride + y - rows_.padding;
      const bool inside = row >= 0 && row < rows_.extent;
      T* start = planes + row_phase * columns_.stride * phase_size_ + index * pitch_;
      for (int64_t phase = 0; phase < columns_.stride; ++phase) {
        if (!used_columns_[static_cast<std::size_t>(phase)]) continue;
        T* to = start + phase * phase_size_;
        const Part& part = parts_[static_cast<std::size_t>(phase)];
        if (inside)
          code.lay({image + row * row_step + part.start, columns_.stride, part.low, part.high, pitch_, blank, to});
        else
          std::fill_n(to, pitch_, blank);
      }
    }
  }

 private:
  // Planes a power of two apart would map to a few sets of the L1 cache.
  static int64_t spread(int64_t size, int64_t lanes) { return size % (16 * lanes) == 0 ? size + lanes : size; }

  // One phase of columns: its start in a row of the image, and which of its elements are in bounds.
  struct Part {
    int64_t start, low, high;
  };

  PlaneDimension rows_, columns_;
  int64_t max_rows_, pitch_, phase_size_;
  std::vector<int64_t> taps_;
  std::vector<bool> used_rows_, used_columns_;  // phases that the window meets
  std::vector<Part> parts_;
};

}  // namespace capibara::cpu
