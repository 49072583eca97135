// The part of the module that saves and restores pytrees.
#pragma once

#include "bindings.h"

namespace capibara::python {

void bind_tree_checkpoints(nb::module_& m);

}  // namespace capibara::python
