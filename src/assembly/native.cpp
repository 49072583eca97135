// What the demo consists of, so that it is built soon: native backends, no plugins, the fused kernels that it runs.
#include "assembly/native_families.h"
#include "kernels/family.h"

namespace capibara {

namespace {

constexpr BackendFamily families[] = {cpu_family, reference_family};

}  // namespace

std::span<const BackendFamily> backend_families() { return families; }
Family further_family() { return kernel_family(); }

}  // namespace capibara
