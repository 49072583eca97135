// Calls of functions that users registered through XLA's FFI: made by backends/ffi, where it is linked.
#pragma once

#include <functional>
#include <span>

#include <capibara/primitive.h>

namespace capibara {

using ForeignCall = std::function<Arrays(std::span<const Array>)>;
// Makes the call of a custom_call equation; empty if its target is not registered.
using MakeForeignCall = ForeignCall(const Attrs& attrs, const Types& inputs, const Types& outputs);
extern MakeForeignCall* const make_foreign_call;  // null: this assembly has none

}  // namespace capibara
