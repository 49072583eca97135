// Devices and platforms from Python: listing them, and selecting the one that programs run on.
#include <capibara/config.h>
#include <capibara/default_device.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "backends/backend.h"
#include "backends/cpu/execution/backend.h"
#include "backends/pjrt/backend.h"
#include "bindings.h"
#include "core/runtime/arena.h"
#include "core/runtime/disk_cache.h"
#include "core/runtime/transfer_guard.h"

namespace capibara::python {

namespace {

// Rows of (platform, id, kind, process, addressable, memory kinds, default memory kind).
nb::list list_devices(const std::string& platform) {
  nb::list rows;
  for (const DeviceFacts& facts : device_facts(platform)) {
    nb::list memories;
    for (const std::string& memory : facts.memories) memories.append(memory);
    rows.append(nb::make_tuple(facts.device.platform, facts.device.id, facts.kind, facts.process, facts.addressable,
                               memories, facts.default_memory));
  }
  return rows;
}

nb::object memory_stats(const std::string& platform, int id) {
  const std::optional<MemoryStats> stats = holder(platform).memory_stats(id);
  if (!stats) return nb::none();
  nb::dict all;
  all["bytes_in_use"] = stats->bytes_in_use;
  if (stats->peak_bytes_in_use) all["peak_bytes_in_use"] = *stats->peak_bytes_in_use;
  if (stats->bytes_limit) all["bytes_limit"] = *stats->bytes_limit;
  if (stats->num_allocs) all["num_allocs"] = *stats->num_allocs;
  if (stats->largest_alloc_size) all["largest_alloc_size"] = *stats->largest_alloc_size;
  return all;
}

// Bytes of arrays and of temporaries of at least 64 KiB: (in use, peak since the last reset).
nb::tuple host_memory(bool reset) {
  if (reset) arena::trim();
  const arena::Usage usage = arena::usage();
  return nb::make_tuple(usage.in_use, usage.peak_in_use);
}

void set_guard(int direction, nb::handle value, bool of_thread) {
  const auto place = static_cast<transfer::Direction>(direction);
  std::optional<transfer::Guard> guard;
  if (!value.is_none()) guard = transfer::guard_named(nb::cast<std::string>(value));
  if (of_thread)
    transfer::set_for_thread(place, guard);
  else
    transfer::set_default(place, guard.value_or(transfer::Guard::allow));
}

using DeviceName = std::optional<std::pair<std::string, int>>;  // (platform, number)

std::optional<Device> named_device(const DeviceName& name) {
  if (!name) return std::nullopt;
  const Device device{name->first, name->second};
  backend(device);  // raises if nothing can run there
  return device;
}

// A thread-local scope, opened and closed by Python's with statement.
struct PythonDeviceScope {
  std::optional<Device> device;
  std::unique_ptr<DefaultDeviceScope> open;
};

}  // namespace

void bind_devices(nb::module_& m) {
  m.def("default_device", []() -> DeviceName {
    const std::optional<Device>& device = chosen_device();
    return device ? DeviceName(std::pair(device->platform, device->id)) : std::nullopt;
  });
  m.def(
      "set_default_device", [](const DeviceName& device) { set_default_device(named_device(device)); },
      nb::arg().none());
  nb::class_<PythonDeviceScope>(m, "DefaultDeviceScope")
      .def(
          "__init__",
          [](PythonDeviceScope* self, const DeviceName& device) {
            new (self) PythonDeviceScope{named_device(device), nullptr};
          },
          nb::arg().none())
      .def("__enter__", [](PythonDeviceScope& self) { self.open = std::make_unique<DefaultDeviceScope>(self.device); })
      .def("__exit__", [](PythonDeviceScope& self, nb::args) { self.open.reset(); });
  m.def("disk_cache_folder", [] { return DiskCache::instance().folder(); });
  m.def("move_disk_cache", [](const std::string& folder, int64_t limit) {
    DiskCache::instance().move_to(folder, limit > 0 ? static_cast<uint64_t>(limit) : DiskCache::default_limit);
  });
  m.def("set_async_dispatch", &cpu::set_async_dispatch);
  m.def("lowering_platform", &lowering_platform);
  m.def("devices", &list_devices);
  m.def("memory_stats", &memory_stats);
  m.def("host_memory", &host_memory, nb::arg("reset") = false);
  m.def("platform", [] { return config().platform; });
  m.def("is_plugin_platform", &pjrt::is_platform);
  m.def("set_platform", [](const std::string& name) {
    Config next = config();
    next.platform = name;
    update_config(next);
  });
  m.def("add_package_folders", &pjrt::add_package_folders);
  m.def("array_device", [](const Array& array) {
    const std::optional<NamedSharding> placed = array.is_tracer() ? std::nullopt : jax::placement(array);
    const Device device =
        placed && placed->platform == "cpu" ? Device{placed->platform, placed->devices.at(0)} : array.device();
    return nb::make_tuple(device.platform, device.id);
  });
  m.def("set_transfer_guard", &set_guard, nb::arg("direction"), nb::arg("guard").none(), nb::arg("of_thread"));
}

}  // namespace capibara::python
