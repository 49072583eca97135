// Each profile creates a profiler in the plugin, which records from start to stop and then gives an XSpace.
#include "backends/pjrt/plugin_profiler.h"

#include <capibara/error.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/pjrt/api.h"
#include "core/profile/devices.h"
#include "io/files/protobuf.h"

// Layouts of the profiler extension: arguments begin with just their size, those about errors with a Head.

namespace capibara::pjrt::abi {

struct Profiler;
struct ProfilerCreate {
  std::size_t struct_size;
  const char* options;
  std::size_t options_size;
  Profiler* profiler;
};
struct ProfilerCall {
  std::size_t struct_size;
  Profiler* profiler;
};
struct ProfilerCollect {
  std::size_t struct_size;
  Profiler* profiler;
  uint8_t* buffer;
  std::size_t size;
};
struct ProfilerApi {
  std::size_t struct_size;
  void* reserved;
  void (*error_destroy)(ErrorDestroy*);
  void (*error_message)(ErrorMessage*);
  Error* (*error_code)(ErrorCode*);
  Error* (*create)(ProfilerCreate*);
  Error* (*destroy)(ProfilerCall*);
  Error* (*start)(ProfilerCall*);
  Error* (*stop)(ProfilerCall*);
  Error* (*collect)(ProfilerCollect*);
};
static_assert(offsetof(ProfilerApi, create) == 40 && offsetof(ProfilerApi, collect) == 72);
struct ProfilerExtension : Extension {
  const ProfilerApi* api;
};
static_assert(sizeof(ProfilerExtension) == 32);

}  // namespace capibara::pjrt::abi

namespace capibara::pjrt {

namespace {

// ProfileOptions {2: host level, 3: device level, 5: version, 7: whether programs are included}. xprof needs the
// programs to attribute GPU kernels to operations.
std::string profile_options() {
  ProtobufWriter options;
  options.integer(2, 2);
  options.integer(3, 1);
  options.integer(5, 1);
  options.integer(7, 1);
  return options.take();
}

struct Collected {
  std::size_t size = 0;             // of the message
  std::vector<std::string> errors;  // that the profiler encountered while recording
};

// Parses the bytes of an XSpace. XLA's plugins pass one byte more than the message, a zero, at which no field can
// begin; nullopt if the bytes are not a message.
std::optional<Collected> inspect(std::string_view bytes) {
  for (const std::size_t beyond : {std::size_t{0}, std::size_t{1}}) {
    if (beyond > bytes.size() || (beyond == 1 && bytes.back() != '\0')) break;
    Collected collected{bytes.size() - beyond, {}};
    ProtobufReader fields(bytes.substr(0, collected.size));
    while (fields.next()) {
      if (fields.is_text(2)) collected.errors.emplace_back(fields.text());
    }
    if (!fields.failed()) return collected;
  }
  return std::nullopt;
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

  std::string stop(std::vector<std::string>& errors) override {
    const std::unique_ptr<PluginProfiler, void (*)(PluginProfiler*)> at_end(
        this, [](PluginProfiler* self) { self->destroy(); });
    call(api_.stop, "stop");
    abi::ProfilerCollect collect{sizeof collect, profiler_, nullptr, 0};
    check(api_.collect(&collect), "data");
    std::string bytes;
    if (collect.buffer) {  // the plugin lends its own
      bytes.assign(reinterpret_cast<const char*>(collect.buffer), collect.size);
    } else if (collect.size > 0) {
      bytes.resize(collect.size);
      collect.buffer = reinterpret_cast<uint8_t*>(bytes.data());
      check(api_.collect(&collect), "data");
    }
    const std::optional<Collected> collected = inspect(bytes);
    if (!collected)
      throw RuntimeError(concat(whose("data"), "the ", std::to_string(bytes.size()), " bytes are no XSpace"));
    bytes.resize(collected->size);
    for (const std::string& error : collected->errors) errors.push_back(whose("data") + error);
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

  std::string whose(const char* what) const {
    return concat("profile: the profiler of ", plugin_->path(), " (", what, "): ");
  }

  void check(abi::Error* error, const char* what) {
    if (error) throw RuntimeError(whose(what) + take_message(error));
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
