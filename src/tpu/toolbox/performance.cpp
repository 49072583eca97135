// Bottlenecks of a modelled step and diagnosis of slow training.
#include <capibara/tpu/performance.h>

#include <algorithm>
#include <chrono>

#include "tpu/toolbox/request.h"

namespace capibara::tpu {

namespace {

// The mean time of the first batches, in seconds.
double seconds_of_a_batch(const std::function<bool()>& load_batch) {
  const auto start = std::chrono::steady_clock::now();
  int count = 0;
  while (count < 8 && load_batch()) ++count;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / std::max(count, 1);
}

}  // namespace

StepEstimate estimate_step(const PlanRequest& request) {
  const CompletedRequest done = complete(request, "estimate_step");
  return {plan_step(done.training), done.tpu, done.batch_size, done.assumed};
}

BottleneckAnalysis analyze_bottlenecks(const PlanRequest& request) {
  const CompletedRequest done = complete(request, "analyze_bottlenecks");
  const StepPlan step = plan_step(done.training);
  const std::string origin = done.origin();
  return {{step.compute_share, origin},
          {step.memory_share, origin},
          {step.communication_share, origin},
          step.bound,
          recommend(done.training),
          done.tpu,
          done.batch_size,
          done.assumed};
}

PerformanceDiagnosis diagnose_performance(const PlanRequest& request, const DiagnosisTarget& target) {
  const char* operation = "diagnose_performance";
  if (target.target_tflops) require_positive(operation, "target_tflops", *target.target_tflops);
  const CompletedRequest done = complete(request, operation, "v6e-64");
  const StepPlan step = plan_step(done.training);
  const MemoryPlan memory = plan_memory(done.training);
  PerformanceDiagnosis found;
  if (target.load_batch) {
    const double seconds = seconds_of_a_batch(target.load_batch);
    if (seconds > step.seconds) {
      found.issues.push_back({"data loading",
                              concat(number_text("%.3g", seconds), " s for a batch (measured here) against a step of ",
                                     number_text("%.3g", step.seconds), " s (modelled)"),
                              "load batches in other processes and prefetch them"});
    }
  }
  if (!memory.fits) {
    found.issues.push_back({"out of memory",
                            concat(number_text("%.1f", memory.total_gib), " of ", number_text("%.1f", memory.limit_gib),
                                   " GiB (modelled)"),
                            "a smaller batch, remat full or offload, or more chips"});
  }
  const double tflops = step.model_tflops_per_chip * done.training.slice.chips();
  if (target.target_tflops && tflops < *target.target_tflops) {
    const std::vector<Recommendation> changes = recommend(done.training);
    found.issues.push_back(
        {step.bound + " bound",
         concat(number_text("%.0f", tflops), " of ", number_text("%g", *target.target_tflops), " TFLOP/s (modelled)"),
         changes.empty() ? "no single change of this plan is faster" : changes.front().text});
  }
  found.tflops = {tflops, done.origin()};
  found.target_tflops = target.target_tflops;
  found.tpu = done.tpu;
  found.batch_size = done.batch_size;
  found.assumed = done.assumed;
  return found;
}

}  // namespace capibara::tpu
