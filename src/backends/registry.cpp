// Finds backends by name, platform and device.
#include "backends/backend.h"

#include <capibara/config.h>
#include <capibara/default_device.h>

#include "backends/profile_watch.h"
#include "core/processes/job.h"

#include <algorithm>

namespace capibara {

namespace {

const BackendFamily* family_of(const std::string& platform) {
  for (const BackendFamily& family : backend_families()) {
    if (family.serves(platform)) return &family;
  }
  return nullptr;
}

bool has_own_devices(const std::string& platform) {
  const BackendFamily* family = family_of(platform);
  return family && family->on;
}

Backend* plugin_holder(const std::string& platform) {
  for (const BackendFamily& family : backend_families()) {
    if (!family.holder) continue;
    if (Backend* found = family.holder(platform)) return found;
  }
  return nullptr;
}

// Programs run on the first platform of a list such as "cuda,cpu".
std::string first_platform(const std::string& platforms) { return platforms.substr(0, platforms.find(',')); }

}  // namespace

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const BackendFamily& family : backend_families()) names.push_back(family.name);
  return names;
}

Backend& backend(const std::string& name) {
  processes::note_use();
  if (const BackendFamily* family = family_of(name)) return family->get(name);
  std::string known;
  for (const std::string& own : backend_names()) known += concat(known.empty() ? "" : ", ", "'", own, "'");
  throw ValueError(concat("backend: unknown name '", name, "'; this build has ", known,
                          ", and plugins for 'cuda', 'rocm', 'tpu', 'xla_cpu'"));
}

Backend& backend(const Device& device) {
  if (has_own_devices(device.platform)) return family_of(device.platform)->on(device);
  const int count = std::max(1, config().num_cpu_devices) * processes::exchanging().count;
  if (device.platform != "cpu" || device.id < 0 || device.id >= count)
    throw ValueError(concat("backend: there is no device ", to_string(device)));
  // All devices of the host are lanes of one backend: the placements of arrays record which lane holds what.
  const std::string own = first_platform(config().platform);
  return backend(has_own_devices(own) ? native_platform() : own);
}

Backend& holder(const std::string& platform) {
  Backend* found = plugin_holder(platform);
  return found ? *found : backend(native_platform());
}

Backend& default_backend() {
  // Looked up by name only when the settings of this thread change, not for every operation.
  thread_local struct {
    std::size_t settings = 0;
    Backend* chosen = nullptr;
  } own;
  if (const std::size_t key = config_key(); !own.chosen || key != own.settings) {
    at_first_operation();
    const std::optional<Device>& device = chosen_device();
    own.chosen = device ? &backend(*device) : &backend(first_platform(config().platform));
    own.settings = key;
  }
  return *own.chosen;
}

std::string default_platform() {
  const std::optional<Device>& device = chosen_device();
  if (device) return device->platform;
  const std::string name = first_platform(config().platform);
  return has_own_devices(name) ? backend(name).platform() : "cpu";
}

std::string lowering_platform() { return holder(default_platform()).lowering_platform(); }

std::optional<Device> demanded_device(std::span<const Array> inputs) {
  const Device* demanded = nullptr;
  const Array* first = nullptr;
  for (const Array& input : inputs) {
    if (!input.committed()) continue;
    const Device& own = input.buffer().device();
    if (demanded && demanded->platform != own.platform) {
      throw ValueError(concat("Received incompatible devices for jitted computation. Got argument with shape ",
                              to_string(first->type()), " on ", to_string(*demanded), " and argument with shape ",
                              to_string(input.type()), " on ", to_string(own), "; move one of them with device_put"));
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

std::vector<DeviceFacts> device_facts(const std::string& platform) {
  const std::string name = first_platform(platform.empty() ? config().platform : platform);
  if (!family_of(name)) {
    throw RuntimeError(
        concat("Unknown backend ", name, ": this build has 'cpu', and plugins for 'cuda', 'rocm', 'tpu', 'xla_cpu'"));
  }
  return backend(name).devices();
}

namespace jax {

std::vector<Device> devices(const std::string& platform) {
  std::vector<Device> list;
  for (const DeviceFacts& facts : device_facts(platform)) list.push_back(facts.device);
  return list;
}

std::vector<Device> local_devices(const std::string& platform) {
  std::vector<Device> list;
  for (const DeviceFacts& facts : device_facts(platform)) {
    if (facts.addressable) list.push_back(facts.device);
  }
  return list;
}

int device_count(const std::string& platform) { return static_cast<int>(devices(platform).size()); }

}  // namespace jax
}  // namespace capibara
