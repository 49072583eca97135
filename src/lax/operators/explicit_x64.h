// The handling of 64-bit dtypes requested by name while x64 is off: the setting jax_explicit_x64_dtypes.
#pragma once

#include <capibara/dtype.h>

#include <atomic>
#include <optional>

namespace capibara {

enum class ExplicitX64 { warn, error, allow };
std::atomic<ExplicitX64>& explicit_x64_dtypes();

// The requested dtype, which the setting may keep at 64 bits, or the canonical form of `otherwise`.
DType requested(std::optional<DType> dtype, DType otherwise);

}  // namespace capibara
