// The setting jax_explicit_x64_dtypes.
#include "lax/operators/explicit_x64.h"

#include "lax/operators/promote.h"

namespace capibara {

std::atomic<ExplicitX64>& explicit_x64_dtypes() {
  static std::atomic<ExplicitX64> mode = ExplicitX64::warn;
  return mode;
}

DType requested(std::optional<DType> dtype, DType otherwise) {
  return dtype && explicit_x64_dtypes() == ExplicitX64::allow ? *dtype : canonical(dtype.value_or(otherwise));
}

}  // namespace capibara
