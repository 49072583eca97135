// Cache of the programs of loop bodies and branches, keyed by Python function: a loop that runs again does not retrace
// its body.
#pragma once

#include "calls.h"

namespace capibara::python {

// Wraps `traced` so that its Python code runs once per structure `in`, types of leaves and settings. `out` is the
// structure that `traced` sets. Values captured from a trace and named axes belong to one call: programs with them
// are not cached. All arguments must outlive the returned function.
FlatFunction remembered_body(nb::handle function, const char* purpose, const PyTree& in, const FlatFunction& traced,
                             PyTree* out = nullptr);

}  // namespace capibara::python
