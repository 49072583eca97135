// The family of fused operations in the catalog: the records of every kernel in this folder.
#include "kernels/family.h"

#include "fused_kernels.h"
#include "kernels/composed.h"

namespace capibara {

namespace kernels {
#define CAPIBARA_DECLARE(name) Family name##_records();
CAPIBARA_KERNELS(CAPIBARA_DECLARE)
#undef CAPIBARA_DECLARE
}  // namespace kernels

Family kernel_family() {
  Family family = {composed_tangent_record()};
#define CAPIBARA_ADD(name) \
  for (PrimitiveRecord & record : kernels::name##_records()) family.push_back(std::move(record));
  CAPIBARA_KERNELS(CAPIBARA_ADD)
#undef CAPIBARA_ADD
  return family;
}

}  // namespace capibara
