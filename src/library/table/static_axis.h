// The axis argument of functions that jax compiles with it as a static argument.
#pragma once

#include "library/table/function.h"

namespace capibara::library {

// An integer, a tuple or None; a list cannot be hashed and raises ValueError.
jax::numpy::Axis static_axis(const Arguments& a, const char* name);

}  // namespace capibara::library
