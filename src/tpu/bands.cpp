// Bands of modelled figures: nine of ten true figures of rows that were not fitted are inside, by cross-validation.
//
// Printed by `tools/tpu/refit_memory.py`, refit.py and refit.cpp; memory by kind of model and policy, matmuls by chip
// and type, steps by the published runs.
#include "tpu/bands.h"

#include <string_view>

namespace capibara::tpu {

namespace {

// Factors on the lowest and the highest of the figures that memory.cpp computes where the compiler's choice is open.
constexpr Band kKept{0.918, 1.092}, kNone{0.901, 1.108}, kExperts{0.914, 1.089}, kMamba{0.913, 1.198};

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

Band step_band(const Training& _) { return {0.936, 1.104}; }

Band matmul_band(const Chip& chip, const Matmul& matmul) {
  struct Row {
    const char* chip;
    Band others, int8;
  };
  static constexpr Band kInt8{0.775, 1.821};  // of every chip: v5e and TPU7x have too few rows
  static constexpr Row rows[] = {{"v4", {0.879, 1.133}, {0.775, 1.103}},
                                 {"v5e", {0.916, 1.108}, kInt8},
                                 {"v5p", {0.902, 1.121}, {0.807, 1.821}},
                                 {"v6e", {0.849, 1.174}, {0.85, 1.238}},
                                 {"tpu7x", {0.899, 1.123}, kInt8}};
  for (const Row& row : rows) {
    if (std::string_view(row.chip) == chip.name) return matmul.precision == Precision::int8 ? row.int8 : row.others;
  }
  return {0, 0};  // v2 and v3 have no compiled rows
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
