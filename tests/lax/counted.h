// An array that counts its elements.
#pragma once

#include <capibara/array.h>

namespace capibara {

inline Array counted(Shape shape) {
  std::vector<float> values(static_cast<std::size_t>(element_count(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return array<float>(values, shape);
}

}  // namespace capibara
