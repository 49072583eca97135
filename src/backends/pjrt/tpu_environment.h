// What libtpu reads from its environment before it compiles for TPUs that are not there.
#pragma once

#include <string>

namespace capibara::pjrt {

// What the topology is rented as: v5litepod-16 for v5e:4x4, v4-32 for v4:2x2x4. Empty for a name that is none.
std::string accelerator_type(const std::string& topology);

// Before libtpu is opened. What the user has set stays.
void set_tpu_environment(const std::string& topology);

}  // namespace capibara::pjrt
