// Devices and platforms from Python: which there are, and which one programs run on.
#include <capibara/config.h>
#include <capibara/device.h>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "backends/pjrt/backend.h"
#include "bindings.h"

namespace capibara::python {

namespace {

// Rows of (platform, id, kind, text).
nb::list list_devices(const std::string& platform) {
  const std::string name = platform.empty() ? config().platform : platform;
  nb::list rows;
  for (const Device& device : jax::devices(name)) {
    std::string kind = device.platform, text;
    if (pjrt::is_platform(name)) {
      kind = pjrt::client(name).device_kind(device.id);
      text = pjrt::client(name).device_text(device.id);
    }
    rows.append(nb::make_tuple(device.platform, device.id, kind, text));
  }
  return rows;
}

nb::object memory_stats(const std::string& platform, int id) {
  if (!pjrt::is_platform(platform)) return nb::none();
  const pjrt::MemoryStats stats = pjrt::client(platform).memory_stats(id);
  nb::dict all;
  all["bytes_in_use"] = stats.bytes_in_use;
  if (stats.peak_bytes_in_use) all["peak_bytes_in_use"] = *stats.peak_bytes_in_use;
  if (stats.bytes_limit) all["bytes_limit"] = *stats.bytes_limit;
  return all;
}

}  // namespace

void bind_devices(nb::module_& m) {
  m.def("devices", &list_devices);
  m.def("memory_stats", &memory_stats);
  m.def("platform", [] { return config().platform; });
  m.def("is_plugin_platform", &pjrt::is_platform);
  m.def("set_platform", [](const std::string& name) {
    Config next = config();
    next.platform = name;
    update_config(next);
  });
  m.def("add_package_folders", &pjrt::add_package_folders);
  m.def("array_device", [](const Array& array) {
    const Device device = array.device();
    return nb::make_tuple(device.platform, device.id);
  });
}

}  // namespace capibara::python
