// Everything in this folder: the numerics of elementwise primitives.
#pragma once

#include "lax/math/bessel.h"
#include "lax/math/bit_generator.h"
#include "lax/math/complex.h"
#include "lax/math/complex_roots.h"
#include "lax/math/error_function.h"
#include "lax/math/exponential.h"
#include "lax/math/float_bits.h"
#include "lax/math/gamma.h"
#include "lax/math/incomplete_beta.h"
#include "lax/math/incomplete_gamma.h"
#include "lax/math/integer.h"
#include "lax/math/threefry.h"
#include "lax/math/trigonometric.h"
#include "lax/math/value.h"
#include "lax/math/zeta.h"
