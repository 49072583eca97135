// Building blocks for the formulas of jax.nn and jax.scipy: constants, polynomials, and parts of jax.numpy.
#pragma once

#include <capibara/array.h>
#include <capibara/lax.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/reductions.h>

#include <functional>
#include <initializer_list>
#include <limits>
#include <numbers>

#include "lax/operators/promote.h"

namespace capibara::terms {

namespace lax = jax::lax;
using jax::numpy::isnan;
using jax::numpy::logaddexp;
using jax::numpy::max;
using jax::numpy::maximum;
using jax::numpy::mean;
using jax::numpy::minimum;
using jax::numpy::sum;
using jax::numpy::where;

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
inline constexpr double pi = std::numbers::pi;

// A scalar of the dtype of x, weakly typed if x is a weakly typed scalar.
Array constant(const Array& x, double value);
// A strongly typed scalar of the dtype of x.
Array typed_constant(const Array& x, double value);
// Horner's rule, the highest power first.
Array polynomial(const Array& x, std::initializer_list<double> coefficients);
// A function of scalars applied elementwise to broadcast arrays; its loops run until all elements are done.
Array map_scalars(const char* name, const Arrays& arguments, const std::function<Array(const Arrays&)>& function);

void require_real(const char* function, const Array& x);  // ValueError if complex

}  // namespace capibara::terms
