// The backend over a plugin: compiling with a cache, starting programs, and single operations.
#include "backends/pjrt/backend.h"

#include <capibara/config.h>
#include <capibara/error.h>

#if defined(__linux__)
#include <sys/auxv.h>
#endif

#include <cstdlib>
#include <map>

#include "backends/pjrt/cuda_kernels.h"
#include "backends/pjrt/cusolver.h"
#include "backends/pjrt/prepare.h"
#include "backends/reference/backend.h"
#include "backends/single_operations.h"
#include "program/build.h"
#include "runtime/disk_cache.h"

namespace capibara::pjrt {

namespace {

bool holds_refs(const Program& program) {
  for (const ArrayType& type : program.body().var_types) {
    if (type.ref) return true;
  }
  return false;
}

class PjrtExecutable final : public Executable {
 public:
  PjrtExecutable(Client& client, const Program& program, Prepared prepared, std::shared_ptr<Loaded> loaded, std::vector<bool> donated)
      : client_(client), types_(program.output_types()), calls_(std::move(prepared.calls)), loaded_(std::move(loaded)),
        donated_(std::move(donated)), name_(std::make_shared<const std::string>(program.name().empty() ? "program" : program.name())) {
    for (const Array& constant : prepared.constants) constants_.push_back(client.buffer_of(constant, device_));
  }

  Arrays execute(std::span<const Array> inputs, const std::vector<bool>& donated) override {
    std::vector<std::shared_ptr<DeviceBuffer>> held;
    std::vector<abi::Buffer*> arguments;
    held.reserve(inputs.size());
    arguments.reserve(inputs.size() + constants_.size());
    for (const Array& input : inputs) {
      held.push_back(client_.buffer_of(input, device_));
      arguments.push_back(held.back()->handle());
    }
    for (const auto& constant : constants_) arguments.push_back(constant->handle());
    // What was compiled as donated and is not given away this time.
    std::vector<int64_t> kept;
    for (std::size_t i = 0; i < donated_.size(); ++i) {
      if (donated_[i] && (i >= donated.size() || !donated[i])) kept.push_back(static_cast<int64_t>(i));
    }
    const std::vector<abi::Buffer*> results = start(arguments, kept);
    Arrays outputs;
    outputs.reserve(results.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      auto memory = std::make_shared<DeviceBuffer>(client_, results[i], types_[i], device_, name_);
      const auto bytes = static_cast<std::size_t>(types_[i].size() * storage_size(types_[i].dtype));
      outputs.push_back(Array::from_buffer(types_[i], Buffer::on_device(std::move(memory), bytes, client_.device(device_))));
    }
    for (std::size_t i = 0; i < donated.size(); ++i) {
      if (donated[i]) inputs[i].delete_buffers();
    }
    return outputs;
  }

  const Loaded& loaded() const { return *loaded_; }

 private:
  std::vector<abi::Buffer*> start(std::span<abi::Buffer* const> arguments, std::span<const int64_t> kept) {
    // Where nothing comes back, nobody would learn of an error later on.
    if (!calls_ && loaded_->output_count() > 0) return loaded_->execute(arguments, kept, *name_);
    std::vector<abi::Buffer*> results;
    auto run = [&] {
      abi::Event* ended = nullptr;
      results = loaded_->execute(arguments, kept, *name_, &ended);
      if (ended) Event(client_.plugin(), ended).wait(*name_);
    };
    if (calls_) calls_->serve(run);
    else run();
    return results;
  }

  Client& client_;
  Types types_;
  std::shared_ptr<HostCalls> calls_;
  std::shared_ptr<Loaded> loaded_;
  std::vector<bool> donated_;
  std::shared_ptr<const std::string> name_;
  std::vector<std::shared_ptr<DeviceBuffer>> constants_;
  int device_ = 0;
};

// XLA generates SVE code by the name of the processor, also where the system does not let programs use it. Without
// optimisation it generates none.
bool hides_vectors() {
#if defined(__aarch64__) && defined(__linux__)
  constexpr unsigned long sve = 1ul << 22;
  return (getauxval(AT_HWCAP) & sve) == 0;
#else
  return false;
#endif
}

// A program that holds mutable references runs operation by operation: each of them on the device.
bool runs_by_operation(const Program& program) { return holds_refs(program); }

class PjrtBackend final : public Backend {
 public:
  explicit PjrtBackend(std::string platform) : platform_(std::move(platform)) {}

  std::string name() const override { return platform_; }
  int device_count() const override { return const_cast<PjrtBackend*>(this)->client().device_count(); }
  bool supports(const Primitive& primitive) const override { return can_prepare(primitive) || reference::backend().supports(primitive); }

  Arrays run(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) override {
    bool refs = false;
    for (const Array& input : inputs) refs = refs || input.type().ref || input.dtype() == DType::token;
    if (refs || runs_on_host(primitive) || !can_prepare(primitive)) return reference::backend().run(primitive, inputs, attrs);
    return single_operations_.find(primitive, inputs, attrs, [this](const Program& program) { return compile(program); })->execute(inputs, {});
  }

  std::shared_ptr<Executable> compile(const Program& program) override { return compile_donating(program, {}); }
  std::shared_ptr<Executable> compile_donating(const Program& program, const std::vector<bool>& donated) override {
    if (runs_by_operation(program)) return reference::backend().compile(program);
    Client& device = client();
    Prepared prepared = prepare(program, donated, {has_cuda_kernels(device), [&] { return has_cusolver(device); }});
    if (prepared.calls) register_host_calls(device);
    std::shared_ptr<Loaded> loaded = find(device, prepared, program.name());
    return std::make_shared<PjrtExecutable>(device, program, std::move(prepared), std::move(loaded), donated);
  }

  Client& client() {
    std::lock_guard lock(mutex_);
    if (!client_) {
      const Candidate candidate = choose(platform_);
      // What XLA says of its own state is not for the user of this library.
      setenv("TF_CPP_MIN_LOG_LEVEL", "3", 0);
      client_ = new Client(std::make_shared<const Plugin>(candidate.platform, candidate.path), config().num_cpu_devices);
    }
    return *client_;
  }

 private:
  // The program of a text: in memory while somebody runs it, and on disk.
  std::shared_ptr<Loaded> find(Client& device, const Prepared& prepared, const std::string& name) {
    CompileOptions options;
    options.overrides = overrides_from_environment();
    if (device.reads_host_memory() && hides_vectors()) options.overrides.try_emplace("xla_backend_optimization_level", int64_t{0});
    const std::string what = concat("compile of ", name.empty() ? "a program" : name);
    if (prepared.calls) return device.compile(prepared.text, options, what);  // its numbers hold in this process alone
    const Digest key = digest(concat("pjrt\n", device.fingerprint(), "\n", options.serialize(), "\n", prepared.text));
    {
      std::lock_guard lock(programs_mutex_);
      if (std::shared_ptr<Loaded> known = programs_[key].lock()) return known;
      if (programs_.size() > most_entries) std::erase_if(programs_, [](const auto& entry) { return entry.second.expired(); });
    }
    std::shared_ptr<Loaded> loaded;
    if (std::optional<std::string> bytes = DiskCache::instance().find(key)) loaded = device.load(*bytes);
    if (!loaded) {
      loaded = device.compile(prepared.text, options, what);
      if (std::optional<std::string> bytes = loaded->serialized()) DiskCache::instance().store(key, *bytes);
    }
    std::lock_guard lock(programs_mutex_);
    programs_[key] = loaded;
    return loaded;
  }

  // CAPIBARA_XLA_OPTIONS="xla_gpu_autotune_level=0 xla_cpu_enable_fast_math=False": settings of XLA, checked by the plugin.
  static std::map<std::string, std::variant<bool, int64_t, double, std::string>> overrides_from_environment() {
    std::map<std::string, std::variant<bool, int64_t, double, std::string>> overrides;
    const char* variable = std::getenv("CAPIBARA_XLA_OPTIONS");
    const std::string text = variable ? variable : "";
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find(' ', begin), text.size());
      const std::string word = text.substr(begin, end - begin);
      begin = end + 1;
      if (word.empty()) continue;
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos) throw ValueError(concat("CAPIBARA_XLA_OPTIONS: expected NAME=VALUE, got '", word, "'"));
      overrides[word.substr(0, equals)] = word.substr(equals + 1);
    }
    return overrides;
  }

  static constexpr std::size_t most_entries = 4096;
  const std::string platform_;
  std::mutex mutex_;
  Client* client_ = nullptr;  // never freed, as everything that lives on it
  std::mutex programs_mutex_;
  std::map<Digest, std::weak_ptr<Loaded>> programs_;
  SingleOperations single_operations_{most_entries};
};

constexpr const char* platforms[] = {"pjrt", "cuda", "gpu", "rocm", "tpu", "xla_cpu"};

PjrtBackend& instance(const std::string& name) {
  if (!is_platform(name)) throw ValueError(concat("backend: '", name, "' is no platform of PJRT plugins"));
  static std::mutex mutex;
  static auto* backends = new std::map<std::string, std::unique_ptr<PjrtBackend>>;  // never freed
  std::lock_guard lock(mutex);
  std::unique_ptr<PjrtBackend>& one = (*backends)[name == "gpu" ? "cuda" : name];
  if (!one) one = std::make_unique<PjrtBackend>(name == "gpu" ? "cuda" : name);
  return *one;
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

const Loaded* loaded(const Executable& executable) {
  const auto* own = dynamic_cast<const PjrtExecutable*>(&executable);
  return own ? &own->loaded() : nullptr;
}

std::string stablehlo_text(const Program& program) { return prepare(program, {}).text; }

}  // namespace capibara::pjrt
