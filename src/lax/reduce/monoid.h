// The monoids of named reductions: their identities, and their regions as programs.
#pragma once

#include <capibara/primitive.h>

#include <optional>

namespace capibara {

inline ArrayType scalar_type(DType dtype) {
  ArrayType type;
  type.dtype = dtype;
  return type;
}

// A rank-0 array with exactly this value, for dtypes whose extremes a double cannot hold.
Array exact_scalar(DType dtype, int64_t value);

// The identity of the monoid. max and min: the infinities, or the limits of types without them.
Array identity_element(Monoid monoid, DType dtype);
bool is_identity_element(Monoid monoid, const Array& value);  // false for a tracer

// The program (a, b) -> a op b on scalars.
Program monoid_region(Monoid monoid, DType dtype);

// The monoid that a region of two scalars applies, if it is a single operation on both of its inputs.
std::optional<Monoid> recognise_monoid(const Program& region);

// A function on scalars as a program; a captured tracer raises NotImplementedError, since regions have no captures.
using ScalarFunction = std::function<Arrays(std::span<const Array>)>;
Program stage_region(const std::string& op, const ScalarFunction& function, const Types& types);

// Checks the region of a reduction: (accumulators..., elements...) -> as many results of the same types.
void check_region(const std::string& op, const Program& region, std::span<const ArrayType> operands);

}  // namespace capibara
