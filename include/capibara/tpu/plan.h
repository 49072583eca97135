// Plans: the modelled memory and time of one training step on a slice, and the search for the best way to split
// it.
#pragma once

#include <capibara/tpu/chips.h>
#include <capibara/tpu/models.h>

#include <string>
#include <vector>

namespace capibara::tpu {

// How a step is split over the devices of a slice; the product is their number.
struct PlanMesh {
  int data = 1, fsdp = 1, expert = 1, tensor = 1, context = 1;
  int dcn_data = 1, dcn_fsdp = 1;  // over slices

  int devices() const { return data * fsdp * expert * tensor * context * dcn_data * dcn_fsdp; }
  std::string text() const;  // fsdp=16,tensor=4
};
// Parses data=8,model=8 (model is an alias of tensor). Raises ValueError for unknown axes.
PlanMesh read_mesh(std::string_view text);

struct Training {
  Architecture model;
  Slice slice;
  PlanMesh mesh;
  double batch_per_device = 1;  // sequences
  int64_t sequence = 2048;
  std::string remat = "full";      // none, minimal, qkv, full, offload, or one of MaxText's, such as save_out_proj
  std::string precision = "bf16";  // of the matmuls of layers: bf16, int8, fp8
  double recompute = -1;    // fraction of the forward pass that the backward pass recomputes; -1: implied by remat
  bool flash = true;        // attention by a kernel that does not write its scores to memory
  bool large_vmem = true;   // xla_tpu_scoped_vmem_limit_kib at its large value
  double state_bytes = 12;  // per parameter: f32 with both moments of Adam
  double hbm_gib = 0;       // 0: that of the slice
  double peak_tflops = 0;   // of a chip; 0: that of the slice
};

// One of the buffers that a step keeps, in GiB per device.
struct PlanBuffer {
  std::string name;
  double gib = 0;
};

// What a model of limited accuracy can say about a limit.
enum class Verdict { fits, does_not_fit, cannot_tell };
// "fits", "does not fit", "cannot tell without the compiler".
const char* verdict_text(Verdict verdict);

struct MemoryPlan {
  double state_gib = 0, total_gib = 0, host_gib = 0, limit_gib = 0;
  double low_gib = 0, high_gib = 0;  // the band of total_gib, from cross-validation
  bool fits = false;                 // total_gib, without its band
  Verdict verdict = Verdict::cannot_tell;
  std::string moment;                // of peak memory: "loss" or "backward of a layer"
  std::vector<PlanBuffer> buffers;   // at that moment, largest first
  std::vector<PlanBuffer> timeline;  // total over the step, in order
  double room_gib() const { return limit_gib - total_gib; }
};
// The compiler's flags that a plan assumes, as NAME=VALUE; empty: its defaults.
std::string step_flags(const Training& training);
// Memory of one device. Raises ValueError where the mesh does not match the slice or the model.
MemoryPlan plan_memory(const Training& training);

struct StepPlan {
  double seconds = 0;
  double low_seconds = 0, high_seconds = 0;  // the band of `seconds`, from cross-validation on published runs
  double matmul = 0, attention = 0, elementwise = 0, optimizer = 0, recompute = 0;  // seconds of compute, by kind
  double ici = 0, dcn = 0;                                                          // not overlapped
  double host = 0;  // not overlapped, of activations that are offloaded to the host and back
  double ici_hidden = 0;
  double weight_collectives = 0, activation_collectives = 0;  // total, overlapped or not
  double tokens_per_second = 0;                               // of the whole job
  double model_tflops_per_chip = 0;                           // causal attention counted half
  double model_tflops_per_chip_noncausal = 0;
  double mfu = 0;     // of the chip's bf16 peak, causal
  std::string bound;  // compute, memory or communication
  double compute_share = 0, memory_share = 0, communication_share = 0;
};
// Raises ValueError if a step cannot be split as requested. The groups of devices must divide the batch; the mesh must
// divide the width, the vocabulary and the width of keys.
void check_split(const Training& training);
// Time of one training step.
StepPlan plan_step(const Training& training);

struct Candidate {
  Training training;
  MemoryPlan memory;
  StepPlan step;
};
struct SearchOptions {
  double global_batch = 0;  // sequences; 0: batches are searched too
  std::vector<std::string> remats = {"none", "minimal", "qkv", "full", "offload"};
  double headroom = 0;  // fraction of the HBM to leave free
  bool flags = true;    // with and without the large VMEM limit, if it is known to matter
};
// Every split of the slice that the model's sizes allow, fitting ones first, sorted by tokens per second.
std::vector<Candidate> search_plans(const Training& start, const SearchOptions& options);

// The changes to a step with the largest predicted gain.
struct Recommendation {
  std::string text;
  double gain = 0;  // of tokens per second: 0.1 is 10 %
};
// Single changes of a plan that fit and are faster, best first.
std::vector<Recommendation> recommend(const Training& training);

struct CompiledFigure {
  std::string name;
  double modelled = 0, compiled = 0;
};
struct CompiledProgram;
// One self-contained page: roofline, memory over the step, time by kind, scaling over chips, compiled figures.
// Compiled figures of matmuls and of the whole step are included if given.
std::string plan_html(const Training& training, const std::vector<Candidate>& others,
                      const std::vector<CompiledFigure>& compiled, const CompiledProgram* step = nullptr);

}  // namespace capibara::tpu
