// MemoryOptimizer and find_optimal_batch_size: memory saved by recomputation, and the best batch size.
#include <capibara/tpu/memory.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "tpu/bands.h"
#include "tpu/toolbox/request.h"
#include "tpu/words.h"

namespace capibara::tpu {

namespace {

struct Strategy {
  const char* name;
  const char* remat;  // the planner's name
};
constexpr Strategy strategies[] = {{"none", "none"}, {"normal", "minimal"}, {"aggressive", "full"}};

// Layers of a group share one kept input, and one group of layers is recomputed at a time.
void group_layers(MemoryPlan& plan, const std::string& remat, int64_t group, int64_t layers) {
  if (remat != "full" || group < 2) return;
  const auto saved = std::find_if(plan.buffers.begin(), plan.buffers.end(),
                                  [](const PlanBuffer& buffer) { return buffer.name == "saved activations"; });
  const double less = saved == plan.buffers.end() ? 0 : saved->gib * (1 - 1 / static_cast<double>(group));
  if (saved != plan.buffers.end()) saved->gib -= less;
  const double each = less / static_cast<double>(layers);
  for (PlanBuffer& moment : plan.timeline) {
    if (moment.name == "first layer" || moment.name == "backward, first layer") moment.gib -= each;
    if (moment.name == "last layer" || moment.name == "loss" || moment.name == "backward, last layer")
      moment.gib -= less;
  }
  const double before = plan.total_gib;
  plan.total_gib -= less;
  plan.low_gib *= plan.total_gib / before;
  plan.high_gib *= plan.total_gib / before;
  judge(plan);
}

// The slice of this version with enough chips for the requested memory, by default four; records it in `assumed`.
std::string slice_with(const BatchSizeRequest& request, std::vector<std::string>& assumed) {
  const Chip* chip = nullptr;
  try {
    chip = &find_chip(request.tpu_version);
  } catch (const ValueError&) {
    throw TPUError(
        concat("find_optimal_batch_size: expected a version such as 'v4', 'v5e', 'v5p' or 'v6e' (argument "
               "'tpu_version'), got '",
               request.tpu_version, "'"));
  }
  const double memory = request.available_memory_gb.value_or(4 * chip->hbm_gb);
  if (!(memory > chip->hbm_gb / 2 && memory < 1e9)) {
    throw TPUError(concat("find_optimal_batch_size: available_memory_gb is that of whole chips, ",
                          number_text("%g", chip->hbm_gb), " for each ", chip->name, ", got ", number_text(memory)));
  }
  const int count = static_cast<int>(std::nearbyint(memory / chip->hbm_gb));
  const std::string tpu = slice_of(*chip, count).topology();
  assumed.push_back(
      concat("slice ", tpu, ": ",
             request.available_memory_gb ? concat(count, " chips have that memory") : "no memory was given"));
  return tpu;
}

}  // namespace

MemoryOptimizer::MemoryOptimizer(MemoryOptions options) : options_(std::move(options)) {
  const auto chosen = std::find_if(std::begin(strategies), std::end(strategies),
                                   [&](const Strategy& one) { return options_.strategy == one.name; });
  if (chosen == std::end(strategies)) {
    throw TPUError(
        concat("MemoryOptimizer: strategy is one of none, normal, aggressive, got '", options_.strategy, "'"));
  }
  if (options_.activation_checkpointing_layers < 1) {
    throw TPUError(concat("MemoryOptimizer: activation_checkpointing_layers is a number of layers, at least 1, got ",
                          options_.activation_checkpointing_layers));
  }
  remat_ = options_.gradient_checkpointing ? "full" : options_.enable_rematerialization ? chosen->remat : "none";
}

MemoryEstimate MemoryOptimizer::estimate_memory(PlanRequest request) const {
  request.remat = remat_;
  const CompletedRequest done = complete(request, "MemoryOptimizer.estimate_memory");
  MemoryEstimate estimate{plan_memory(done.training), {}, remat_, done.tpu, done.batch_size, done.assumed};
  group_layers(estimate.plan, remat_, options_.activation_checkpointing_layers, done.training.model.layers);
  estimate.total_gb = {estimate.plan.total_gib * 0x1p30 / 1e9, done.origin()};
  return estimate;
}

AnyModel MemoryOptimizer::optimize(const AnyModel& model) const {
  if (remat_ == "none") return model;
  return enable_gradient_checkpointing(model, options_.activation_checkpointing_layers,
                                       remat_ == "minimal" ? "minimal" : "nothing_saveable");
}

PlannedBatch find_optimal_batch_size(const BatchSizeRequest& request) {
  const std::string operation = "find_optimal_batch_size";
  require_positive(operation, "sequence_length", static_cast<double>(request.sequence_length));
  const ModelDescription described = describe(request.model, operation);
  if (!(request.target_utilization > 0 && request.target_utilization <= 1)) {
    throw TPUError(concat(operation, ": target_utilization is above 0 and at most 1, got ",
                          number_text(request.target_utilization)));
  }
  PlannedBatch chosen;
  chosen.assumed = described.assumptions;
  chosen.tpu = request.tpu.empty() ? slice_with(request, chosen.assumed) : request.tpu;
  named_slice(operation, chosen.tpu);  // raises with this function's name
  struct Fitting {
    double speed;
    int64_t batch;
  };
  std::vector<Fitting> fitting;
  for (const char* remat : {"none", "minimal", "full"}) {
    for (int power = 0; power < 16; ++power) {
      PlanRequest one{described.sizes, chosen.tpu, request.sequence_length};
      one.batch_size = std::ldexp(1.0, power);
      one.remat = remat;
      one.flash = request.flash;
      const Training training = complete(one, operation).training;
      try {
        if (plan_memory(training).fits) fitting.push_back({plan_step(training).tokens_per_second, int64_t{1} << power});
      } catch (const ValueError&) {
        continue;  // the model cannot be split over so few sequences
      }
    }
  }
  if (fitting.empty()) {
    throw TPUError(concat(operation, ": no batch of sequences of ", request.sequence_length, " fits on ", chosen.tpu,
                          "; a larger slice is needed"));
  }
  double fastest = 0;
  for (const Fitting& one : fitting) fastest = std::max(fastest, one.speed);
  for (const Fitting& one : fitting) {
    if (one.speed < request.target_utilization * fastest) continue;
    if (chosen.sequences == 0 || one.batch < chosen.sequences) chosen.sequences = one.batch;
  }
  chosen.origin = concat("modelled for ", chosen.tpu, " with sequences of ", request.sequence_length,
                         chosen.assumed.empty() ? "" : "; assumed: " + joined(chosen.assumed, "; "));
  return chosen;
}

}  // namespace capibara::tpu
