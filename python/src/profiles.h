// The part of the module that records profiles and reads profile files.
#pragma once

#include "bindings.h"

namespace capibara::python {

void bind_profiles(nb::module_& m);
void bind_profile_data(nb::module_& m);
void bind_event_listener(nb::module_& m);

}  // namespace capibara::python
