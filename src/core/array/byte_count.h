// The size in bytes of an array of a given type in its buffer.
#pragma once

#include <capibara/array.h>

#include <cstddef>

namespace capibara {

inline std::size_t byte_count(const ArrayType& type) {
  return static_cast<std::size_t>(type.size() * storage_size(type.dtype));
}

}  // namespace capibara
