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
  bool no_tracing = false;                // raise an error if a function would have to be traced
  bool enable_checks = false;             // every traced program is verified
  bool softmax_custom_jvp = false;        // nn.softmax with the derivative y (dx - sum(y dx))
  bool enable_custom_prng = false;        // functions of random return typed keys, even for raw ones
  std::string legacy_prng_key = "allow";  // what a raw key does: "allow", "warn" or "error"
  int num_cpu_devices = 1;
  std::string platform = "reference";

  std::size_t key() const;  // equal configurations have equal keys; part of the jit cache key
  friend bool operator==(const Config&, const Config&) = default;
};

// The configuration of this thread.
const Config& config();
// config().key(), cached until the configuration changes.
std::size_t config_key();
// Sets the process's default configuration.
void update_config(const Config&);

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
// Sets a configuration value by the name that jax gives it, such as "jax_enable_x64".
void update(const std::string& name, const std::variant<bool, int, std::string>& value);
}  // namespace config
// Allows 64-bit types while the scope lives.
ConfigScope enable_x64(bool on = true);
// Runs jitted functions operation by operation while the scope lives.
ConfigScope disable_jit(bool on = true);
// Raises an error where a result is NaN while the scope lives.
ConfigScope debug_nans(bool on = true);
// Raises an error where a result is infinite while the scope lives.
ConfigScope debug_infs(bool on = true);
// Prints a line for each function that is traced and compiled while the scope lives.
ConfigScope log_compiles(bool on = true);
// Raises an error where a tracer outlives its trace while the scope lives.
ConfigScope checking_leaks(bool on = true);
// Sets the promotion of dtypes, "standard" or "strict", while the scope lives.
ConfigScope numpy_dtype_promotion(const std::string& mode);
// Sets the promotion of ranks, "allow", "warn" or "raise", while the scope lives.
ConfigScope numpy_rank_promotion(const std::string& mode);
// Sets the precision of matrix products and convolutions while the scope lives.
ConfigScope default_matmul_precision(const std::string& precision);
}  // namespace jax

}  // namespace capibara
