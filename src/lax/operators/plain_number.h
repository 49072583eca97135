// Plain C++ numbers among arrays: weakly typed concrete scalars, which take the dtype of what they meet.
#pragma once

#include <capibara/array.h>
#include <capibara/primitive.h>

#include <initializer_list>

namespace capibara {

// Whether an array is what a C++ number turned into: Python's int, float and complex in JAX.
bool is_plain_number(const Array& x);

// A plain number as a constant of another dtype. Converted here and now, so that no equation is staged for it.
Array number_as(const Array& number, DType dtype, bool weak_type);

// x as (dtype, weak_type): itself where it is that already, a plain number at once, anything else by
// convert_element_type.
Array array_as(const Array& x, DType dtype, bool weak_type);

// Plain numbers take the dtype of the other operands where that loses no kind: 2 becomes 2.0, never 2.5 an integer.
Arrays adopt_numbers(std::initializer_list<Array> operands);

}  // namespace capibara
