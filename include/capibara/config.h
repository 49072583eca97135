// Configuration: a stack of settings on each thread over the process's defaults; a snapshot is part of every jit key.
#pragma once

#include <cstddef>
#include <string>
#include <variant>

namespace capibara {


struct Config {
  bool enable_x64 = false;
  std::string numpy_dtype_promotion = "standard";  // or "strict"
  std::string numpy_rank_promotion = "allow";      // or "warn", "raise"
  std::string default_matmul_precision;            // empty: the backend's default
  bool threefry_partitionable = true;
  std::string default_prng_impl = "threefry2x32";
  bool disable_jit = false;
  bool debug_nans = false;
  bool debug_infs = false;
  bool log_compiles = false;
  bool check_tracer_leaks = false;
  bool no_tracing = false;               // a function that would have to be traced is refused
  bool enable_checks = false;            // every traced program is verified
  bool softmax_custom_jvp = false;       // nn.softmax with the derivative y (dx - sum(y dx))
  bool enable_custom_prng = false;       // functions of random return typed keys, also for raw ones
  std::string legacy_prng_key = "allow"; // what a raw key does: or "warn", "error"
  int num_cpu_devices = 1;
  std::string platform = "reference";

  std::size_t key() const;  // equal configurations have equal keys; part of the jit cache key
  friend bool operator==(const Config&, const Config&) = default;
};

const Config& config();             // as seen by this thread
std::size_t config_key();           // config().key(), remembered while nothing changes
void update_config(const Config&);  // the process's defaults

// Overrides the configuration of this thread until the end of the scope.
class ConfigScope {
 public:
  explicit ConfigScope(Config config);
  ~ConfigScope();
  ConfigScope(const ConfigScope&) = delete;
  ConfigScope& operator=(const ConfigScope&) = delete;

 private:
  Config previous_;
  bool had_previous_;
};

namespace jax {
// JAX's names: config::update("jax_enable_x64", true).
namespace config {
void update(const std::string& name, const std::variant<bool, int, std::string>& value);
}
// Scopes of single settings.
ConfigScope enable_x64(bool on = true);
ConfigScope disable_jit(bool on = true);
ConfigScope debug_nans(bool on = true);
ConfigScope debug_infs(bool on = true);
ConfigScope log_compiles(bool on = true);
ConfigScope checking_leaks(bool on = true);
ConfigScope numpy_dtype_promotion(const std::string& mode);
ConfigScope numpy_rank_promotion(const std::string& mode);
ConfigScope default_matmul_precision(const std::string& precision);
}  // namespace jax

}  // namespace capibara
