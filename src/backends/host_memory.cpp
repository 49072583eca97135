// Backends that compute in the memory of this process: their devices, and arrays put there.
#include <capibara/config.h>

#include "backends/backend.h"

namespace capibara {

std::vector<DeviceFacts> Backend::devices() const {
  std::vector<DeviceFacts> list;
  for (int id = 0; id < config().num_cpu_devices; ++id) list.push_back({{"cpu", id}, "cpu"});
  return list;
}

std::optional<MemoryStats> Backend::memory_stats(int) const { return std::nullopt; }

Array Backend::put(const Array& x, const NamedSharding& placement) {
  if (placement.devices.size() > 1) {
    throw ValueError(concat("device_put: arrays of platform '", placement.platform,
                            "' are stored in the memory of the one process, got ", to_string(placement),
                            "; choose a plugin's platform, such as JAX_PLATFORMS=xla_cpu, for several devices"));
  }
  if (placement.devices.at(0) != 0) {
    throw NotImplementedError(concat(
        "device_put: the native backend keeps arrays on ", placement.platform, ":0, got ", placement.platform, ":",
        placement.devices[0], "; choose a plugin's platform, such as JAX_PLATFORMS=xla_cpu, for several devices"));
  }
  const std::string& kind = placement.memory_kind;
  if (!kind.empty() && kind != "device") {
    throw ValueError(concat("Could not find memory addressable by device ", placement.platform, ":",
                            placement.devices.at(0),
                            ". It can address the following memory kinds: device. Got memory kind: ", kind));
  }
  if (x.buffer().device() == Device{"cpu", 0}) return Array::from_buffer(x.type(), x.buffer(), true);
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(x.size() * storage_size(x.dtype())));
  if (x.size() > 0) std::copy(x.raw_data(), x.raw_data() + buffer.size(), buffer.mutable_data());
  return Array::from_buffer(x.type(), buffer, true);
}

Array Backend::join(const Shape&, const NamedSharding& placement, const std::vector<Array>&) {
  throw ValueError(concat("join_shards: platform '", placement.platform, "' has no devices of its own"));
}

}  // namespace capibara
