// The window of a convolution: offsets of its elements at every output position.
#pragma once

#include <capibara/attributes.h>

#include <vector>

namespace capibara::cpu {

// The window of a convolution over its output positions, dimension by dimension.
struct Window {
  Ints size, places;  // of the window; the number of output positions
  Ints extent, step;  // of the input: size, stride between neighbours
  Ints stride, dilation, padding;
  bool regular = true;  // the input is not dilated
  std::vector<std::vector<int64_t>>
      taps;  // by dimension, [place * size + element]: offset into the input, or -1 outside

  int64_t part(std::size_t d, const int64_t* place, const int64_t* element) const {
    return taps[d][static_cast<std::size_t>(place[d] * size[d] + element[d])];
  }
  // Offset into the input of one window element at one place; -1 in the padding.
  int64_t tap(const int64_t* place, const int64_t* element) const { return sum(place, element, size.size()); }
  // The same without the last dimension.
  int64_t outer_tap(const int64_t* place, const int64_t* element) const { return sum(place, element, size.size() - 1); }

 private:
  int64_t sum(const int64_t* place, const int64_t* element, std::size_t dims) const {
    int64_t offset = 0;
    for (std::size_t d = 0; d < dims; ++d) {
      const int64_t own = part(d, place, element);
      if (own < 0) return -1;
      offset += own;
    }
    return offset;
  }
};

}  // namespace capibara::cpu
