// The backend on top of a plugin: compiles with a cache, launches programs, runs single operations.
#include "backends/pjrt/backend.h"

#include <capibara/config.h>
#include <capibara/error.h>

#include <cstdlib>
#include <map>

#include "backends/discharged.h"
#include "backends/pjrt/calls/cuda_kernels.h"
#include "backends/pjrt/calls/cudnn.h"
#include "backends/pjrt/calls/cusolver.h"
#include "backends/pjrt/executable.h"
#include "backends/pjrt/mosaic/kernels.h"
#include "backends/pjrt/plugin_profiler.h"
#include "backends/pjrt/sharded_buffer.h"
#include "backends/reference/backend.h"
#include "backends/single_operations.h"
#include "core/runtime/compiler_options.h"
#include "core/runtime/disk_cache.h"
#include "program/ir/build.h"
#include "program/trace/discharge.h"

namespace capibara::pjrt {

namespace {

class PjrtBackend final : public Backend {
 public:
  explicit PjrtBackend(std::string platform) : platform_(std::move(platform)) {}
  // The same client with another device for unplaced inputs.
  PjrtBackend(Client& client, std::string platform, int device)
      : platform_(std::move(platform)), device_(device), client_(&client) {}

  std::string name() const override { return platform_; }
  std::string platform() const override { return client().platform(); }
  std::string lowering_platform() const override {
    const std::string& own = client().plugin().platform();
    return own == "xla_cpu" ? "cpu" : own;
  }
  std::vector<DeviceFacts> devices() const override {
    std::vector<DeviceFacts> list;
    for (const DeviceInfo& info : client().devices()) {
      DeviceFacts facts{client().device(info.id), info.kind, info.process, info.addressable, {}, info.default_memory};
      for (const DeviceInfo::Memory& memory : info.memories) facts.memories.push_back(memory.kind);
      list.push_back(std::move(facts));
    }
    return list;
  }
  std::optional<MemoryStats> memory_stats(int device) const override { return client().memory_stats(device); }
  Array put(const Array& x, const NamedSharding& placement) override { return client().put(x, placement); }
  Array join(const Shape& shape, const NamedSharding& placement, const std::vector<Array>& shards) override {
    return join_shards(client(), shape, placement, shards);
  }

  bool supports(const Primitive& primitive) const override {
    return can_prepare(primitive) || reference::backend().supports(primitive);
  }

  std::vector<std::string> ways(const Primitive& primitive) const override {
    if (runs_on_host(primitive)) return {"host"};
    if (can_prepare(primitive)) return {"program"};
    return supports(primitive) ? std::vector<std::string>{"reference"} : std::vector<std::string>{};
  }

  Arrays run(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) override {
    bool refs = false;
    for (const Array& input : inputs) refs = refs || input.type().ref || input.dtype() == DType::token;
    if (refs || holds_refs(attrs) || runs_on_host(primitive) || !can_prepare(primitive))
      return reference::backend().run(primitive, inputs, attrs);
    return single_operations_
        .find(primitive, inputs, attrs, [this](const Program& program) { return compile(program); })
        ->execute(inputs, {});
  }

  std::shared_ptr<Executable> compile(const Program& program) override { return compile_donating(program, {}); }
  std::shared_ptr<Executable> compile_donating(const Program& program, const std::vector<bool>& donated) override {
    if (holds_refs(program)) {
      return compile_on_values(program, donated, [this](const Program& on_values, const std::vector<bool>& given) {
        return compile_donating(on_values, given);
      });
    }
    Client& device = client();
    const Extras extras{has_cuda_kernels(device), [&device] { return has_cusolver(device); },
                        [&device] { return cudnn_capability(device); },
                        device.plugin().platform() == "tpu" && mosaic::are_kernels_enabled()};
    return std::make_shared<PjrtExecutable>(
        device, program, donated, extras, device_.value_or(device.first_device()),
        [this, &device, name = program.name()](const Prepared& prepared, const std::vector<int>& devices) {
          return find(device, prepared, devices, name);
        });
  }

  Client& client() const {
    std::lock_guard lock(mutex_);
    if (!client_) {
      const Candidate candidate = choose(platform_);
      // XLA's own log messages are not meant for users of this library.
      setenv("TF_CPP_MIN_LOG_LEVEL", "3", 0);
      auto plugin = std::make_shared<const Plugin>(candidate.platform, candidate.path);
      client_ = new Client(plugin, config().num_cpu_devices);
      add_profiler(std::move(plugin));
    }
    return *client_;
  }

 private:
  // The compiled program of a text: cached in memory while in use, and on disk.
  std::shared_ptr<Loaded> find(Client& device, const Prepared& prepared, const std::vector<int>& devices,
                               const std::string& name) {
    CompileOptions options = standard_options(device.plugin().platform());
    for (const auto& [name, value] : compiler_options()) options.overrides.insert_or_assign(name, value);
    options.devices.assign(devices.begin(), devices.end());
    options.partitions = std::max<int64_t>(1, static_cast<int64_t>(devices.size()));
    const std::string what = concat("compile of ", name.empty() ? "a program" : name);
    if (prepared.calls) return device.compile(prepared.text, options, what);  // its numbers are per process
    const Digest key = digest(concat("pjrt\n", device.fingerprint(), "\n", options.serialize(), "\n", prepared.text));
    {
      std::lock_guard lock(programs_mutex_);
      if (std::shared_ptr<Loaded> known = programs_[key].lock()) return known;
      if (programs_.size() > max_entries)
        std::erase_if(programs_, [](const auto& entry) { return entry.second.expired(); });
    }
    std::shared_ptr<Loaded> loaded;
    if (std::optional<std::string> bytes = DiskCache::instance().find(key)) loaded = device.load(*bytes);
    if (!loaded) {
      loaded = device.compile(prepared.text, options, what);
      if (std::optional<std::string> bytes = loaded->compiled().serialized()) DiskCache::instance().store(key, *bytes);
    }
    std::lock_guard lock(programs_mutex_);
    programs_[key] = loaded;
    return loaded;
  }

  static constexpr std::size_t max_entries = 4096;
  const std::string platform_;
  const std::optional<int> device_;  // nullopt: the first
  mutable std::mutex mutex_;
  mutable Client* client_ = nullptr;  // never freed, nor is anything that lives on it
  std::mutex programs_mutex_;
  std::map<Digest, std::weak_ptr<Loaded>> programs_;
  SingleOperations single_operations_{max_entries};
};

constexpr const char* platforms[] = {"pjrt", "cuda", "gpu", "rocm", "tpu", "xla_cpu"};

PjrtBackend& instance(const std::string& name) {
  if (!is_platform(name)) throw ValueError(concat("backend: '", name, "' is not a platform of PJRT plugins"));
  static std::mutex mutex;
  static auto* backends = new std::map<std::string, std::unique_ptr<PjrtBackend>>;  // never freed
  std::lock_guard lock(mutex);
  std::unique_ptr<PjrtBackend>& one = (*backends)[name == "gpu" ? "cuda" : name];
  if (!one) one = std::make_unique<PjrtBackend>(name == "gpu" ? "cuda" : name);
  return *one;
}

PjrtBackend* holder_instance(const std::string& platform) {
  std::string own = config().platform;
  own = own.substr(0, own.find(','));
  if (is_platform(own) && instance(own).platform() == platform) return &instance(own);
  return is_platform(platform) ? &instance(platform) : nullptr;
}

}  // namespace

bool is_platform(const std::string& name) {
  for (const char* platform : platforms) {
    if (name == platform) return true;
  }
  return false;
}

Backend& backend(const std::string& name) { return instance(name); }
Client& client(const std::string& name) { return instance(name).client(); }

Backend* holder(const std::string& platform) { return holder_instance(platform); }

Client* client_of(const std::string& platform) {
  PjrtBackend* found = holder_instance(platform);
  return found ? &found->client() : nullptr;
}

Backend& backend(const Device& device) {
  Client* client = client_of(device.platform);
  if (!client) throw ValueError(concat("backend: '", device.platform, "' is not a platform of PJRT plugins"));
  static std::mutex mutex;
  static auto* backends = new std::map<std::pair<Client*, int>, std::unique_ptr<PjrtBackend>>;  // never freed
  std::lock_guard lock(mutex);
  std::unique_ptr<PjrtBackend>& one = (*backends)[{client, device.id}];
  if (!one) {
    if (!client->info(device.id).addressable)
      throw ValueError(concat("backend: ", to_string(device), " belongs to another process"));
    one = std::make_unique<PjrtBackend>(*client, device.platform, device.id);
  }
  return *one;
}

const Loaded* loaded(Executable& executable) {
  auto* own = dynamic_cast<PjrtExecutable*>(&executable);
  return own ? &own->loaded() : nullptr;
}

std::string stablehlo_text(const Program& program) { return prepare(program, {}).text; }

}  // namespace capibara::pjrt
