// Plain C++ numbers among arrays: weakly typed concrete scalars, which take the dtype of the other operands.
#pragma once

#include <capibara/array.h>
#include <capibara/primitive.h>

#include <initializer_list>

namespace capibara {

// True if an array is a converted C++ number: Python's int, float and complex in JAX.
bool is_plain_number(const Array& x);

// A plain number as a constant of another dtype. Converted immediately, so that no equation is staged for it.
Array number_as(const Array& number, DType dtype, bool weak_type);

// x as (dtype, weak_type): unchanged if it already is, a plain number immediately, anything else by
// convert_element_type.
Array array_as(const Array& x, DType dtype, bool weak_type);

// Plain numbers take the dtype of the other operands if that preserves their kind: 2 becomes 2.0, never 2.5 an integer.
Arrays adopt_numbers(std::initializer_list<Array> operands);

}  // namespace capibara
