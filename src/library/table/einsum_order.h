// The argument `optimize` of einsum and similar functions.
#pragma once

#include <capibara/numpy/contraction.h>

#include "library/table/function.h"

namespace capibara::library {

// True, False, the name of a method, or a path of steps.
std::variant<std::string, jax::numpy::ContractionPath> einsum_order(const Arguments& a);

}  // namespace capibara::library
