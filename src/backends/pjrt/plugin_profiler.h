// The plugin's own profiler: what ran on the device, as the plugin recorded it.
#pragma once

#include "backends/pjrt/plugin.h"

namespace capibara::pjrt {

// From now on the plugin records its device in every profile; no effect if it has no profiler.
void add_profiler(std::shared_ptr<const Plugin> plugin);

}  // namespace capibara::pjrt
