// What the demo consists of, so that it is built soon: native backends and the fused kernels that it runs; no plugins,
// no partitioner, no reports, no kernels that training does without.
#include <capibara/error.h>
#include <capibara/partition.h>

#include <cstdlib>

#include "assembly/native_families.h"
#include "backends/cpu/kernels/families.h"
#include "backends/profile_watch.h"
#include "kernels/family.h"
#include "core/runtime/warning.h"
#include "transforms/jit_watch.h"

namespace capibara {

namespace {

constexpr BackendFamily families[] = {cpu_family, reference_family};

[[noreturn]] void refuse_partition() {
  throw NotImplementedError("the demo's program runs on one device; build/capibara, of './run build', knows meshes");
}

void warn_of(const char* variable) {
  const char* value = std::getenv(variable);
  if (!value || !*value) return;
  warn(concat(variable, " does nothing in the demo's program; build/capibara, of './run build', heeds it"),
       WarningKind::runtime);
}

}  // namespace

std::span<const BackendFamily> backend_families() { return families; }
Family fused_family() { return kernel_family(); }
cpu::KernelMakers cpu::non_demo_makers() { return {}; }

void profile_by_environment() { [[maybe_unused]] static const bool said = (warn_of("CAPIBARA_PROFILE"), true); }
void watch_by_environment() { [[maybe_unused]] static const bool said = (warn_of("CAPIBARA_MONITOR"), true); }

namespace sharding {

std::optional<std::vector<NamedSharding>> output_shardings(const Program&, const MaybeShardings&,
                                                           const MaybeShardings&) {
  refuse_partition();
}
PartitionedProgram partition(const Program&, const MaybeShardings&, const MaybeShardings&) { refuse_partition(); }
Program PartitionedProgram::whole() const { refuse_partition(); }

}  // namespace sharding

}  // namespace capibara
