// The list of backends of this build.
#include "backends/backend.h"

#include <capibara/config.h>
#include <capibara/device.h>

#include "backends/cpu/backend.h"
#include "backends/pjrt/backend.h"
#include "backends/reference/backend.h"

namespace capibara {

namespace {

struct Entry {
  const char* name;
  Backend& (*get)();
};

Backend& any_plugin() { return pjrt::backend("pjrt"); }

constexpr Entry entries[] = {{"cpu", cpu::backend}, {"reference", reference::backend}, {"pjrt", any_plugin}};

// Programs run on the first of a list such as "cuda,cpu".
std::string first_platform(const std::string& platforms) { return platforms.substr(0, platforms.find(',')); }

}  // namespace

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.push_back(entry.name);
  return names;
}

Backend& backend(const std::string& name) {
  for (const Entry& entry : entries) {
    if (name == entry.name) return entry.get();
  }
  if (pjrt::is_platform(name)) return pjrt::backend(name);
  std::string known;
  for (const Entry& entry : entries) known += concat(known.empty() ? "" : ", ", "'", entry.name, "'");
  throw ValueError(concat("backend: unknown name '", name, "'; this build has ", known, ", and plugins for 'cuda', 'rocm', 'tpu', 'xla_cpu'"));
}

Backend& default_backend() { return backend(first_platform(config().platform)); }

namespace jax {

std::vector<Device> devices(const std::string& platform) {
  const std::string name = first_platform(platform.empty() ? capibara::config().platform : platform);
  std::vector<Device> list;
  if (pjrt::is_platform(name)) {
    pjrt::Client& client = pjrt::client(name);
    for (const pjrt::DeviceInfo& info : client.devices()) list.push_back(client.device(info.id));
    return list;
  }
  if (name != "cpu" && name != "reference") {
    throw RuntimeError(concat("Unknown backend ", name, ": this build has 'cpu', and plugins for 'cuda', 'rocm', 'tpu', 'xla_cpu'"));
  }
  for (int id = 0; id < capibara::config().num_cpu_devices; ++id) list.push_back(Device{"cpu", id});
  return list;
}

std::vector<Device> local_devices(const std::string& platform) {
  const std::string name = first_platform(platform.empty() ? capibara::config().platform : platform);
  if (!pjrt::is_platform(name)) return devices(name);
  pjrt::Client& client = pjrt::client(name);
  std::vector<Device> list;
  for (const pjrt::DeviceInfo& info : client.devices()) {
    if (info.addressable) list.push_back(client.device(info.id));
  }
  return list;
}
int device_count(const std::string& platform) { return static_cast<int>(devices(platform).size()); }

}  // namespace jax
}  // namespace capibara
