// The size in bytes of an array's buffer, or an error if no machine could hold it.
#pragma once

#include <cstddef>

#include <capibara/array.h>

namespace capibara {

// Raises the out-of-memory error, with the true number of bytes, if no machine could hold them.
std::size_t buffer_bytes(const ArrayType& type);

}  // namespace capibara
