// Fused kernels with shared options, and the time and memory of each call, measured on this machine.
#pragma once

#include <capibara/kernels.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace capibara::tpu {

using Arrays = std::vector<Array>;

// The type of a precision: float32, bfloat16 or float16. ValueError for other names.
DType kernel_precision(const std::string& name);

struct KernelOptions {
  std::string precision = "float32";  // computation dtype of kernels: float32, bfloat16 or float16
  // The contraction order of einsum_optimize unless a call gives one. none: from left to right; standard: as in einsum;
  // aggressive: the optimal order.
  std::string optimization_level = "standard";
  // Each call is compiled as one program; false: its operations run one by one.
  bool enable_xla_fusion = true;
  bool memory_layout_optimization = true;  // contracts transposed operands as they are stored; false: copies them first
  uint64_t seed = 0;                       // of the object's own key, from which dropout draws if a call gives none
};

// One call: the resources of its program and how long it took.
struct KernelMeasurement {
  double operations = 0;                  // of the program
  int64_t held = 0;                       // bytes of operands and results
  std::optional<int64_t> temporary = {};  // bytes; absent if the backend does not plan memory
  double seconds = 0;
};

// Figures of a kernel on one problem.
struct KernelFigures {
  std::string kernel;
  double throughput = 0;                         // 10^12 operations per second
  double latency_ms = 0;                         // of the fastest call
  std::optional<double> memory_efficiency = {};  // operands and results as a fraction of all the memory of the call
  std::string problem;                           // its shapes as text
};

// Calls functions of arrays, each traced and compiled for its types, and measures calls outside of traced programs.
class KernelMeter {
 public:
  using Function = std::function<Arrays(const Arrays& arrays)>;
  struct Call {
    std::optional<DType> precision = {};  // floating operands are rounded to it; absent: unchanged
    bool compiled = true;                 // as one program; false: operation by operation
    bool donated = false;                 // the first array donates its memory to the result, and is deleted
  };

  // The results of the function. If there is only one, rounding is undone: it has the dtype of the first
  // floating operand. Waits for the result, unless traced, in which case nothing is measured.
  Arrays run(const Call& call, const Function& function, const Arrays& arrays);
  // True if a call of these arrays is part of a program that is being traced.
  static bool is_staged(const Arrays& arrays);
  // The last measured call. ValueError, beginning with `operation`, if there was none.
  const KernelMeasurement& last(const std::string& operation) const;

 private:
  struct Compiled;
  std::multimap<std::size_t, std::shared_ptr<const Compiled>> compiled_;  // by the hash of what was traced
  std::optional<KernelMeasurement> last_;
};

// The fused kernels with common options, each call measured. Despite the name, every method runs on every device.
// Floating operands are rounded to the precision; a result that is a single array has the dtype
// of the first operand.
class TPUv4Kernels {
 public:
  // ValueError for other precisions and levels.
  explicit TPUv4Kernels(KernelOptions options = {});

  const KernelOptions& options() const { return options_; }

  Array flash_attention(const Array& query, const Array& key, const Array& value,
                        kernels::FlashAttentionOptions options = {});
  Array sparse_attention(const Array& query, const Array& key, const Array& value,
                         const kernels::SparseAttentionOptions& options = {});
  // For these three, an empty precision means the object's own, and an empty einsum order that of the level.
  Array optimized_matmul(const Array& a, const Array& b, kernels::OptimizedMatmulOptions options = {.precision = ""});
  Array adaptive_matmul(const Array& a, const Array& b, kernels::AdaptiveMatmulOptions options = {.precision = ""});
  Array einsum_optimize(const std::string& equation, const Arrays& operands,
                        kernels::EinsumOptimizeOptions options = {.optimize = std::string()});
  Arrays batch_operations(const std::string& operation_type, const Arrays& inputs,
                          const kernels::BatchOperationsOptions& options = {});
  Array fast_layer_norm(const Array& x, const kernels::FastLayerNormOptions& options = {});
  Array fused_gelu_dropout(const Array& x, kernels::GeluDropoutOptions options = {});
  kernels::MoeRouting moe_routing_kernel(const Array& tokens, int64_t num_experts, int64_t top_k,
                                         bool load_balancing = true, const kernels::MoeRoutingOptions& options = {});
  Array mamba_ssm_kernel(const Array& inputs, const Array& A_matrix, const Array& B_matrix, const Array& C_matrix,
                         const kernels::MambaOptions& options = {});
  Array vq_encode(const Array& inputs, const Array& codebook, const kernels::VqOptions& options = {});
  kernels::SpikingResult spiking_neuron(const Array& inputs, const kernels::SpikingOptions& options = {});

  // For user functions with the same measurement.
  KernelMeter& meter() { return meter_; }
  // Gigabytes (10^9 bytes) that the last call had in use at once: operands, results and temporaries.
  double get_memory_usage() const;
  // 10^12 operations per second of the last call: those of its program, divided by its time.
  double get_tflops() const;
  // Times kernels on one problem each, by default all: the minimum over the calls that fit in
  // `seconds`, at least three. ValueError for other names.
  std::vector<KernelFigures> benchmark_kernels(const std::vector<std::string>& names = {}, double seconds = 0.2);
  // The kernels that benchmark_kernels supports.
  static std::vector<std::string> benchmarked_kernels();

  // The key for the next dropout. ValueError, naming the argument, if it would be drawn inside jit.
  Array next_key(const std::string& method, const std::string& argument);

 private:
  KernelOptions options_;
  KernelMeter meter_;
  Array key_;
};

}  // namespace capibara::tpu
