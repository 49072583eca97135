// The bytes of an array of a type, as buffers hold it.
#pragma once

#include <capibara/array.h>

#include <cstddef>

namespace capibara {

inline std::size_t byte_count(const ArrayType& type) {
  return static_cast<std::size_t>(type.size() * storage_size(type.dtype));
}

}  // namespace capibara
