// Hasher: bytes and arrays.
#include "core/array/hash.h"

#include "core/array/byte_count.h"

#include <cstring>
#include <functional>

namespace capibara {

void Hasher::bytes(const void* data, std::size_t size) {
  const auto* cursor = static_cast<const unsigned char*>(data);
  mix(size);
  while (size >= 8) {
    std::size_t word;
    std::memcpy(&word, cursor, 8);
    mix(word);
    cursor += 8;
    size -= 8;
  }
  std::size_t tail = 0;
  std::memcpy(&tail, cursor, size);
  mix(tail);
}

void Hasher::array(const Array& array) {
  if (!array.defined()) return mix(0);
  type(array.type());
  if (array.is_tracer() || array.type().ref) return mix(std::hash<const void*>{}(array.body().get()));
  bytes(array.raw_data(), byte_count(array.type()));
}

}  // namespace capibara
