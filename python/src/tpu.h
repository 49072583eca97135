// The TPU toolbox in the extension.
#pragma once

#include "bindings.h"

namespace capibara::python {

void bind_tpu(nb::module_& m);

}  // namespace capibara::python
