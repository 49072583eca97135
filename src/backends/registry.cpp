// The list of backends of this build.
#include "backends/backend.h"

#include <capibara/config.h>
#include <capibara/default_device.h>

#include "backends/cpu/execution/backend.h"
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

Backend& backend(const Device& device) {
  if (pjrt::is_platform(device.platform)) return pjrt::backend(device);
  if (device.platform != "cpu") throw ValueError(concat("backend: there is no device ", to_string(device)));
  if (device.id != 0) {
    throw NotImplementedError(concat("computations of the native backend run on cpu:0, got ", to_string(device),
                                     "; choose a plugin's platform, such as JAX_PLATFORMS=xla_cpu, for several devices"));
  }
  const std::string own = first_platform(config().platform);
  return backend(pjrt::is_platform(own) ? native_platform() : own);
}

Backend& default_backend() {
  // Looked up by name when the settings of this thread change, not for every operation.
  thread_local std::size_t settings = 0;
  thread_local Backend* chosen = nullptr;
  if (const std::size_t key = config_key(); !chosen || key != settings) {
    const std::optional<Device>& device = chosen_device();
    chosen = device ? &backend(*device) : &backend(first_platform(config().platform));
    settings = key;
  }
  return *chosen;
}

std::string default_platform() {
  const std::optional<Device>& device = chosen_device();
  if (device) return device->platform;
  const std::string name = first_platform(config().platform);
  return pjrt::is_platform(name) ? pjrt::client(name).platform() : "cpu";
}

std::string lowering_platform() {
  const pjrt::Client* client = pjrt::client_of(default_platform());
  if (!client) return "cpu";
  return client->plugin().platform() == "xla_cpu" ? "cpu" : client->plugin().platform();
}

std::optional<Device> demanded_device(std::span<const Array> inputs) {
  const Device* demanded = nullptr;
  const Array* first = nullptr;
  for (const Array& input : inputs) {
    if (!input.committed()) continue;
    const Device& own = input.buffer().device();
    if (demanded && demanded->platform != own.platform) {
      throw ValueError(concat("Received incompatible devices for jitted computation. Got argument with shape ", to_string(first->type()), " on ",
                              to_string(*demanded), " and argument with shape ", to_string(input.type()), " on ", to_string(own),
                              "; move one of them with device_put"));
    }
    demanded = &own;
    first = &input;
  }
  if (!demanded || demanded->platform == default_platform()) return std::nullopt;
  return *demanded;
}

Arrays as_committed(Arrays outputs) {
  for (Array& output : outputs) {
    if (output.is_tracer() || output.type().ref || output.committed()) continue;
    output = Array::from_buffer(output.type(), output.buffer(), true);
  }
  return outputs;
}

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
