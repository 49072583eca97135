// The client: its devices, which share the memory of the process, their memories and the topology.
#include <capibara/config.h>
#include <capibara/error.h>
#include <capibara/version.h>

#include <algorithm>
#include <cstdlib>

#include "backends/backend.h"
#include "backends/pjrt/server/callbacks.h"
#include "backends/pjrt/server/objects.h"
#include "core/runtime/processor.h"

namespace capibara::pjrt::server {

namespace {

constexpr const char* platform = "cpu";  // jax lowers for it: callbacks, LAPACK and donation depend on this name
constexpr const char* memory_kinds[] = {"device", "pinned_host", "unpinned_host"};
constexpr int64_t stablehlo_current[] = {1, 17, 0}, stablehlo_minimum[] = {0, 15, 0};

template <class Args>
void set_text(Args& args, const std::string& text) {
  args.text = text.data();
  args.size = text.size();
}

// The version and the kind of processor: jax uses this text in its key for cached compiled programs.
std::string platform_version() {
#if defined(__x86_64__)
  static constexpr const char* levels[] = {"x86_64", "x86_64 with AVX2", "x86_64 with AVX-512", "x86_64 with VNNI",
                                           "x86_64 with AMX"};
  return concat("capibara ", version(), " on ", levels[static_cast<int>(cpu_level())]);
#else
  return concat("capibara ", version(), " on aarch64");
#endif
}

// ---- the plugin ----------------------------------------------------------------------------------------------------

void plugin_initialize(abi::PluginInitialize&) {}

void plugin_attributes(abi::PluginAttributes& args) {
  static const auto* attributes = [] {
    auto* values = new NamedValues;
    values->integer("xla_version", 2);
    values->integers("stablehlo_current_version", {std::begin(stablehlo_current), std::end(stablehlo_current)});
    values->integers("stablehlo_minimum_version", {std::begin(stablehlo_minimum), std::end(stablehlo_minimum)});
    return values;
  }();
  args.attributes = attributes->list().data();
  args.count = attributes->list().size();
}

// ---- clients -------------------------------------------------------------------------------------------------------

void client_create(abi::ClientCreate& args) {
  int64_t count = 1;
  auto client = std::make_unique<abi::Client>();
  for (std::size_t i = 0; i < args.option_count; ++i) {
    const abi::NamedValue& option = args.options[i];
    const std::string name(option.name, option.name_size);
    if (name != "cpu_device_count" && name != "python_call") {
      throw Failure(Code::invalid_argument,
                    concat("there is no client option '", name, "', expected cpu_device_count or python_call"));
    }
    if (option.type != abi::named_integer)
      throw Failure(Code::invalid_argument, concat("client option '", name, "' must be an integer"));
    if (name == "python_call")
      client->python_call = reinterpret_cast<void*>(option.integer);
    else
      count = option.integer;
  }
  ffi::set_finder([call = client->python_call](const std::string& name) { return python_target(call, name); });
  constexpr int64_t most_devices = 4096;
  if (count < 1 || count > most_devices) {
    throw Failure(Code::invalid_argument,
                  concat("client option 'cpu_device_count' must be from 1 to ", most_devices, ", got ", count));
  }
  // Programs see as many devices as their client has.
  Config settings = config();
  settings.num_cpu_devices = std::max(settings.num_cpu_devices, static_cast<int>(count));
  update_config(settings);
  capibara::backend("cpu");  // raises if the compiler is missing
  client->version = platform_version();
  for (int id = 0; id < count; ++id) {
    auto device = std::make_unique<abi::Device>();
    device->client = client.get();
    device->description = {id, "cpu", concat("CapibaraDevice(id=", id, ")")};
    for (int kind = 0; kind < static_cast<int>(std::size(memory_kinds)); ++kind) {
      auto memory = std::make_unique<abi::Memory>();
      *memory = {static_cast<int>(client->owned_memories.size()), kind, memory_kinds[kind],
                 concat(memory_kinds[kind], " of device ", id), device.get()};
      device->memories.push_back(memory.get());
      client->memories.push_back(memory.get());
      client->owned_memories.push_back(std::move(memory));
    }
    client->devices.push_back(device.get());
    client->topology.descriptions.push_back(&device->description);
    client->owned_devices.push_back(std::move(device));
  }
  client->topology.platform = platform;
  client->topology.version = client->version;
  args.client = client.release();
}

void client_destroy(abi::ClientDestroy& args) { delete args.client; }

void client_platform(abi::ClientName& args) { set_text(args, args.client->topology.platform); }

void client_version(abi::ClientName& args) { set_text(args, args.client->version); }

void client_process(abi::ClientProcessIndex& args) { args.index = 0; }

void client_devices(abi::ClientDevices& args) {
  args.devices = args.client->devices.data();
  args.count = args.client->devices.size();
}

void client_memories(abi::ClientMemories& args) {
  args.memories = args.client->memories.data();
  args.count = args.client->memories.size();
}

void lookup_device(abi::ClientLookup& args) {
  const auto known = static_cast<int32_t>(args.client->devices.size());
  if (args.id < 0 || args.id >= known)
    throw Failure(Code::not_found, concat("there is no device ", args.id, ", there are ", known));
  args.device = args.client->devices[static_cast<std::size_t>(args.id)];
}

void default_assignment(abi::ClientDefaultAssignment& args) {
  const int64_t needed = static_cast<int64_t>(args.replicas) * args.partitions;
  if (needed > static_cast<int64_t>(args.client->devices.size()) || needed > static_cast<int64_t>(args.size)) {
    throw Failure(Code::invalid_argument, concat("an assignment of ", needed, " devices does not fit ",
                                                 args.client->devices.size(), " devices and room for ", args.size));
  }
  for (int32_t i = 0; i < needed; ++i) args.devices[i] = i;
}

void client_topology(abi::ClientTopology& args) { args.topology = &args.client->topology; }

// ---- devices -------------------------------------------------------------------------------------------------------

void device_description(abi::DeviceDescriptionOf& args) { args.description = &args.device->description; }

void device_is_addressable(abi::DeviceIsAddressable& args) { args.is_addressable = true; }

void device_local_id(abi::DeviceLocalId& args) { args.id = args.device->description.id; }

void device_memories(abi::DeviceMemories& args) {
  args.memories = args.device->memories.data();
  args.count = args.device->memories.size();
}

void device_default_memory(abi::DeviceDefaultMemory& args) { args.memory = args.device->memories[0]; }

void description_id(abi::DescriptionId& args) { args.id = args.description->id; }

void description_process(abi::DescriptionId& args) { args.id = 0; }

void description_kind(abi::DescriptionText& args) { set_text(args, args.description->kind); }

void description_text(abi::DescriptionText& args) { set_text(args, args.description->text); }

void description_attributes(abi::DescriptionAttributes& args) {
  args.attributes = nullptr;
  args.count = 0;
}

// ---- memories ------------------------------------------------------------------------------------------------------

void memory_id(abi::MemoryNumber& args) { args.number = args.memory->id; }

void memory_kind(abi::MemoryKind& args) {
  args.kind = args.memory->kind.data();
  args.size = args.memory->kind.size();
}

void memory_kind_id(abi::MemoryNumber& args) { args.number = args.memory->kind_id; }

void memory_text(abi::MemoryText& args) { set_text(args, args.memory->text); }

void memory_devices(abi::MemoryDevices& args) {
  args.devices = &args.memory->device;
  args.count = 1;
}

// ---- topologies ----------------------------------------------------------------------------------------------------

void topology_platform(abi::TopologyText& args) { set_text(args, args.topology->platform); }

void topology_version(abi::TopologyText& args) { set_text(args, args.topology->version); }

void topology_devices(abi::TopologyDevices& args) {
  args.descriptions = args.topology->descriptions.data();
  args.count = args.topology->descriptions.size();
}

void topology_attributes(abi::TopologyAttributes& args) {
  args.attributes = nullptr;
  args.count = 0;
}

}  // namespace

void add_client_functions(Table& table) {
  using F = abi::Function;
  table.add<plugin_initialize>(F::plugin_initialize);
  table.add<plugin_attributes>(F::plugin_attributes);
  table.add<client_create>(F::client_create);
  table.add<client_destroy>(F::client_destroy);
  table.add<client_platform>(F::client_platform_name);
  table.add<client_version>(F::client_platform_version);
  table.add<client_process>(F::client_process_index);
  table.add<client_devices>(F::client_devices);
  table.add<client_devices>(F::client_addressable_devices);
  table.add<client_memories>(F::client_addressable_memories);
  table.add<lookup_device>(F::client_lookup_device);
  table.add<lookup_device>(F::client_lookup_addressable_device);
  table.add<default_assignment>(F::client_default_assignment);
  table.add<client_topology>(F::client_topology);
  table.add<device_description>(F::device_description);
  table.add<device_is_addressable>(F::device_is_addressable);
  table.add<device_local_id>(F::device_local_hardware_id);
  table.add<device_memories>(F::device_memories);
  table.add<device_default_memory>(F::device_default_memory);
  table.add<description_id>(F::description_id);
  table.add<description_process>(F::description_process);
  table.add<description_kind>(F::description_kind);
  table.add<description_text>(F::description_debug_string);
  table.add<description_text>(F::description_string);
  table.add<description_attributes>(F::description_attributes);
  table.add<memory_id>(F::memory_id);
  table.add<memory_kind>(F::memory_kind);
  table.add<memory_kind_id>(F::memory_kind_id);
  table.add<memory_text>(F::memory_debug_string);
  table.add<memory_text>(F::memory_string);
  table.add<memory_devices>(F::memory_devices);
  table.add<topology_platform>(F::topology_platform);
  table.add<topology_version>(F::topology_version);
  table.add<topology_devices>(F::topology_devices);
  table.add<topology_attributes>(F::topology_attributes);
}

}  // namespace capibara::pjrt::server
