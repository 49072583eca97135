// How many bytes an array's buffer takes, where they can exist at all.
#pragma once

#include <cstddef>

#include <capibara/array.h>

namespace capibara {

// Raises the error of memory that is not there, with the true number of bytes, where no machine could hold them.
std::size_t buffer_bytes(const ArrayType& type);

}  // namespace capibara
