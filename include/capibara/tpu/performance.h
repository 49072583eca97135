// The bottleneck of a training step on a slice, and changes that would speed it up; modelled, except the data loader.
#pragma once

#include <capibara/tpu/request.h>

#include <functional>

namespace capibara::tpu {

// A modelled step with its assumptions.
struct StepEstimate {
  StepPlan step;
  std::string tpu;
  double batch_size = 0;
  std::vector<std::string> assumed;
};
// Modelled time of one training step. By default on v4-8, with one sequence per device.
StepEstimate estimate_step(const PlanRequest& request);

struct BottleneckAnalysis {
  Figure compute_bound, memory_bound, communication_bound;  // fractions, which sum to 1
  std::string bound;                                        // compute, memory or communication
  std::vector<Recommendation> recommendations;              // single changes that speed it up, best first
  std::string tpu;
  double batch_size = 0;
  std::vector<std::string> assumed;
};
// The bottlenecks of a modelled step. Missing fields are assumed as in estimate_step.
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
  // Loads the next batch; false at the end of the data. The first eight calls are measured.
  std::function<bool()> load_batch = {};
};
// Why training misses its target: the modelled step, the measured time of a batch, and possible improvements. By
// default on v6e-64.
PerformanceDiagnosis diagnose_performance(const PlanRequest& request, const DiagnosisTarget& target = {});

}  // namespace capibara::tpu
