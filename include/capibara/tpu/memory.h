// Training memory on a slice: the memory per device under each rematerialization strategy, and models that recompute.
#pragma once

#include <capibara/tpu/request.h>

namespace capibara::tpu {

struct MemoryOptions {
  std::string strategy = "normal";  // none, normal (keep matmuls) or aggressive (keep layer inputs)
  bool enable_rematerialization = true;
  bool gradient_checkpointing = false;          // whole layers are recomputed regardless of the strategy
  int64_t activation_checkpointing_layers = 1;  // layers that share one kept input
};

// Modelled memory of one device.
struct MemoryEstimate {
  MemoryPlan plan;
  Figure total_gb;  // 10^9 bytes
  std::string remat, tpu;
  double batch_size = 0;
  std::vector<std::string> assumed;
};

// The memory that training takes, and models that recompute activations to save memory.
class MemoryOptimizer {
 public:
  // TPUError for other strategies and for less than one layer.
  explicit MemoryOptimizer(MemoryOptions options = {});

  const MemoryOptions& options() const { return options_; }
  // The planner's policy that the options imply: none, minimal or full.
  const std::string& remat() const { return remat_; }
  // Overrides the request's own `remat`.
  MemoryEstimate estimate_memory(PlanRequest request) const;
  // The model with its activations recomputed according to the options. Strategy none recomputes nothing: the model is
  // returned unchanged. ValueError if the model has no layers.
  AnyModel optimize(const AnyModel& model) const;

 private:
  MemoryOptions options_;
  std::string remat_;
};

struct BatchSizeRequest {
  PlannedModel model;
  int64_t sequence_length = 2048;
  double target_utilization = 0.9;                 // fraction of the best modelled tokens per second, in (0, 1]
  std::optional<double> available_memory_gb = {};  // of all chips together; absent: of four
  std::string tpu = {};                            // a slice; empty: the slice of `tpu_version` with that memory
  std::string tpu_version = "v6e";
  bool flash = true;
};

// A number of sequences, and its modelled setting.
struct PlannedBatch {
  int64_t sequences = 0;
  std::string origin, tpu;
  std::vector<std::string> assumed;
};
// The smallest power-of-two global batch that reaches this fraction of the best modelled tokens per second and fits.
// TPUError if none fits.
PlannedBatch find_optimal_batch_size(const BatchSizeRequest& request);

}  // namespace capibara::tpu
