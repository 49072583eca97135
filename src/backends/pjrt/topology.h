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

// "tpu" for v5e:4x4 and its kin, "cuda" for 1x1x4 (slices, hosts of each, GPUs of each). Raises ValueError that shows
// both forms.
std::string topology_platform(const std::string& name);

class Topology {
 public:
  // By name. Raises RuntimeError naming the plugin that was looked for, or what it said.
  Topology(const std::string& platform, const std::string& name, const TopologyOptions& options);
  explicit Topology(Client& client);  // the devices that a client has
  ~Topology();
  Topology(const Topology&) = delete;

  const Plugin& plugin() const { return *plugin_; }
  std::string platform_version() const;
  const std::vector<DeviceInfo>& devices() const { return devices_; }  // without handles
  // The devices that a client has are compiled for by the client: XLA:CPU's plugin has no compiler without one.
  std::shared_ptr<const Compiled> compile(const std::string& text, const CompileOptions& options,
                                          const std::string& what) const;

 private:
  void list_devices();

  std::shared_ptr<const Plugin> plugin_;
  Client* client_ = nullptr;  // of an attached topology
  abi::Topology* topology_ = nullptr;
  std::vector<DeviceInfo> devices_;
};

// Counted from "mhlo.num_partitions" of a module's text; 1 where it says nothing.
int64_t partition_count(const std::string& text);

}  // namespace capibara::pjrt
