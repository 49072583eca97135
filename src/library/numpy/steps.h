// Building blocks of reductions, sorting, set functions and polynomials of jax.numpy.
#pragma once

#include <capibara/array.h>
#include <capibara/primitive.h>

#include <limits>

// A namespace of its own: argument-dependent lookup would otherwise find these alongside jax::numpy's functions.
namespace capibara::steps {

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double infinity = std::numeric_limits<double>::infinity();

// A strong scalar of x's dtype.
Array constant(const Array& x, double value);
Array arange(int64_t size);  // of the default integer dtype
// 0, 1, ... along one axis of a shape, of the default integer dtype.
Array positions(const Shape& shape, int64_t axis);
// NumPy's x[start:stop] along one axis.
Array cut(const Array& x, std::optional<int64_t> start, std::optional<int64_t> stop, int64_t axis = 0);
// Raises ConcretizationTypeError if the values of x are not known.
void require_values(const char* function, const char* argument, const Array& x);

}  // namespace capibara::steps
