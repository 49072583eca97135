// Interpretation of a TPUConfig: peaks, plans, specifications, hotspots and the environment.
#include <capibara/config.h>
#include <capibara/tpu/config.h>
#include <capibara/tpu/diagnosis.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <numeric>
#include <set>

#include "core/array/format.h"
#include "core/sharding/mesh_attr.h"
#include "tpu/toolbox/request.h"
#include "tpu/words.h"

namespace capibara::tpu {

namespace {

constexpr double highest_precision_passes = 6;  // bfloat16 passes that XLA makes of a float32 matmul
constexpr const char* not_set = "not set: ";

}  // namespace

double TPUConfig::memory_bytes() const {
  return settings_.memory_per_chip ? static_cast<double>(*settings_.memory_per_chip)
                                   : find_chip(settings_.tpu_version).hbm_gb * 1e9;
}

double TPUConfig::peak() const {
  if (settings_.flops_per_chip) return *settings_.flops_per_chip;
  const Chip& chip = find_chip(settings_.tpu_version);
  if (*settings_.compute_dtype == "int8") return chip.int8_tops * 1e12;
  return chip.bf16_tflops * 1e12 / (*settings_.compute_dtype == "float32" ? highest_precision_passes : 1);
}

double TPUConfig::get_total_tflops() const { return peak() * static_cast<double>(settings_.num_chips) / 1e12; }

std::string TPUConfig::remat_policy() const {
  if (settings_.gradient_checkpointing || settings_.memory_optimization == "aggressive") return "full";
  return settings_.enable_rematerialization && settings_.memory_optimization == "normal" ? "minimal" : "none";
}

// (fsdp, tensor) for planning a model: the part that does not divide its heads goes to fsdp.
std::pair<int, int> TPUConfig::plan_axes(const Architecture& model) const {
  const int devices = slice().devices();
  if (settings_.mesh_shape.size() != 2) return {devices, 1};
  const auto wanted = settings_.mesh_shape[1];
  const auto tensor = static_cast<int>(model.heads > 0 ? std::gcd(wanted, model.heads) : wanted);
  return {devices / tensor, tensor};
}

Training TPUConfig::training(const PlannedModel& model, int64_t sequence_length,
                             std::optional<double> batch_size_per_chip) const {
  const char* operation = "TPUConfig.training";
  require_positive(operation, "sequence_length", static_cast<double>(sequence_length));
  if (batch_size_per_chip) require_positive(operation, "batch_size_per_chip", *batch_size_per_chip);
  Training training;
  training.model = describe(model, operation).sizes;
  training.slice = slice();
  const int devices = training.slice.devices();
  std::tie(training.mesh.fsdp, training.mesh.tensor) = plan_axes(training.model);
  training.sequence = sequence_length;
  training.remat = remat_policy();
  training.batch_per_device = batch_size_per_chip.value_or(static_cast<double>(settings_.batch_size_per_chip)) *
                              static_cast<double>(settings_.num_chips) / devices;
  training.state_bytes = (*settings_.param_dtype == "float32" ? 4 : 2) + 8;  // plus both moments of Adam
  if (settings_.memory_per_chip) {
    training.hbm_gib = memory_bytes() / 0x1p30 / (static_cast<double>(devices) / training.slice.chips());
  }
  if (settings_.flops_per_chip) training.peak_tflops = *settings_.flops_per_chip / 1e12;
  return training;
}

PerformanceMetrics TPUConfig::get_performance_metrics(const PlannedModel& model, int64_t sequence_length) const {
  const Slice found = slice();
  const auto chips = static_cast<double>(settings_.num_chips);
  const Training planned = training(model, sequence_length);
  PerformanceMetrics metrics;
  metrics.total_tflops = get_total_tflops();
  metrics.memory_bandwidth_gb_s = found.chip->hbm_gbps * chips;
  metrics.interconnect_bandwidth_gb_s = 2 * found.chip->ici_link_gbps * found.links();
  if (*settings_.compute_dtype != "bfloat16") {
    const std::string reason =
        concat("plans are modelled for computation in bfloat16, not in ", *settings_.compute_dtype);
    metrics.utilization.origin = metrics.throughput_samples_s.origin = reason;
    return metrics;
  }
  const StepPlan step = plan_step(planned);
  const std::string origin =
      concat("modelled: training ", planned.model.name, " at ", settings_.batch_size_per_chip, " sequences of ",
             sequence_length, " on a chip", planned.mesh.tensor > 1 ? ", mesh " + planned.mesh.text() : "",
             "; nothing was run on a TPU");
  metrics.utilization = {step.mfu, origin};
  metrics.throughput_samples_s = {step.tokens_per_second / static_cast<double>(sequence_length), origin};
  return metrics;
}

std::pair<int64_t, int64_t> TPUConfig::logical_mesh() const {
  const std::vector<int64_t>& mesh = settings_.mesh_shape;
  if (!mesh.empty()) return {mesh[0], settings_.num_chips / mesh[0]};
  const std::vector<int> shape = read_shape(settings_.topology.value_or(""));
  if (shape.size() == 2) return {shape[0], shape[1]};
  auto model = static_cast<int64_t>(std::sqrt(static_cast<double>(settings_.num_chips)));
  while (settings_.num_chips % model != 0) --model;
  return {settings_.num_chips / model, model};
}

PartitionSpec sharding_spec(const Shape& shape, const std::pair<int64_t, int64_t>& logical_mesh) {
  PartitionSpec spec;
  spec.dims.resize(shape.size());
  if (!shape.empty() && shape.front() % logical_mesh.first == 0) spec.dims.front() = {"data"};
  if (shape.size() > 1 && shape.back() % logical_mesh.second == 0) spec.dims.back() = {"model"};
  return spec;
}

PartitionSpec TPUConfig::get_sharding_spec(const Shape& shape) const {
  PartitionSpec spec = sharding_spec(shape, logical_mesh());
  if (settings_.log_device_placement) {
    const auto [data, model] = logical_mesh();
    std::cerr << concat("an array of shape ", shape_tuple(shape), " is placed as ", spec_text(spec), " on a mesh of ",
                        data, " x ", model, "\n");
  }
  return spec;
}

MemoryConfig TPUConfig::get_memory_config() const {
  return {*settings_.use_mixed_precision,
          *settings_.compute_dtype,
          *settings_.param_dtype,
          memory_bytes(),
          find_chip(settings_.tpu_version).usable_hbm_gib,
          remat_policy(),
          settings_.memory_optimization};
}

// ---- hotspots ----------------------------------------------------------------------------------------------------

std::vector<Hotspot> detect_hotspots(const Array& load, double threshold) {
  if (load.ndim() != 2) {
    throw TPUError(concat("detect_hotspots: load is a matrix with one entry for each device, got shape ",
                          shape_tuple(load.shape())));
  }
  const std::vector<double> values = load.to_vector<double>();
  std::vector<Hotspot> found;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (values[i] > threshold) found.emplace_back(at / load.shape(1), at % load.shape(1));
  }
  return found;
}

std::vector<Hotspot> TPUConfig::detect_hotspots(const Array& load) {
  hotspots_ = tpu::detect_hotspots(load, settings_.scaling_config.load_threshold);
  return *hotspots_;
}

PartitionSpec TPUConfig::optimize_sharding(const Array& load) {
  detect_hotspots(load);
  return optimize_sharding();
}

PartitionSpec TPUConfig::optimize_sharding() const {
  if (!hotspots_) throw TPUError("optimize_sharding: needs a load, or a call of detect_hotspots before");
  std::set<int64_t> rows, columns;
  for (const auto& [row, column] : *hotspots_) {
    rows.insert(row);
    columns.insert(column);
  }
  const AxisList both = {"data", "model"};
  PartitionSpec spec;
  spec.dims = rows.size() > columns.size() ? std::vector<AxisList>{both, {}} : std::vector<AxisList>{{}, both};
  return spec;
}

// ---- environment -------------------------------------------------------------------------------------------------

FlagValues TPUConfig::xla_flags() const {
  FlagChoice choice;
  choice.level = static_cast<int>(settings_.xla_optimization_level);
  choice.fusion = settings_.enable_xla_fusion;
  choice.async_collective = settings_.enable_async_collective;
  FlagValues flags = chosen_flags(choice);
  flags["xla_tpu_enable_data_parallel_all_reduce_opt"] = settings_.communication_optimization ? "true" : "false";
  if (settings_.use_collective_matmul) flags["xla_jf_spmd_threshold_for_windowed_einsum_mib"] = "0";
  flags["xla_enable_profiler"] = settings_.enable_profiling ? "true" : "false";
  return flags;
}

void add_platforms(std::map<std::string, std::string>& environment, bool tpu_here) {
  const char* platforms = std::getenv("JAX_PLATFORMS");
  environment["JAX_PLATFORMS"] = !tpu_here   ? concat(not_set, "this machine has no TPU")
                                 : platforms ? std::string(platforms)
                                             : std::string("tpu,cpu");
  environment["XLA_FLAGS"] = concat(not_set, "jaxlib ends the process at flags of the TPU compiler there");
}

std::map<std::string, std::string> TPUConfig::environment(bool tpu_here) const {
  const char* before = std::getenv("LIBTPU_INIT_ARGS");
  std::map<std::string, std::string> done;
  try {
    done["LIBTPU_INIT_ARGS"] = merge_init_args(before ? before : "", xla_flags());
  } catch (const ValueError& error) {
    throw TPUError(error.what());
  }
  add_platforms(done, tpu_here);
  for (const char* name : {"XLA_PYTHON_CLIENT_ALLOCATOR", "XLA_PYTHON_CLIENT_PREALLOCATE"})
    done[name] = concat(not_set, "a setting of GPUs, without effect on a TPU");
  return done;
}

std::map<std::string, std::string> TPUConfig::setup_environment_variables() const {
  const std::map<std::string, std::string> done = environment(chip_of_this_machine().has_value());
  for (const auto& [name, value] : done) {
    if (value.rfind(not_set, 0) != 0) setenv(name.c_str(), value.c_str(), 1);
  }
  return done;
}

void TPUConfig::enable_debugging_mode() const {
  for (const char* name : {"jax_debug_nans", "jax_debug_infs", "jax_log_compiles"}) {
    jax::config::update(name, true);
  }
}

std::string environment_text(const std::string& who, const std::map<std::string, std::string>& environment) {
  std::vector<std::string> placed, left;
  for (const auto& [name, value] : environment) {
    if (value.rfind(not_set, 0) == 0) {
      left.push_back(concat(name, " (", value.substr(std::strlen(not_set)), ")"));
    } else {
      placed.push_back(name);
    }
  }
  return concat(who, ": set ", placed.empty() ? "nothing" : joined(placed, ", "),
                left.empty() ? "" : "; not set: " + joined(left, ", "));
}

std::optional<std::string> chip_of_this_machine() {
  DiagnosisOptions options;
  options.libraries = false;
  for (const Finding& finding : diagnose(options)) {
    const std::size_t times = finding.text.find(" x ");
    if (finding.subject == "PCI" && finding.state == "ok" && times != std::string::npos)
      return finding.text.substr(times + 3);
  }
  return std::nullopt;
}

std::map<std::string, std::string> configure_tpu_environment(const std::optional<TPUConfig>& config) {
  if (config) return config->setup_environment_variables();
  TPUSettings settings;
  settings.tpu_version = chip_of_this_machine().value_or("v4");
  return TPUConfig(settings).setup_environment_variables();
}

}  // namespace capibara::tpu
