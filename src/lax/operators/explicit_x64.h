// What becomes of a 64-bit dtype that is asked for by name while x64 is off: the setting jax_explicit_x64_dtypes.
#pragma once

#include <capibara/dtype.h>

#include <atomic>
#include <optional>

namespace capibara {

enum class ExplicitX64 { warn, error, allow };
std::atomic<ExplicitX64>& explicit_x64_dtypes();

// The dtype that was asked for, which the setting may keep at 64 bits, or the canonical form of another.
DType requested(std::optional<DType> asked, DType otherwise);

}  // namespace capibara
