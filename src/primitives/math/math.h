// Everything in this folder: the numerics of elementwise primitives.
#pragma once

#include "primitives/math/bessel.h"
#include "primitives/math/bit_generator.h"
#include "primitives/math/complex.h"
#include "primitives/math/complex_roots.h"
#include "primitives/math/error_function.h"
#include "primitives/math/exponential.h"
#include "primitives/math/float_bits.h"
#include "primitives/math/gamma.h"
#include "primitives/math/incomplete_beta.h"
#include "primitives/math/incomplete_gamma.h"
#include "primitives/math/integer.h"
#include "primitives/math/threefry.h"
#include "primitives/math/trigonometric.h"
#include "primitives/math/value.h"
#include "primitives/math/zeta.h"
