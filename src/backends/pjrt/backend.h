// Backends of PJRT plugins: programs are sent as StableHLO text, arrays stay on the plugin's devices.
#pragma once

#include "backends/backend.h"
#include "backends/pjrt/client.h"

namespace capibara::pjrt {

// "pjrt" is the preferred plugin of this machine; "cuda", "gpu", "rocm", "tpu" and "xla_cpu" name a platform. The
// plugin is loaded on first use.
bool is_platform(const std::string& name);
Backend& backend(const std::string& name);
Backend& backend(const Device& device);  // the one that places unplaced inputs on this device
// The backend whose devices belong to this platform; null: no plugin's platform.
Backend* holder(const std::string& platform);
// The client whose devices belong to this platform: "gpu" and "cuda" are the same, and the configured one may have
// been selected as "pjrt". Null: no plugin's platform.
Client* client_of(const std::string& platform);
Client& client(const std::string& name);  // raises RuntimeError if there is no plugin

// The plugin's loaded program behind an executable; null if the executable is not a plugin's.
const Loaded* loaded(Executable& executable);
std::string stablehlo_text(const Program& program);  // as sent to the plugin

}  // namespace capibara::pjrt
