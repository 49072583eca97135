// Plain C++ numbers among arrays: weakly typed concrete scalars, which take the dtype of what they meet.
#pragma once

#include <capibara/array.h>

namespace capibara {

// Whether an array is what a C++ number turned into: Python's int, float and complex in JAX.
bool is_plain_number(const Array& x);

// A plain number as a constant of another dtype. Converted here and now, so that no equation is staged for it.
Array number_as(const Array& number, DType dtype, bool weak_type);

// x as (dtype, weak_type): itself where it is that already, a plain number at once, anything else by
// convert_element_type.
Array array_as(const Array& x, DType dtype, bool weak_type);

}  // namespace capibara
