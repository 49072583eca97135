// Programs of loop bodies and branches, remembered by the Python function: a loop that runs again traces its body no
// second time.
#pragma once

#include "calls.h"

namespace capibara::python {

// `traced` as a function that runs its Python code once for the same structure `in`, types of leaves and settings.
// `out` is the structure that `traced` leaves behind. Values captured from a trace, and named axes, belong to one call:
// such programs are not remembered. All of it outlives the returned function.
FlatFunction remembered_body(nb::handle function, const char* purpose, const PyTree& in, const FlatFunction& traced,
                             PyTree* out = nullptr);

}  // namespace capibara::python
