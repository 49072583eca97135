// A custom call in the form that handlers of XLA's FFI take: a frame of operands, results and attributes.
#pragma once

#include "backends/foreign.h"

namespace capibara::ffi {

// MakeForeignCall. Raises ParseError for malformed attributes, UnsupportedError for those that a frame cannot hold, and
// RuntimeError with the message of a handler that fails before the call.
ForeignCall make_call(const Attrs& attrs, const Types& inputs, const Types& outputs);

}  // namespace capibara::ffi
