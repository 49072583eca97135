// Attributes that several functions of lax give to their primitives.
#pragma once

#include <capibara/config.h>
#include <capibara/program.h>

#include <optional>

namespace capibara::jax::lax {

// An optional type, as the settings allow it.
inline Attr canonical_attr(const std::optional<DType>& dtype) {
  return dtype ? Attr(canonicalize(*dtype, capibara::config().enable_x64)) : Attr();
}

}  // namespace capibara::jax::lax
