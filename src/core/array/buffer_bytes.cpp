// Buffer sizes in bytes: a product of dimensions that may overflow 64 bits.
#include "core/array/buffer_bytes.h"

#include "core/runtime/arena.h"

namespace capibara {

std::size_t buffer_bytes(const ArrayType& type) {
  int64_t bytes = storage_size(type.dtype);
  double wanted = static_cast<double>(bytes);
  bool fits = true;
  for (const int64_t size : type.shape) {
    fits &= !__builtin_mul_overflow(bytes, size, &bytes);
    wanted *= static_cast<double>(size);
  }
  if (!fits && wanted > 0) arena::throw_out_of_memory(arena::Purpose::current(), wanted);
  return wanted > 0 ? static_cast<std::size_t>(bytes) : 0;
}

}  // namespace capibara
