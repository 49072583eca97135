// Client: the devices of a plugin, with its buffers, events and loaded programs as owning objects.
#pragma once

#include <capibara/analysis.h>
#include <capibara/array.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/pjrt/compile_options.h"
#include "backends/pjrt/plugin.h"
#include "backends/pjrt/staging.h"
#include "core/runtime/once.h"
#include "core/sharding/placed_memory.h"

namespace capibara::pjrt {

class Client;

// The type of an array as a plugin stores it: keys are arrays of their words. Raises TypeError for unsupported types.
struct HostType {
  abi::Type type;
  Shape shape;
};
HostType host_type(const ArrayType& type);

class Event {
 public:
  Event(const Plugin& plugin, abi::Event* event) : plugin_(&plugin), event_(event) {}
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  bool is_ready() const;
  void wait(const std::string& what) const;  // raises the error the event carries
  // The callback runs on any thread, perhaps immediately; the text is empty on success.
  void on_ready(std::function<void(std::string error)> callback) const;

 private:
  const Plugin* plugin_;
  abi::Event* event_;
};

// Memory of one device that a plugin manages. `operation` is named in errors that surface here.
class DeviceBuffer final : public PlacedMemory {
 public:
  // `device` is its id; `memory_kind` is empty for the device's own memory.
  DeviceBuffer(Client& client, abi::Buffer* buffer, const ArrayType& type, int device,
               std::shared_ptr<const std::string> operation = nullptr, std::string memory_kind = "");
  ~DeviceBuffer() override;

  bool is_ready() override;
  void wait() override;
  void copy_to_host(std::byte* to) override;
  void release() override;

  Client& client() const { return client_; }
  abi::Buffer* handle() const { return buffer_; }
  int device() const { return device_; }
  const ArrayType& type() const { return type_; }
  const std::string& memory_kind() const { return memory_kind_; }
  std::shared_ptr<const NamedSharding> placement() const override;

 private:
  const Event& ready();
  std::string what() const { return operation_ ? *operation_ : std::string(); }

  Client& client_;
  abi::Buffer* buffer_;
  ArrayType type_;
  int device_;
  std::shared_ptr<const std::string> operation_;
  std::string memory_kind_;
  Once once_;
  std::optional<Event> ready_;
};

// The output of a plugin's compiler, whether or not there is a device for it.
class Compiled {
 public:
  Compiled(const Plugin& plugin, abi::Executable* executable) : plugin_(&plugin), executable_(executable) {}
  ~Compiled();
  Compiled(const Compiled&) = delete;

  std::size_t output_count() const;
  std::optional<std::string> serialized() const;  // nullopt if the plugin cannot serialize
  MemoryUse memory_analysis() const;
  std::map<std::string, double> cost_analysis() const;
  // The compiled program as XLA's own message (HloModuleProto, perhaps followed by its configuration), and its
  // format.
  std::pair<std::string, std::string> optimized_program() const;

 private:
  const Plugin* plugin_;
  abi::Executable* executable_;
};

// A program loaded on its devices.
class Loaded {
 public:
  Loaded(Client& client, abi::LoadedExecutable* executable);
  ~Loaded();
  Loaded(const Loaded&) = delete;

  std::size_t output_count() const { return output_count_; }
  const Compiled& compiled() const { return *compiled_; }
  // Launches the program and returns immediately. Each device has a list of `argument_count` buffers; the outputs of
  // the first device come first. `kept` are positions of donated inputs that the caller keeps nevertheless. `ended`
  // receives one event per device for its completion; null: no events are created.
  std::vector<abi::Buffer*> execute(std::span<abi::Buffer* const* const> arguments, std::size_t argument_count,
                                    std::span<const int64_t> kept, const std::string& what,
                                    abi::Event** ended = nullptr) const;

 private:
  Client& client_;
  abi::LoadedExecutable* executable_;
  std::unique_ptr<Compiled> compiled_;
  std::size_t output_count_ = 0;
};

// One device of any process of the program.
struct DeviceInfo {
  abi::Device* handle = nullptr;
  int id = 0;
  int process = 0;
  bool addressable = false;  // by this process
  std::string kind, text;
  struct Memory {
    std::string kind;
    abi::Memory* handle;
  };
  std::vector<Memory> memories;  // of addressable devices
  std::string default_memory;
};

class Client {
 public:
  explicit Client(std::shared_ptr<const Plugin> plugin, int cpu_devices = 1);
  // Never destroyed: arrays may live until the process exits.

  const Plugin& plugin() const { return *plugin_; }
  // jax's name for the devices: "gpu", "tpu", or the plugin's own platform.
  const std::string& platform() const { return platform_; }
  std::string platform_version() const;
  int process_index() const { return process_; }
  int device_count() const { return static_cast<int>(devices_.size()); }
  const std::vector<DeviceInfo>& devices() const { return devices_; }  // of all processes
  const DeviceInfo& info(int id) const;                                // raises ValueError listing the devices
  int first_device() const { return first_; }                          // the id of this process's first device
  std::optional<MemoryStats> memory_stats(int device) const;           // nullopt if the plugin keeps no statistics
  Device device(int id) const { return {platform_, id}; }
  bool reads_host_memory() const { return plugin_->platform() == "xla_cpu"; }

  std::unique_ptr<Loaded> compile(const std::string& text, const CompileOptions& options, const std::string& what);
  // Null if the bytes are not a program of this plugin.
  std::unique_ptr<Loaded> load(const std::string& serialized);
  // Identifies what a compiled program depends on besides its text and options.
  std::string fingerprint() const;

  // The array's buffer on the device, copied there if necessary. A copy is cached with the array's buffer.
  std::shared_ptr<DeviceBuffer> buffer_of(const Array& array, int device);
  std::shared_ptr<DeviceBuffer> upload(const Array& array, int device, const std::string& memory_kind = "");
  // Places the array as specified and commits it. Raises ValueError if the placement does not fit the array.
  Array put(const Array& array, const NamedSharding& placement);

  abi::Device* handle(int device) const { return info(device).handle; }
  abi::Memory* memory(int device, const std::string& kind) const;  // raises ValueError listing the kinds
  abi::Client* handle() const { return client_; }
  // For copies between host and device; null if the device shares the host's memory or the array is small.
  std::shared_ptr<std::byte> staging_block(std::size_t bytes) { return staging_ ? staging_->take(bytes) : nullptr; }

 private:
  void list_devices();
  std::string text(abi::Function function) const;

  std::shared_ptr<const Plugin> plugin_;
  abi::Client* client_ = nullptr;
  std::string platform_;
  std::vector<DeviceInfo> devices_;
  int process_ = 0, first_ = 0;
  std::unique_ptr<Staging> staging_;
};

}  // namespace capibara::pjrt
