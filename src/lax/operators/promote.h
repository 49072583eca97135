// Promotion of operands by operators and the functions of jax.numpy: dtypes, ranks and shapes.
#pragma once

#include <capibara/array.h>
#include <capibara/lax.h>
#include <capibara/primitive.h>

#include <initializer_list>

#include "core/array/promotion.h"

namespace capibara {

DType default_float();         // float32, or float64 if x64 is on
DType default_int();           // int32 or int64
DType default_uint();          // uint32 or uint64
DType default_complex();       // complex64 or complex128
DType canonical(DType dtype);  // narrowed by the configuration
// The dtype for floating results of this one: unchanged if it is inexact, else as wide a float, at least float32.
DType inexact_dtype(DType dtype);

// The common dtype and weak type of these operands.
ScalarType result_type(const Arrays& operands);
// Converts to that common type.
Arrays promote_dtypes(const Arrays& operands);
// The same, with integers and booleans as floats.
Arrays promote_dtypes_inexact(const Arrays& operands);
// Adds leading axes of size one up to one rank, as the configuration allows; scalars stay scalars.
Arrays promote_ranks(const char* name, const Arrays& operands);
// Dtypes and ranks, for lax functions of several operands. `name` is the operation in messages.
Arrays promote_args(const char* name, const Arrays& operands);
Arrays promote_args_inexact(const char* name, const Arrays& operands);
// The operand of an elementwise function of one argument, converted to a float if it is an integer or boolean.
Array promote_inexact(const char* name, const Array& x);

// NumPy's broadcasting; raises ValueError naming both shapes.
Array broadcast_to(const char* name, const Array& x, const Shape& shape);
// Broadcasts all to their common shape, dtypes unchanged.
Arrays broadcast_arrays(const char* name, const Arrays& operands);

// A non-negative axis; raises ValueError "axis 3 is out of bounds for array of dimension 2".
int64_t canonical_axis(const char* name, int64_t axis, int64_t rank);

// One jit equation of this name while tracing; the operations themselves when evaluating.
Array named_call(const char* name, std::initializer_list<Array> inputs,
                 const std::function<Arrays(std::span<const Array>)>& function);

}  // namespace capibara
