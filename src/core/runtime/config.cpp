// Configuration: process defaults and the stack of each thread.
#include "core/runtime/trace_context.h"

#include <capibara/config.h>
#include <capibara/default_device.h>
#include <capibara/error.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace capibara {

std::string native_platform() {
#ifdef CAPIBARA_HAS_CODE_GENERATOR
  return "cpu";
#else
  return "reference";
#endif
}

namespace {

std::mutex defaults_mutex;

int device_count(const std::string& text, const char* variable) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc() && end == text.data() + text.size() && count > 0) return count;
  throw ValueError(concat(variable, ": the number of CPU devices must be a positive number, got '", text, "'"));
}

// The number of devices that the native CPU is presented as: JAX_NUM_CPU_DEVICES, or XLA's flag for it.
int devices_from_environment() {
  constexpr const char* variable = "JAX_NUM_CPU_DEVICES";
  if (const char* own = std::getenv(variable); own && *own) return device_count(own, variable);
  const std::string flags = std::getenv("XLA_FLAGS") ? std::getenv("XLA_FLAGS") : "";
  const std::string flag = "--xla_force_host_platform_device_count=";
  const std::size_t at = flags.rfind(flag);
  if (at == std::string::npos) return 1;
  const std::size_t begin = at + flag.size();
  return device_count(flags.substr(begin, flags.find_first_of(" \t\n", begin) - begin), "XLA_FLAGS");
}

Config from_environment() {
  Config config;
  config.platform = native_platform();
  config.num_cpu_devices = devices_from_environment();
  if (const char* platform = std::getenv("CAPIBARA_PLATFORM"); platform && *platform) config.platform = platform;
  return config;
}

Config& defaults() {
  static Config config = from_environment();
  return config;
}

std::optional<Device>& device_of_process() {
  static std::optional<Device> device;
  return device;
}

std::atomic<unsigned> version{1};
std::atomic<std::size_t> default_trace_context{0};

// What a thread sees: its own choices, and copies of the defaults, refreshed when they change. Reading needs no lock.
struct Seen {
  std::optional<Config> override_config;
  std::optional<std::optional<Device>> override_device;
  Config defaults;
  std::optional<Device> device;
  unsigned version = 0;
  std::optional<std::size_t> known_key;  // of the configuration that this thread sees
  std::size_t trace_context = 0;         // of this thread
};

Seen& make_seen() {
  thread_local Seen seen;
  return seen;
}

// Read by every operation: a pointer is one thread-local access, an object with a destructor is three.
Seen& seen() {
  thread_local Seen* own = nullptr;
  if (!own) own = &make_seen();
  return *own;
}

void see_defaults(Seen& seen) {
  unsigned now = version.load(std::memory_order_acquire);
  if (seen.version == now) return;
  std::lock_guard lock(defaults_mutex);
  seen.defaults = defaults();
  seen.device = device_of_process();
  seen.version = now;
  seen.known_key.reset();
}

const Config& config_of(Seen& seen) {
  if (seen.override_config) return *seen.override_config;
  see_defaults(seen);
  return seen.defaults;
}

const std::optional<Device>& device_of(Seen& seen) {
  if (seen.override_device) return *seen.override_device;
  see_defaults(seen);
  return seen.device;
}

}  // namespace

const Config& config() { return config_of(seen()); }

const std::optional<Device>& chosen_device() { return device_of(seen()); }

std::size_t config_key() {
  Seen& own = seen();
  const std::optional<Device>& device = device_of(own);
  const Config& config = config_of(own);
  if (!own.known_key) own.known_key = config.key();
  const std::size_t context = own.trace_context ^ default_trace_context.load(std::memory_order_relaxed);
  if (!device) return *own.known_key ^ context;
  return context ^
         ((*own.known_key * 1099511628211ULL + std::hash<std::string>{}(device->platform)) * 1099511628211ULL +
          static_cast<std::size_t>(device->id + 1));
}

void set_trace_context(std::size_t context) { seen().trace_context = context; }

void set_default_trace_context(std::size_t context) { default_trace_context.store(context); }

void update_config(const Config& config) {
  std::lock_guard lock(defaults_mutex);
  defaults() = config;
  version.fetch_add(1, std::memory_order_release);
}

void set_default_device(std::optional<Device> device) {
  std::lock_guard lock(defaults_mutex);
  device_of_process() = std::move(device);
  version.fetch_add(1, std::memory_order_release);
}

DefaultDeviceScope::DefaultDeviceScope(std::optional<Device> device) : previous_(std::move(seen().override_device)) {
  seen().override_device.emplace(std::move(device));
}

DefaultDeviceScope::~DefaultDeviceScope() { seen().override_device = std::move(previous_); }

std::size_t Config::key() const {
  std::size_t key = 0;
  auto mix = [&key](std::size_t value) { key = key * 1099511628211ULL + value; };
  for (bool flag : {enable_x64, threefry_partitionable, disable_jit, debug_nans, debug_infs, softmax_custom_jvp})
    mix(flag);
  for (const std::string* text :
       {&numpy_dtype_promotion, &numpy_rank_promotion, &default_matmul_precision, &default_prng_impl, &platform}) {
    mix(std::hash<std::string>{}(*text));
  }
  return key;
}

ConfigScope::ConfigScope(Config config) : had_previous_(seen().override_config.has_value()) {
  Seen& own = seen();
  if (had_previous_) previous_ = *own.override_config;
  own.override_config = std::move(config);
  own.known_key.reset();
}

ConfigScope::~ConfigScope() {
  Seen& own = seen();
  if (had_previous_) {
    own.override_config = previous_;
  } else {
    own.override_config.reset();
  }
  own.known_key.reset();
}

namespace jax {

namespace {

using Setter = std::function<void(Config&, const std::variant<bool, int, std::string>&)>;

template <class T>
Setter assign(T Config::*member) {
  return [member](Config& config, const std::variant<bool, int, std::string>& value) {
    if (const T* typed = std::get_if<T>(&value)) {
      config.*member = *typed;
    } else {
      throw TypeError("config.update: the value has the wrong type for this setting");
    }
  };
}

Setter choice(std::string Config::*member, std::vector<std::string> allowed) {
  return [member, allowed](Config& config, const std::variant<bool, int, std::string>& value) {
    const auto* text = std::get_if<std::string>(&value);
    for (const std::string& option : allowed) {
      if (text && *text == option) {
        config.*member = option;
        return;
      }
    }
    std::string list;
    for (const std::string& option : allowed) list += concat(list.empty() ? "" : ", ", "'", option, "'");
    throw ValueError(
        concat("config.update: expected one of ", list, ", got ", text ? "'" + *text + "'" : "another type"));
  };
}

struct Setting {
  const char* name;
  Setter set;
};

const std::vector<Setting>& settings() {
  static const std::vector<Setting> table = {
      {"jax_enable_x64", assign(&Config::enable_x64)},
      {"jax_numpy_dtype_promotion", choice(&Config::numpy_dtype_promotion, {"standard", "strict"})},
      {"jax_numpy_rank_promotion", choice(&Config::numpy_rank_promotion, {"allow", "warn", "raise"})},
      {"jax_default_matmul_precision", assign(&Config::default_matmul_precision)},
      {"jax_threefry_partitionable", assign(&Config::threefry_partitionable)},
      {"jax_default_prng_impl", choice(&Config::default_prng_impl, {"threefry2x32", "rbg", "unsafe_rbg"})},
      {"jax_disable_jit", assign(&Config::disable_jit)},
      {"jax_debug_nans", assign(&Config::debug_nans)},
      {"jax_debug_infs", assign(&Config::debug_infs)},
      {"jax_log_compiles", assign(&Config::log_compiles)},
      {"jax_check_tracer_leaks", assign(&Config::check_tracer_leaks)},
      {"jax_no_tracing", assign(&Config::no_tracing)},
      {"jax_enable_checks", assign(&Config::enable_checks)},
      {"jax_softmax_custom_jvp", assign(&Config::softmax_custom_jvp)},
      {"jax_enable_custom_prng", assign(&Config::enable_custom_prng)},
      {"jax_legacy_prng_key", choice(&Config::legacy_prng_key, {"allow", "warn", "error"})},
      {"jax_num_cpu_devices", assign(&Config::num_cpu_devices)},
      {"jax_platforms", assign(&Config::platform)},
  };
  return table;
}

Config changed(const std::string& name, const std::variant<bool, int, std::string>& value) {
  Config config = capibara::config();
  for (const Setting& setting : settings()) {
    if (name == setting.name) {
      setting.set(config, value);
      return config;
    }
  }
  throw NameError(concat("config.update: unrecognized config option '", name, "'"));
}

}  // namespace

namespace config {
void update(const std::string& name, const std::variant<bool, int, std::string>& value) {
  update_config(changed(name, value));
}
}  // namespace config

ConfigScope enable_x64(bool on) { return ConfigScope(changed("jax_enable_x64", on)); }
ConfigScope disable_jit(bool on) { return ConfigScope(changed("jax_disable_jit", on)); }
ConfigScope debug_nans(bool on) { return ConfigScope(changed("jax_debug_nans", on)); }
ConfigScope debug_infs(bool on) { return ConfigScope(changed("jax_debug_infs", on)); }
ConfigScope log_compiles(bool on) { return ConfigScope(changed("jax_log_compiles", on)); }
ConfigScope checking_leaks(bool on) { return ConfigScope(changed("jax_check_tracer_leaks", on)); }
ConfigScope numpy_dtype_promotion(const std::string& mode) {
  return ConfigScope(changed("jax_numpy_dtype_promotion", mode));
}
ConfigScope numpy_rank_promotion(const std::string& mode) {
  return ConfigScope(changed("jax_numpy_rank_promotion", mode));
}
ConfigScope default_matmul_precision(const std::string& precision) {
  return ConfigScope(changed("jax_default_matmul_precision", precision));
}

}  // namespace jax
}  // namespace capibara
