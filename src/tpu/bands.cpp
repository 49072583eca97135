// Bands of modelled figures: nine of ten true figures of rows that were not fitted are inside, by cross-validation.
//
// Printed by `tools/tpu/refit_memory.py`, refit.py and refit.cpp; memory by kind of model and policy, matmuls by chip
// and type, steps by the published runs.
#include "tpu/bands.h"

#include <string_view>

namespace capibara::tpu {

namespace {

// Factors on the lowest and the highest of the figures that memory.cpp computes where the compiler's choice is open.
constexpr Band kKept{0.927, 1.093}, kNone{0.891, 1.111}, kExperts{0.91, 1.136}, kMamba{0.929, 1.219};

}  // namespace

Band memory_band(const Training& training) {
  const std::string_view kind = training.model.kind;
  if (kind == "mamba") return kMamba;
  if (kind != "dense") return kExperts;
  return training.remat == "none" ? kNone : kKept;
}

void judge(MemoryPlan& plan) {
  plan.fits = plan.total_gib <= plan.limit_gib;
  plan.verdict = plan.high_gib <= plan.limit_gib ? Verdict::fits
                 : plan.low_gib > plan.limit_gib ? Verdict::does_not_fit
                                                 : Verdict::cannot_tell;
}

Band step_band(const Training&) { return {0.89, 1.12}; }

Band matmul_band(const Chip&, const Matmul& matmul) {
  return matmul.precision == Precision::int8 ? Band{0.75, 1.35} : Band{0.85, 1.2};
}

const char* verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::fits:
      return "fits";
    case Verdict::does_not_fit:
      return "does not fit";
    default:
      return "cannot tell without the compiler";
  }
}

}  // namespace capibara::tpu
