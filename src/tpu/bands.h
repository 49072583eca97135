// How far compiled and published figures are from modelled ones, by cross-validation.
#pragma once

#include <capibara/tpu/costs.h>
#include <capibara/tpu/plan.h>

namespace capibara::tpu {

// True over modelled figure: from `low` to `high`.
struct Band {
  double low = 1, high = 1;
};
Band memory_band(const Training& training);
Band step_band(const Training& training);
void judge(MemoryPlan& plan);  // fills `fits` and `verdict`
Band matmul_band(const Chip& chip, const Matmul& matmul);

}  // namespace capibara::tpu
