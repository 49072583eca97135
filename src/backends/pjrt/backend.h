// Backends of PJRT plugins: programs go out as StableHLO text, arrays stay on the plugin's devices.
#pragma once

#include "backends/backend.h"
#include "backends/pjrt/client.h"

namespace capibara::pjrt {

// "pjrt" is the preferred plugin of this machine; "cuda", "gpu", "rocm", "tpu" and "xla_cpu" name a platform. The
// plugin is loaded when it is first needed.
bool is_platform(const std::string& name);
Backend& backend(const std::string& name);
Backend& backend(const Device& device);  // whose unplaced inputs go to this device
// Whose devices are called by this platform; null: no plugin's platform.
Backend* holder(const std::string& platform);
// The client whose devices are called by this platform: "gpu" and "cuda" are the same, and the configured one may have
// been chosen as "pjrt". Null: no plugin's platform.
Client* client_of(const std::string& platform);
Client& client(const std::string& name);  // raises RuntimeError where there is no plugin

// What became of a compiled program, where the executable is one of a plugin; null otherwise.
const Loaded* loaded(Executable& executable);
std::string stablehlo_text(const Program& program);  // as the plugin gets it

}  // namespace capibara::pjrt
