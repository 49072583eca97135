// The part of the module that takes profiles and reads files of profiles.
#pragma once

#include "bindings.h"

namespace capibara::python {

void bind_profiles(nb::module_& m);
void bind_profile_data(nb::module_& m);
void bind_event_listener(nb::module_& m);

}  // namespace capibara::python
