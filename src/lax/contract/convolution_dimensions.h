// Dimension numbers, shared by the functions of convolutions.
#pragma once

#include <capibara/lax.h>

namespace capibara::jax::lax {

// The sizes of the dimensions dims[from], dims[from + 1] ...; raises TypeError if one is out of range.
Shape taken_sizes(const Shape& shape, const Ints& dims, std::size_t from);

// The given numbers, or batch, features and space in this order.
ConvDimensionNumbers numbers_or_default(const std::optional<ConvDimensionNumbers>& numbers, int64_t rank);

}  // namespace capibara::jax::lax
