// A custom call as a handler of XLA's interface takes it: a frame of operands, results and attributes.
#pragma once

#include "backends/foreign.h"

namespace capibara::ffi {

// MakeForeignCall. Raises ParseError for attributes that make no sense, UnsupportedError for those that no frame can
// hold, and RuntimeError with the text of a handler that fails before the call.
ForeignCall make_call(const Attrs& attrs, const Types& inputs, const Types& outputs);

}  // namespace capibara::ffi
