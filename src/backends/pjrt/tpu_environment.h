// The environment that libtpu reads before it compiles for TPUs that are not present.
#pragma once

#include <string>

namespace capibara::pjrt {

// The accelerator type of a topology: v5litepod-16 for v5e:4x4, v4-32 for v4:2x2x4. Empty for an unknown name.
std::string accelerator_type(const std::string& topology);

// To be called before libtpu is opened. Variables set by the user are kept.
void set_tpu_environment(const std::string& topology);

}  // namespace capibara::pjrt
