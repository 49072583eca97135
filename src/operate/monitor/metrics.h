// Sources of the values of metrics.
#pragma once

#include <cstdint>
#include <string>

#include <capibara/monitor.h>

#include "core/runtime/counters.h"

namespace capibara {

// All counters at one point in time.
struct ProcessSample {
  double seconds = 0;            // of a monotonic clock
  double processor_seconds = 0;  // of all threads of this process
  uint64_t steps = 0, tokens = 0;
  FlopsByType flops{};
};
ProcessSample take_sample(uint64_t steps, uint64_t tokens);

// The metrics between an earlier sample and a later one.
Metrics metrics_between(const ProcessSample& before, const ProcessSample& now);
std::string metrics_json(const Metrics& metrics);  // an object on one line
// The valid name nearest to a wrong one.
std::string nearest_metric(const std::string& name);

}  // namespace capibara
