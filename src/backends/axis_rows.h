// AxisRows: an array viewed as rows along one of its axes, for kernels that iterate along it.
#pragma once

#include <capibara/array.h>

namespace capibara {

// Element i of row r is at offset start(r) + i * stride.
struct AxisRows {
  int64_t length, stride, count;

  AxisRows(const Shape& shape, int64_t axis) : length(shape[static_cast<std::size_t>(axis)]), stride(1) {
    const int64_t elements = element_count(shape);
    count = length == 0 ? 0 : elements / length;
    if (elements == 0) return;  // no rows, but a nonzero stride, by which callers may divide
    for (std::size_t d = static_cast<std::size_t>(axis) + 1; d < shape.size(); ++d) stride *= shape[d];
  }
  int64_t start(int64_t row) const { return row / stride * length * stride + row % stride; }
};

}  // namespace capibara
