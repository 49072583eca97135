// Kernels of fused operations: those in files named after one in src/kernels.
#include "backends/cpu/kernels/families.h"
#include "fused_kernels.h"

namespace capibara::cpu {

#define CAPIBARA_DECLARE(name) KernelMakers name##_makers();
CAPIBARA_CPU_KERNELS(CAPIBARA_DECLARE)
#undef CAPIBARA_DECLARE

KernelMakers fused_makers() {
  KernelMakers all;
#define CAPIBARA_ADD(name) \
  for (const KernelMakerEntry& entry : name##_makers()) all.push_back(entry);
  CAPIBARA_CPU_KERNELS(CAPIBARA_ADD)
#undef CAPIBARA_ADD
  return all;
}

}  // namespace capibara::cpu
