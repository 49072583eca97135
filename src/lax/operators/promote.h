// How operators and the functions of jax.numpy bring their operands together: dtypes, ranks and shapes.
#pragma once

#include <capibara/array.h>
#include <capibara/lax.h>
#include <capibara/primitive.h>

#include <initializer_list>

#include "core/array/promotion.h"

namespace capibara {

DType default_float();         // float32, or float64 where x64 is on
DType default_int();           // int32 or int64
DType default_uint();          // uint32 or uint64
DType default_complex();       // complex64 or complex128
DType canonical(DType dtype);  // as the configuration narrows it
// The dtype for floating results of this one: itself where it is inexact, else as wide a float, at least float32.
DType inexact_dtype(DType dtype);

// The common dtype and weak type of these operands.
ScalarType result_type(const Arrays& operands);
// To that common type.
Arrays promote_dtypes(const Arrays& operands);
// The same, integers and booleans becoming floats.
Arrays promote_dtypes_inexact(const Arrays& operands);
// To one rank by leading axes of size one, as the configuration allows; scalars stay scalars.
Arrays promote_ranks(const char* name, const Arrays& operands);
// Dtypes and ranks: what lax functions of several operands need. `name` is the operation in messages.
Arrays promote_args(const char* name, const Arrays& operands);
Arrays promote_args_inexact(const char* name, const Arrays& operands);
// An operand of an elementwise function of one argument, as a float where it is an integer or boolean.
Array promote_inexact(const char* name, const Array& x);

// NumPy's broadcasting; raises ValueError naming both shapes.
Array broadcast_to(const char* name, const Array& x, const Shape& shape);
// All to their common shape, dtypes unchanged.
Arrays broadcast_arrays(const char* name, const Arrays& operands);

// A non-negative axis; raises ValueError "axis 3 is out of bounds for array of dimension 2".
int64_t canonical_axis(const char* name, int64_t axis, int64_t rank);

// One jit equation of this name while tracing; the operations themselves when evaluating.
Array named_call(const char* name, std::initializer_list<Array> inputs,
                 const std::function<Arrays(std::span<const Array>)>& function);

}  // namespace capibara
