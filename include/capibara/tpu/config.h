// TPUConfig: the hardware a program is for and how it should use it; every field acts, and is checked whenever it is
// set.
#pragma once

#include <capibara/array.h>
#include <capibara/sharding.h>
#include <capibara/tpu/flags.h>
#include <capibara/tpu/request.h>

#include <map>
#include <utility>

namespace capibara::tpu {

// When a device counts as overloaded.
struct ScalingConfig {
  double load_threshold = 0.8;  // a load above it, from 0 to 1
};

// The fields of a TPUConfig as they are given. Those about types that are absent follow from the others.
struct TPUSettings {
  std::string tpu_version = "v4";
  int64_t num_chips = 4;
  std::optional<std::string> topology = {};     // 8x8; one that is no shape of a slice is taken as the logical mesh
  std::optional<int64_t> memory_per_chip = {};  // bytes; absent: of the table of chips
  std::optional<double> flops_per_chip = {};    // a second; absent: of the table of chips
  // "float32" computes and keeps parameters in it, "bfloat16" likewise, "mixed" computes in bfloat16 on float32. Each
  // of the next four that is given changes its part of that.
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

// Sets a field after a check of the value by itself; memory_per_chip also takes a text such as 32GB. TPUError for other
// fields and values.
void set_field(TPUSettings& settings, const std::string& field, const FieldValue& value);

struct PerformanceMetrics {
  double total_tflops = 0, memory_bandwidth_gb_s = 0;
  double interconnect_bandwidth_gb_s = 0;    // of the links between the slice's chips, both ways
  Figure utilization, throughput_samples_s;  // modelled; absent for other types of computation than bfloat16
};

struct MemoryConfig {
  bool use_mixed_precision = false;
  std::string compute_dtype, param_dtype;
  double memory_per_chip = 0;  // bytes
  double usable_gib_per_device = 0;
  std::string remat_policy, memory_optimization;
};

// The device of a matrix of loads, by row and column.
using Hotspot = std::pair<int64_t, int64_t>;
// The devices whose load [rows, columns] is above a threshold, row by row. TPUError for other shapes.
std::vector<Hotspot> detect_hotspots(const Array& load, double threshold);

// Batches over 'data' along the first dimension, features over 'model' along the last; axes of (data, model) that do
// not divide are left out.
PartitionSpec sharding_spec(const Shape& tensor_shape, const std::pair<int64_t, int64_t>& logical_mesh);

// Bytes of a text such as 32GB or 16 GiB. TPUError for other texts.
int64_t bytes_from_text(const std::string& text);

class TPUConfig {
 public:
  // TPUError, naming the choices, for what no TPU has.
  explicit TPUConfig(TPUSettings settings = {});

  // The fields, with those about types filled in.
  const TPUSettings& settings() const { return settings_; }
  const TPUSettings* operator->() const { return &settings_; }
  // Sets a field; what is refused by TPUError changes nothing.
  void set(const std::string& field, const FieldValue& value);
  FieldValue get(const std::string& field) const;
  void set_load_threshold(double threshold) { settings_.scaling_config.load_threshold = threshold; }
  // The names of all fields but scaling_config.
  static const std::vector<std::string>& fields();

  // Remarks about the configuration.
  std::vector<std::string> validate() const;
  double memory_bytes() const;  // HBM of one chip
  Slice slice() const;
  std::string slice_name() const { return slice().name(); }  // v4-32: the name that the slice is rented by
  // Peak of all chips for compute_dtype; float32 takes six passes of bfloat16, as XLA's highest precision does.
  double get_total_tflops() const;
  // The planner's policy that the memory fields mean.
  std::string remat_policy() const;
  // What the planner is asked for this configuration; `batch_size_per_chip` replaces that of the configuration.
  Training training(const PlannedModel& model = "1b", int64_t sequence_length = 2048,
                    std::optional<double> batch_size_per_chip = {}) const;
  // Peaks of the slice from the vendor's tables, and what a training step of the model reaches, modelled.
  PerformanceMetrics get_performance_metrics(const PlannedModel& model = "1b", int64_t sequence_length = 2048) const;
  // sharding_spec over logical_mesh(); with log_device_placement a line on standard error says so.
  PartitionSpec get_sharding_spec(const Shape& tensor_shape) const;
  // (data, model): mesh_shape, or a topology of two dimensions, or the squarest grid.
  std::pair<int64_t, int64_t> logical_mesh() const;
  MemoryConfig get_memory_config() const;

  // The devices whose load is above scaling_config.load_threshold, which optimize_sharding remembers.
  std::vector<Hotspot> detect_hotspots(const Array& load);
  // Splits over both axes the dimension whose devices are overloaded: batches where more rows have hotspots than
  // columns. Without a load that of the last detect_hotspots; TPUError where there was none.
  PartitionSpec optimize_sharding(const Array& load);
  PartitionSpec optimize_sharding() const;

  // The compiler's flags that the fields mean.
  FlagValues xla_flags() const;
  // What setup_environment_variables sets: values, and for what it leaves alone texts that begin with "not set: ".
  // `tpu_here`: whether the machine has a TPU. TPUError where libtpu would refuse a flag.
  std::map<std::string, std::string> environment(bool tpu_here) const;
  // Sets LIBTPU_INIT_ARGS, and JAX_PLATFORMS where a TPU is here; returns environment().
  std::map<std::string, std::string> setup_environment_variables() const;
  // Checks every result for NaN and infinity and logs what is compiled.
  void enable_debugging_mode() const;

 private:
  void settle(const std::string& field);
  void check_together() const;
  std::pair<Slice, bool> slice_and_shape() const;  // and whether the topology is one of its shapes
  std::pair<int, int> plan_axes(const Architecture& model) const;
  double peak() const;  // of a chip, operations a second

  TPUSettings settings_;
  std::optional<std::vector<Hotspot>> hotspots_;
};

// The environment of a TPU in words: what was set and what not.
std::string environment_text(const std::string& who, const std::map<std::string, std::string>& environment);
// JAX_PLATFORMS where a TPU is here, and why XLA_FLAGS is not set, added to an environment.
void add_platforms(std::map<std::string, std::string>& environment, bool tpu_here);
// Whether the machine has a TPU, and the name of its first chip.
std::optional<std::string> chip_of_this_machine();

// Sets the environment for the TPU that is here, or for a configuration; returns what was set.
std::map<std::string, std::string> configure_tpu_environment(const std::optional<TPUConfig>& config = {});

}  // namespace capibara::tpu
