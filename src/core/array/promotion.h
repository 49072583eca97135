// The result dtype of an operation on several dtypes: JAX's promotion lattice with weak types.
#pragma once

#include <cstdint>
#include <span>

#include <capibara/dtype.h>

namespace capibara {

// Weak types are those of Python scalars: they yield to any strong type of their kind or above.
struct ScalarType {
  DType dtype;
  bool weak = false;

  bool operator==(const ScalarType&) const = default;
};

enum class PromotionMode : std::uint8_t {
  standard,
  strict,  // only weak types promote
};

enum class PythonScalar : std::uint8_t { bool_, int_, float_, complex_ };

// The type of a Python scalar as an operand: weak for all but bool.
ScalarType python_scalar_type(PythonScalar scalar, bool x64);

// The least upper bound of `types` on the lattice. One type, or equal strong ones, are returned
// unchanged, keys included; 64-bit results of other cases are canonicalised. Throws TypePromotionError
// if there is no bound, ValueError for dtypes outside the lattice or an empty list.
ScalarType promote_types(std::span<const ScalarType> types, bool x64, PromotionMode mode = PromotionMode::standard);

inline ScalarType promote_types(ScalarType a, ScalarType b, bool x64, PromotionMode mode = PromotionMode::standard) {
  const ScalarType both[] = {a, b};
  return promote_types(both, x64, mode);
}

}  // namespace capibara
