// How compiled programs run a primitive: as generated code, by kernels of this backend, by LAPACK, or on the reference
// backend.
#pragma once

#include <string>
#include <vector>

#include <capibara/primitive.h>

namespace capibara::cpu {

// Found by lowering every sample of its record; sorted. Of "compiled" (generated code alone), "kernel" (C++ of this
// backend), "lapack", "composed" (of other primitives), "host" (its evaluation rule: callbacks), "reference" (kernels
// of the reference backend); empty if it cannot run.
std::vector<std::string> ways_to_run(const Primitive& primitive);

}  // namespace capibara::cpu
