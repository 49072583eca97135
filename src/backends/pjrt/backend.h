// Backends of PJRT plugins: programs go out as StableHLO text, arrays stay on the plugin's devices.
#pragma once

#include "backends/backend.h"
#include "backends/pjrt/client.h"

namespace capibara::pjrt {

// "pjrt" is the preferred plugin of this machine; "cuda", "gpu", "rocm", "tpu" and "xla_cpu" name a platform. The plugin is
// loaded when it is first needed.
bool is_platform(const std::string& name);
Backend& backend(const std::string& name);
Client& client(const std::string& name);  // raises RuntimeError where there is no plugin

// What became of a compiled program, where the executable is one of a plugin; null otherwise.
const Loaded* loaded(Executable& executable);
std::string stablehlo_text(const Program& program);  // as the plugin gets it

}  // namespace capibara::pjrt
