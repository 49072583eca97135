// Preparation of the operands of reduce and reduce_window before they bind.
#pragma once

#include <capibara/lax.h>

#include "lax/reduce/monoid.h"

namespace capibara::jax::lax {

using BinaryFunction = std::function<Array(const Array&, const Array&)>;

// The monoid that a function of lax computes; lambdas are opaque.
std::optional<Monoid> monoid_of(const BinaryFunction& function);

// The start values; plain numbers take the dtype of their operand.
Arrays adopt_dtypes(const std::string& op, const Arrays& operands, const Arrays& init_values);

// The computation on scalars as a program.
Program variadic_region(const std::string& op, const Computation& computation, const Arrays& init_values);

// A computation on one operand, converted to one on lists.
Computation widen(const BinaryFunction& computation);

}  // namespace capibara::jax::lax
