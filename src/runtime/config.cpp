// Configuration: process defaults and the stack of each thread.
#include <capibara/config.h>
#include <capibara/default_device.h>
#include <capibara/error.h>

#include <atomic>
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

Config from_environment() {
  Config config;
  config.platform = native_platform();
  if (const char* platform = std::getenv("CAPIBARA_PLATFORM"); platform && *platform) config.platform = platform;
  return config;
}

Config& defaults() {
  static Config config = from_environment();
  return config;
}

thread_local std::optional<Config> override_config;
// A thread's copy of the defaults, refreshed when they change, so that reading needs no lock.
thread_local Config seen_defaults;
thread_local unsigned seen_version = 0;
thread_local std::optional<std::size_t> known_key;  // of the configuration that this thread sees
std::atomic<unsigned> version{1};

std::optional<Device>& device_of_process() {
  static std::optional<Device> device;
  return device;
}
thread_local std::optional<Device> seen_device;                         // a copy, as seen_defaults is one
thread_local std::optional<std::optional<Device>> override_device;

}  // namespace

namespace {

void see_defaults() {
  unsigned now = version.load(std::memory_order_acquire);
  if (seen_version == now) return;
  std::lock_guard lock(defaults_mutex);
  seen_defaults = defaults();
  seen_device = device_of_process();
  seen_version = now;
  known_key.reset();
}

}  // namespace

const Config& config() {
  if (override_config) return *override_config;
  see_defaults();
  return seen_defaults;
}

const std::optional<Device>& chosen_device() {
  if (override_device) return *override_device;
  see_defaults();
  return seen_device;
}

std::size_t config_key() {
  const std::optional<Device>& device = chosen_device();
  const Config& seen = config();
  if (!known_key) known_key = seen.key();
  if (!device) return *known_key;
  return (*known_key * 1099511628211ULL + std::hash<std::string>{}(device->platform)) * 1099511628211ULL + static_cast<std::size_t>(device->id + 1);
}

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

DefaultDeviceScope::DefaultDeviceScope(std::optional<Device> device) : previous_(std::move(override_device)) {
  override_device.emplace(std::move(device));
}

DefaultDeviceScope::~DefaultDeviceScope() { override_device = std::move(previous_); }

std::size_t Config::key() const {
  std::size_t key = 0;
  auto mix = [&key](std::size_t value) { key = key * 1099511628211ULL + value; };
  for (bool flag : {enable_x64, threefry_partitionable, disable_jit, debug_nans, debug_infs, softmax_custom_jvp}) mix(flag);
  for (const std::string* text :
       {&numpy_dtype_promotion, &numpy_rank_promotion, &default_matmul_precision, &default_prng_impl, &platform}) {
    mix(std::hash<std::string>{}(*text));
  }
  return key;
}

ConfigScope::ConfigScope(Config config) : had_previous_(override_config.has_value()) {
  if (had_previous_) previous_ = *override_config;
  override_config = std::move(config);
  known_key.reset();
}

ConfigScope::~ConfigScope() {
  if (had_previous_) {
    override_config = previous_;
  } else {
    override_config.reset();
  }
  known_key.reset();
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
