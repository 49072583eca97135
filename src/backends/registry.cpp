// The list of backends of this build.
#include "backends/backend.h"

#include <capibara/config.h>
#include <capibara/device.h>

#include "backends/cpu/backend.h"
#include "backends/reference/backend.h"

namespace capibara {

namespace {

struct Entry {
  const char* name;
  Backend& (*get)();
};

constexpr Entry entries[] = {{"cpu", cpu::backend}, {"reference", reference::backend}};

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
  std::string known;
  for (const Entry& entry : entries) known += concat(known.empty() ? "" : ", ", "'", entry.name, "'");
  throw ValueError(concat("backend: unknown name '", name, "'; this build has ", known));
}

Backend& default_backend() { return backend(config().platform); }

namespace jax {

std::vector<Device> devices(const std::string& platform) {
  if (!platform.empty() && platform != "cpu") {
    throw RuntimeError(concat("devices: unknown platform '", platform, "'; this build has 'cpu'"));
  }
  std::vector<Device> list;
  for (int id = 0; id < default_backend().device_count(); ++id) list.push_back(Device{"cpu", id});
  return list;
}

std::vector<Device> local_devices(const std::string& platform) { return devices(platform); }
int device_count(const std::string& platform) { return static_cast<int>(devices(platform).size()); }

}  // namespace jax
}  // namespace capibara
