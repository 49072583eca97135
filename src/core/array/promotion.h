// Which dtype an operation on several dtypes has: JAX's promotion lattice with weak types.
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

// The type a Python scalar enters with: all are weak but bool.
ScalarType python_scalar_type(PythonScalar scalar, bool x64);

// The least upper bound of `types` on the lattice. One type, or equal strong ones, come back as they
// are, keys included; 64-bit results of other cases are canonicalised. Throws TypePromotionError
// where there is no bound, ValueError for dtypes outside the lattice or for no types at all.
ScalarType promote_types(std::span<const ScalarType> types, bool x64, PromotionMode mode = PromotionMode::standard);

inline ScalarType promote_types(ScalarType a, ScalarType b, bool x64, PromotionMode mode = PromotionMode::standard) {
  const ScalarType both[] = {a, b};
  return promote_types(both, x64, mode);
}

}  // namespace capibara
