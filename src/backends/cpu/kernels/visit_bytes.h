// Elements that are only moved: dispatch on their size in bytes.
#pragma once

#include <cstdint>

#include "core/array/element.h"

namespace capibara::cpu {

struct Sixteen {
  uint64_t parts[2];
};

// Calls f(Type<T>{}) with a type of this size.
template <class F>
void visit_bytes(int64_t size, F&& f) {
  switch (size) {
    case 1:
      return f(Type<uint8_t>{});
    case 2:
      return f(Type<uint16_t>{});
    case 4:
      return f(Type<uint32_t>{});
    case 8:
      return f(Type<uint64_t>{});
    default:
      return f(Type<Sixteen>{});
  }
}

}  // namespace capibara::cpu
