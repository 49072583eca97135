// The part of the module that monitors training.
#pragma once

#include "bindings.h"

namespace capibara::python {

void bind_training_monitor(nb::module_& m);

}  // namespace capibara::python
