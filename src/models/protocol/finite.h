// Whether an array has a NaN or an infinity.
#pragma once

#include <capibara/array.h>

namespace capibara {

// True where all elements are finite, and for types that hold nothing else.
bool all_finite(const Array& array);

}  // namespace capibara
