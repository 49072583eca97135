// TPUConfig: the target hardware of a program and how to use it; every field has an effect and is checked when it is
// set.
#pragma once

#include <capibara/array.h>
#include <capibara/sharding.h>
#include <capibara/tpu/flags.h>
#include <capibara/tpu/request.h>

#include <map>
#include <utility>

namespace capibara::tpu {

// The threshold above which a device counts as overloaded.
struct ScalingConfig {
  double load_threshold = 0.8;  // a load above it, from 0 to 1
};

// The fields of a TPUConfig as given. Absent fields about types are derived from the others.
struct TPUSettings {
  std::string tpu_version = "v4";
  int64_t num_chips = 4;
  std::optional<std::string> topology = {};     // 8x8; if not the shape of a slice, it is used as the logical mesh
  std::optional<int64_t> memory_per_chip = {};  // bytes; absent: from the table of chips
  std::optional<double> flops_per_chip = {};    // per second; absent: from the table of chips
  // "float32" computes and stores parameters in float32, "bfloat16" in bfloat16, "mixed" computes in bfloat16 on
  // float32 parameters. Each of the next four, if given, overrides its part of that.
  std::string precision = "mixed";
  std::optional<std::string> compute_dtype = {};  // bfloat16, float32 or int8
  std::optional<std::string> param_dtype = {};    // bfloat16 or float32
  std::optional<bool> use_mixed_precision = {}, fp32_params = {};
  int64_t xla_optimization_level = 2;
  bool enable_xla_fusion = true, enable_async_collective = true;
  std::string memory_optimization = "normal";  // none, normal, aggressive
  bool enable_rematerialization = true, gradient_checkpointing = false;
  bool communication_optimization = true, use_collective_matmul = false;
  bool enable_profiling = false, log_device_placement = false;
  int64_t batch_size_per_chip = 8;
  std::vector<int64_t> mesh_shape = {};  // (data, model); empty: none
  ScalingConfig scaling_config = {};
};

// The value of any field but scaling_config; monostate: absent.
using FieldValue = std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<int64_t>>;

// Sets a field after checking the value on its own; memory_per_chip also takes a text such as 32GB. TPUError for other
// fields and values.
void set_field(TPUSettings& settings, const std::string& field, const FieldValue& value);

struct PerformanceMetrics {
  double total_tflops = 0, memory_bandwidth_gb_s = 0;
  double interconnect_bandwidth_gb_s = 0;    // of the links between the slice's chips, both directions
  Figure utilization, throughput_samples_s;  // modelled; absent for compute types other than bfloat16
};

struct MemoryConfig {
  bool use_mixed_precision = false;
  std::string compute_dtype, param_dtype;
  double memory_per_chip = 0;  // bytes
  double usable_gib_per_device = 0;
  std::string remat_policy, memory_optimization;
};

// A device in a matrix of loads, by row and column.
using Hotspot = std::pair<int64_t, int64_t>;
// The devices whose load [rows, columns] exceeds a threshold, in row-major order. TPUError for other shapes.
std::vector<Hotspot> detect_hotspots(const Array& load, double threshold);

// Batches over 'data' along the first dimension, features over 'model' along the last; axes of (data, model) that
// do not divide the dimension are omitted.
PartitionSpec sharding_spec(const Shape& tensor_shape, const std::pair<int64_t, int64_t>& logical_mesh);

// Parses a size in bytes such as 32GB or 16 GiB. TPUError for other texts.
int64_t bytes_from_text(const std::string& text);

class TPUConfig {
 public:
  // TPUError, listing the choices, for a configuration that no TPU has.
  explicit TPUConfig(TPUSettings settings = {});

  // The fields, including the derived ones about types.
  const TPUSettings& settings() const { return settings_; }
  const TPUSettings* operator->() const { return &settings_; }
  // Sets a field; a value rejected with TPUError changes nothing.
  void set(const std::string& field, const FieldValue& value);
  FieldValue get(const std::string& field) const;
  void set_load_threshold(double threshold) { settings_.scaling_config.load_threshold = threshold; }
  // The names of all fields but scaling_config.
  static const std::vector<std::string>& fields();

  // Warnings about the configuration.
  std::vector<std::string> validate() const;
  double memory_bytes() const;  // HBM of one chip
  Slice slice() const;
  std::string slice_name() const { return slice().name(); }  // v4-32: the name under which the slice is rented
  // Peak of all chips for compute_dtype; float32 takes six bfloat16 passes, as with XLA's highest precision.
  double get_total_tflops() const;
  // The planner's policy that the memory fields imply.
  std::string remat_policy() const;
  // The planner's request for this configuration; `batch_size_per_chip` overrides that of the configuration.
  Training training(const PlannedModel& model = "1b", int64_t sequence_length = 2048,
                    std::optional<double> batch_size_per_chip = {}) const;
  // Peaks of the slice from the vendor's tables, and the modelled figures of a training step of the model.
  PerformanceMetrics get_performance_metrics(const PlannedModel& model = "1b", int64_t sequence_length = 2048) const;
  // sharding_spec over logical_mesh(); with log_device_placement it is also printed on standard error.
  PartitionSpec get_sharding_spec(const Shape& tensor_shape) const;
  // (data, model): mesh_shape, or a topology of two dimensions, or the squarest grid.
  std::pair<int64_t, int64_t> logical_mesh() const;
  MemoryConfig get_memory_config() const;

  // The devices whose load exceeds scaling_config.load_threshold, which optimize_sharding remembers.
  std::vector<Hotspot> detect_hotspots(const Array& load);
  // Splits over both axes the dimension whose devices are overloaded: batches if more rows than columns have hotspots.
  // Without a load, it uses the last detect_hotspots; TPUError if there was none.
  PartitionSpec optimize_sharding(const Array& load);
  PartitionSpec optimize_sharding() const;

  // The compiler flags that the fields imply.
  FlagValues xla_flags() const;
  // The variables of setup_environment_variables: values, or texts beginning with "not set: " for those left alone.
  // `tpu_here`: true if the machine has a TPU. TPUError if libtpu would refuse a flag.
  std::map<std::string, std::string> environment(bool tpu_here) const;
  // Sets LIBTPU_INIT_ARGS, and JAX_PLATFORMS if the machine has a TPU; returns environment().
  std::map<std::string, std::string> setup_environment_variables() const;
  // Checks every result for NaN and infinity and logs compilations.
  void enable_debugging_mode() const;

 private:
  void settle(const std::string& field);
  void check_together() const;
  std::pair<Slice, bool> slice_and_shape() const;  // and true if the topology is one of its shapes
  std::pair<int, int> plan_axes(const Architecture& model) const;
  double peak() const;  // of a chip, operations per second

  TPUSettings settings_;
  std::optional<std::vector<Hotspot>> hotspots_;
};

// The environment of a TPU as text: what was set and what not.
std::string environment_text(const std::string& who, const std::map<std::string, std::string>& environment);
// Adds to an environment JAX_PLATFORMS if the machine has a TPU, and why XLA_FLAGS is not set.
void add_platforms(std::map<std::string, std::string>& environment, bool tpu_here);
// The name of the machine's first TPU chip, if it has one.
std::optional<std::string> chip_of_this_machine();

// Sets the environment for this machine's TPU, or for a configuration; returns the variables set.
std::map<std::string, std::string> configure_tpu_environment(const std::optional<TPUConfig>& config = {});

}  // namespace capibara::tpu
