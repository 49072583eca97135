// Where the values of metrics come from.
#pragma once

#include <cstdint>
#include <string>

#include <capibara/monitor.h>

namespace capibara {

// Everything that is counted, at one moment.
struct ProcessSample {
  double seconds = 0;            // of a clock that never goes back
  double processor_seconds = 0;  // of all threads of this process
  uint64_t steps = 0, tokens = 0, flops = 0;
};
ProcessSample take_sample(uint64_t steps, uint64_t tokens);

// The metrics from a sample and an earlier one.
Metrics metrics_between(const ProcessSample& before, const ProcessSample& now);
// Operations per second of a float32 matmul on the default device, measured at the first call.
double measured_peak();
std::string metrics_json(const Metrics& metrics);  // an object on one line
// The name nearest to a wrong one.
std::string nearest_metric(const std::string& name);

}  // namespace capibara
