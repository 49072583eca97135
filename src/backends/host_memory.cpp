// Backends that compute in the memory of this process: their devices, and placing arrays on them.
#include <capibara/config.h>

#include "backends/backend.h"
#include "backends/host_shards.h"
#include "core/array/body.h"
#include "core/processes/job.h"
#include "core/sharding/process_grid.h"

namespace capibara {

namespace {

// As on XLA's CPU: memory kinds that programs for accelerators request, all of them the memory of this process.
const std::vector<std::string>& memory_kinds() {
  static const std::vector<std::string> kinds = {"device", "pinned_host", "unpinned_host"};
  return kinds;
}

// The devices of all processes, each of which has the same number.
int device_count() { return config().num_cpu_devices * processes::exchanging().count; }

}  // namespace

std::vector<DeviceFacts> Backend::devices() const {
  std::vector<DeviceFacts> list;
  for (int id = 0; id < device_count(); ++id) {
    const int process = process_of_device(id);
    list.push_back({{"cpu", id}, "cpu", process, process == processes::exchanging().own, memory_kinds()});
  }
  return list;
}

std::optional<MemoryStats> Backend::memory_stats(int) const { return std::nullopt; }

namespace {

void check_devices(const NamedSharding& placement) {
  for (int device : placement.devices) {
    if (device >= 0 && device < device_count()) continue;
    throw ValueError(concat("device_put: there is no device ", placement.platform, ":", device, ", there are ",
                            device_count(), "; set JAX_NUM_CPU_DEVICES or jax_num_cpu_devices for more"));
  }
  const std::string& kind = placement.memory_kind;
  if (kind.empty()) return;
  std::string known;
  for (const std::string& one : memory_kinds()) {
    if (one == kind) return;
    known += concat(known.empty() ? "" : ", ", one);
  }
  throw ValueError(concat("Could not find memory addressable by device ", placement.platform, ":",
                          placement.devices.at(0), ". It can address the following memory kinds: ", known,
                          ". Got memory kind: ", kind));
}

// Local arrays without a placement are on the first device of this process.
bool is_first_device(const NamedSharding& placement) {
  return placement.mesh.axis_names.empty() && placement.memory_kind.empty() &&
         placement.devices.at(0) == processes::exchanging().own * config().num_cpu_devices;
}

}  // namespace

Array Backend::put(const Array& x, const NamedSharding& placement) {
  check_devices(placement);
  placement.shard_shape(x.shape());  // raises if the parts would not be equal
  const auto own = is_first_device(placement) ? nullptr : std::make_shared<const NamedSharding>(placement);
  if (x.buffer().device() == Device{"cpu", 0}) return placed_on_host(x, own);
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(x.size() * storage_size(x.dtype())));
  if (x.size() > 0) std::copy(x.raw_data(), x.raw_data() + buffer.size(), buffer.mutable_data());
  return placed_on_host(Array::from_buffer(x.type(), buffer), own);
}

Array Backend::join(const Shape& shape, const NamedSharding& placement, const std::vector<Array>& shards) {
  check_devices(placement);
  if (is_addressable(placement)) return joined_host_shards(shape, placement, shards);
  const std::vector<Array> all = shards_of_all_processes(placement, shards);
  return joined_host_shards(shape, placement, all);
}

}  // namespace capibara
