// The terms from which the formulas of jax.nn and jax.scipy are made: choices, constants, polynomials and sums.
#pragma once

#include <capibara/array.h>
#include <capibara/lax.h>

#include <functional>
#include <initializer_list>
#include <limits>
#include <numbers>
#include <optional>

#include "library/numpy/promote.h"

namespace capibara::terms {

namespace lax = jax::lax;

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
inline constexpr double pi = std::numbers::pi;

// A strongly typed scalar of the dtype of x.
Array constant(const Array& x, double value);
// jnp.where: dtypes promoted, shapes broadcast.
Array where(const Array& condition, const Array& yes, const Array& no);
Array maximum(const Array& a, const Array& b);
Array minimum(const Array& a, const Array& b);
Array is_nan(const Array& x);
// log(exp(a) + exp(b)); its derivative stays finite where both are infinite.
Array logaddexp(const Array& a, const Array& b);
// Horner's rule, the highest power first.
Array polynomial(const Array& x, std::initializer_list<double> coefficients);

// Of sums and maxima: non-negative axes, and the elements that count.
struct Over {
  Ints axes;
  bool keepdims = false;
  std::optional<Array> where = {};
};
// Integers give the default integer, 16-bit floats are summed in 32 bits.
Array sum(const Array& x, const Over& over);
// At least minus infinity, or the least integer.
Array max(const Array& x, const Over& over);
// The number of elements that count, as this dtype.
Array count(const Array& x, const Over& over, DType dtype);
Array mean(const Array& x, const Over& over);

Array move_axis(const Array& x, int64_t from, int64_t to);
// A function of scalars applied to broadcast arrays, element by element; its loops run until all elements are done.
Array vectorize(const char* name, const Arrays& arguments, const std::function<Array(const Arrays&)>& function);

void require_real(const char* function, const Array& x);  // ValueError where complex

}  // namespace capibara::terms
