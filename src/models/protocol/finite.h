// Checks whether an array has a NaN or an infinity.
#pragma once

#include <capibara/array.h>

namespace capibara {

// True if all elements are finite, and for types that have only finite values.
bool all_finite(const Array& array);

}  // namespace capibara
