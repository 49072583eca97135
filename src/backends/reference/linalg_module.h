// Access of the reference kernels to the linear algebra module: opened at first use, absent if it was not built.
#pragma once

#include "backends/lapack/routines.h"
#include "core/array/element.h"

namespace capibara::reference {

// Null if the module cannot be opened.
const lapack::Table* find_lapack();
// Raises RuntimeError naming the operation, the missing module and the remedy.
const lapack::Table& require_lapack(const char* operation);

template <class T>
const lapack::Routines<T>& routines_of(const lapack::Table& table) {
  if constexpr (std::is_same_v<T, float>)
    return table.s;
  else if constexpr (std::is_same_v<T, double>)
    return table.d;
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    return table.c;
  else
    return table.z;
}

}  // namespace capibara::reference
