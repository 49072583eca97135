// Shared by reductions and their variants that skip NaNs: dtypes of accumulation, identities, counts.
#pragma once

#include <capibara/array.h>
#include <capibara/numpy/axis.h>

#include <optional>
#include <utility>

namespace capibara::reductions {

// float32 for the two half-precision formats, else the dtype itself.
DType computation_dtype(DType dtype);
// The default integer dtype for narrower integers and booleans.
DType widened_integer(DType dtype);
// The value as a scalar of a's dtype; infinities become the extreme value if the dtype has none.
Array identity_like(const Array& a, double value);
// Raises ValueError unless it is boolean.
std::optional<Array> checked_where(const char* name, const std::optional<Array>& where);
// The number of elements reduced into one; an axis out of range raises IndexError, as in jax.
Array element_count_along(const Array& a, const jax::numpy::Axis& axis, bool keepdims,
                          const std::optional<Array>& where, DType dtype);
// The dtypes in which a variance is computed and returned.
std::pair<DType, DType> variance_dtypes(const char* name, DType dtype, const std::optional<DType>& requested);
Array squared_magnitude(const Array& x);

}  // namespace capibara::reductions
