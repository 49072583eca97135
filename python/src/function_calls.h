// The primitives call and closed_call, which Python binds with a function in place of a program.
#pragma once

#include "bindings.h"

namespace capibara::python {

bool calls_function(const Primitive& primitive);

// An equation where a program is being built, and no more than the call of the function elsewhere.
nb::object bind_function(const Primitive& primitive, nb::tuple args, nb::handle functions);

}  // namespace capibara::python
