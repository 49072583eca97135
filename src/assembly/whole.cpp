// What the library consists of: the native backends and those of plugins, all primitives and the fused ones.
#include "assembly/native_families.h"
#include "backends/pjrt/backend.h"
#include "kernels/family.h"

namespace capibara {

namespace {

constexpr BackendFamily families[] = {
    cpu_family, reference_family, {"pjrt", pjrt::is_platform, pjrt::backend, pjrt::backend, pjrt::holder}};

}  // namespace

std::span<const BackendFamily> backend_families() { return families; }
Family fused_family() { return kernel_family(); }

}  // namespace capibara
