// Each profile creates a profiler in the plugin, which records from start to stop and then gives an XSpace.
#include "backends/pjrt/plugin_profiler.h"

#include <capibara/error.h>

#include <utility>

#include "backends/pjrt/profiler_api.h"
#include "io/protobuf.h"
#include "profile/devices.h"

namespace capibara::pjrt {

namespace {

// ProfileOptions {2: level of the host, 3: of the device, 5: version}.
std::string profile_options() {
  ProtobufWriter options;
  options.integer(2, 2);
  options.integer(3, 1);
  options.integer(5, 1);
  return options.take();
}

class PluginProfiler : public profile::DeviceRecorder {
 public:
  PluginProfiler(std::shared_ptr<const Plugin> plugin, const abi::ProfilerApi& api)
      : plugin_(std::move(plugin)), api_(api) {}
  ~PluginProfiler() override { destroy(); }

  void start() override {
    const std::string options = profile_options();
    abi::ProfilerCreate create{sizeof create, options.data(), options.size(), nullptr};
    check(api_.create(&create), "create");
    profiler_ = create.profiler;
    try {
      call(api_.start, "start");
    } catch (...) {
      destroy();
      throw;
    }
  }

  std::string stop() override {
    const std::unique_ptr<PluginProfiler, void (*)(PluginProfiler*)> at_end(
        this, [](PluginProfiler* self) { self->destroy(); });
    call(api_.stop, "stop");
    abi::ProfilerCollect collect{sizeof collect, profiler_, nullptr, 0};
    check(api_.collect(&collect), "data");
    if (collect.buffer)
      return std::string(reinterpret_cast<const char*>(collect.buffer), collect.size);  // the plugin lends its own
    std::string bytes(collect.size, '\0');
    collect.buffer = reinterpret_cast<uint8_t*>(bytes.data());
    if (!bytes.empty()) check(api_.collect(&collect), "data");
    return bytes;
  }

 private:
  void call(abi::Error* (*function)(abi::ProfilerCall*), const char* what) {
    abi::ProfilerCall args{sizeof args, profiler_};
    check(function(&args), what);
  }

  void destroy() {
    if (!profiler_) return;
    abi::ProfilerCall args{sizeof args, std::exchange(profiler_, nullptr)};
    if (abi::Error* error = api_.destroy(&args)) take_message(error);
  }

  std::string take_message(abi::Error* error) {
    abi::ErrorMessage message{{sizeof message, nullptr}, error, nullptr, 0};
    api_.error_message(&message);
    std::string text(message.message, message.message_size);
    abi::ErrorDestroy args{{sizeof args, nullptr}, error};
    api_.error_destroy(&args);
    return text;
  }

  void check(abi::Error* error, const char* what) {
    if (error)
      throw RuntimeError(concat("profile: the profiler of ", plugin_->path(), " (", what, "): ", take_message(error)));
  }

  std::shared_ptr<const Plugin> plugin_;
  const abi::ProfilerApi& api_;
  abi::Profiler* profiler_ = nullptr;
};

}  // namespace

void add_profiler(std::shared_ptr<const Plugin> plugin) {
  const auto* extension = static_cast<const abi::ProfilerExtension*>(plugin->extension(abi::profiler_extension));
  if (extension && extension->api)
    profile::add_device_recorder(std::make_unique<PluginProfiler>(std::move(plugin), *extension->api));
}

}  // namespace capibara::pjrt
