// Topology: devices that programs can be compiled for without having them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "backends/pjrt/client.h"

namespace capibara::pjrt {

using TopologyOptions = std::map<std::string, std::variant<bool, int64_t, std::vector<int64_t>, std::string>>;

// "tpu" for names like v5e:4x4, "cuda" for 1x1x4 (slices, hosts per slice, GPUs per host). Raises a ValueError that
// shows both forms.
std::string topology_platform(const std::string& name);

class Topology {
 public:
  // By name. Raises RuntimeError with the plugin that was searched for, or with its error.
  Topology(const std::string& platform, const std::string& name, const TopologyOptions& options);
  explicit Topology(Client& client);  // the devices of a client
  ~Topology();
  Topology(const Topology&) = delete;

  const Plugin& plugin() const { return *plugin_; }
  std::string platform_version() const;
  const std::vector<DeviceInfo>& devices() const { return devices_; }  // without handles
  // For the devices of a client, the client compiles: XLA:CPU's plugin has no compiler without one.
  std::shared_ptr<const Compiled> compile(const std::string& text, const CompileOptions& options,
                                          const std::string& what) const;

 private:
  void list_devices();

  std::shared_ptr<const Plugin> plugin_;
  Client* client_ = nullptr;  // of a topology attached to one
  abi::Topology* topology_ = nullptr;
  std::vector<DeviceInfo> devices_;
};

// Read from "mhlo.num_partitions" in a module's text; 1 if absent.
int64_t partition_count(const std::string& text);

}  // namespace capibara::pjrt
