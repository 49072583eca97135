// Opens a plugin and calls its functions.
#include "backends/pjrt/plugin.h"

#include <dlfcn.h>

#include <cstdlib>

#include <capibara/error.h>

namespace capibara::pjrt {

namespace {

constexpr int known_major = 0;
constexpr int oldest_minor = 54;  // the oldest version that the layouts in api.h were checked against

const char* code_name(int32_t code) {
  static constexpr const char* names[] = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  return code >= 0 && code < 17 ? names[code] : "UNKNOWN";
}

std::mutex libtpu_mutex;
std::optional<LoadedLibtpu> libtpu;

}  // namespace

std::optional<LoadedLibtpu> loaded_libtpu() {
  std::lock_guard lock(libtpu_mutex);
  return libtpu;
}

Plugin::Plugin(std::string platform, const std::string& path) : platform_(std::move(platform)), path_(path) {
  const char* arguments = std::getenv("LIBTPU_INIT_ARGS");
  const std::string init_args = arguments ? arguments : "";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw RuntimeError(concat("plugin: ", path, " cannot be loaded: ", dlerror()));
  auto get = reinterpret_cast<const abi::Api* (*)()>(dlsym(library, "GetPjrtApi"));
  if (!get) {
    dlclose(library);
    throw RuntimeError(concat("plugin: ", path, " is not a PJRT plugin: it has no function GetPjrtApi"));
  }
  api_ = get();
  if (!api_ || api_->struct_size < sizeof(abi::Api))
    throw RuntimeError(concat("plugin: ", path, " gives no table of functions"));
  if (api_->major_version != known_major || api_->minor_version < oldest_minor) {
    throw RuntimeError(concat("plugin: ", path, " speaks PJRT ", api_->major_version, ".", api_->minor_version,
                              ", but ", known_major, ".", oldest_minor, " or later is needed"));
  }
  if (path.ends_with("libtpu.so")) {
    std::lock_guard lock(libtpu_mutex);
    if (!libtpu) libtpu = {path, init_args};
  }
  abi::Args<abi::PluginInitialize> args;
  call(abi::Function::plugin_initialize, args, concat("plugin ", path));
}

std::string Plugin::version() const {
  std::string text = concat("PJRT ", api_->major_version, ".", api_->minor_version);
  abi::Args<abi::PluginAttributes> args;
  if (abi::Error* error = try_call(abi::Function::plugin_attributes, args)) {
    take_message(error);
    return text;
  }
  for (std::size_t i = 0; i < args.count; ++i) {
    const abi::NamedValue& value = args.attributes[i];
    if (std::string_view(value.name, value.name_size) != "stablehlo_current_version" ||
        value.type != abi::named_integers)
      continue;
    text += ", StableHLO ";
    for (std::size_t k = 0; k < value.value_size; ++k) text += concat(k ? "." : "", value.integers[k]);
  }
  return text;
}

abi::Error* Plugin::raw_call(abi::Function function, void* args, const std::string& what) const {
  if (!has(function) || !entry(function)) {
    throw NotImplementedError(concat(what, ": the plugin ", path_, " (PJRT ", api_->major_version, ".",
                                     api_->minor_version, ") does not have the function at byte ",
                                     static_cast<std::size_t>(function)));
  }
  return entry(function)(args);
}

std::string Plugin::take_message(abi::Error* error) const {
  abi::Args<abi::ErrorCode> code;
  code.error = error;
  if (abi::Error* second = try_call(abi::Function::error_code, code)) {
    abi::Args<abi::ErrorDestroy> destroy;
    destroy.error = second;
    try_call(abi::Function::error_destroy, destroy);
  }
  // These two return void: the result of try_call is garbage and is ignored.
  abi::Args<abi::ErrorMessage> message;
  message.error = error;
  try_call(abi::Function::error_message, message);
  std::string text = concat(code_name(code.code), ": ", std::string_view(message.message, message.message_size));
  abi::Args<abi::ErrorDestroy> destroy;
  destroy.error = error;
  try_call(abi::Function::error_destroy, destroy);
  return text;
}

void Plugin::raise(abi::Error* error, const std::string& what) const {
  const std::string message = take_message(error);
  throw RuntimeError(what.empty() ? message : concat(what, ": ", message));
}

const abi::Extension* Plugin::extension(int32_t type) const {
  for (const abi::Extension* one = api_->extension_start; one; one = one->next) {
    if (one->type == type) return one;
  }
  return nullptr;
}

void Plugin::register_gpu_call(const std::string& name, void* handler, uint32_t traits) const {
  abi::Args<abi::GpuRegister> args;
  args.name = name.data();
  args.name_size = name.size();
  args.api_version = 1;
  args.execute = handler;
  args.traits = traits;
  check(static_cast<const abi::GpuExtension*>(extension(abi::gpu_custom_call_extension))->custom_call(&args), name);
}

}  // namespace capibara::pjrt
