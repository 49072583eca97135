// What bounds a training step on a slice, and what would make it faster; modelled, but for the time of a data loader.
#pragma once

#include <capibara/tpu/request.h>

#include <functional>

namespace capibara::tpu {

// A modelled step with what was assumed for it.
struct StepEstimate {
  StepPlan step;
  std::string tpu;
  double batch_size = 0;
  std::vector<std::string> assumed;
};
// Modelled time of one training step. Without a slice of v4-8, without a batch with one sequence on each device.
StepEstimate estimate_step(const PlanRequest& request);

struct BottleneckAnalysis {
  Figure compute_bound, memory_bound, communication_bound;  // shares, which sum to 1
  std::string bound;                                        // compute, memory or communication
  std::vector<Recommendation> recommendations;              // single changes that are faster, best first
  std::string tpu;
  double batch_size = 0;
  std::vector<std::string> assumed;
};
// What bounds a modelled step. What is not given is assumed as in estimate_step.
BottleneckAnalysis analyze_bottlenecks(const PlanRequest& request);

struct PerformanceIssue {
  std::string problem, impact, solution;
};
struct PerformanceDiagnosis {
  Figure tflops;  // of the slice, modelled
  std::optional<double> target_tflops = {};
  std::vector<PerformanceIssue> issues;
  std::string tpu;
  double batch_size = 0;
  std::vector<std::string> assumed;
};
struct DiagnosisTarget {
  std::optional<double> target_tflops = {};  // of the slice; absent: none
  // Loads the next batch; false at the end of the data. Its first eight calls are measured.
  std::function<bool()> load_batch = {};
};
// What keeps training from its target: the modelled step, the measured time of a batch, and what would help. Without a
// slice of v6e-64.
PerformanceDiagnosis diagnose_performance(const PlanRequest& request, const DiagnosisTarget& target = {});

}  // namespace capibara::tpu
