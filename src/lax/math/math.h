// Everything in this folder: the numerics of elementwise primitives, and the lists of those that are formulas.
#pragma once

#include "lax/math/bessel.h"
#include "lax/math/bit_generator.h"
#include "lax/math/complex.h"
#include "lax/math/complex_inverse.h"
#include "lax/math/complex_roots.h"
#include "lax/math/error_function.h"
#include "lax/math/error_function_inverse.h"
#include "lax/math/exponential.h"
#include "lax/math/float_bits.h"
#include "lax/math/formula.h"
#include "lax/math/gamma.h"
#include "lax/math/incomplete_beta.h"
#include "lax/math/incomplete_gamma.h"
#include "lax/math/integer.h"
#include "lax/math/threefry.h"
#include "lax/math/trigonometric.h"
#include "lax/math/value.h"

namespace capibara::math {

// Without loops, for any backend.
inline constexpr auto formulas =
    std::tuple_cat(exponential_formulas, trigonometric_formulas, error_function_formulas,
                   error_function_inverse_formulas, gamma_formulas, bessel_formulas, zeta_formulas);
// With loops that run until the element has converged.
inline constexpr auto iterative_formulas = std::tuple_cat(incomplete_gamma_formulas, incomplete_beta_formulas);

}  // namespace capibara::math
