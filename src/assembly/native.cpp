// The parts linked into the demo, few so that it builds quickly: native backends and the fused kernels that it runs; no
// plugins, no partitioner, no reports, no kernels that training does not need.
#include <capibara/error.h>
#include <capibara/partition.h>

#include <cstdlib>

#include "assembly/native_families.h"
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/small_families.h"
#include "backends/foreign.h"
#include "backends/profile_watch.h"
#include "core/runtime/warning.h"
#include "transforms/jit_watch.h"

namespace capibara {

namespace {

constexpr BackendFamily native_backends[] = {cpu_family, reference_family};

[[noreturn]] void refuse_partition() {
  throw NotImplementedError("the demo's program runs on one device; build/capibara, of './run build', supports meshes");
}

void warn_of(const char* variable) {
  const char* value = std::getenv(variable);
  if (!value || !*value) return;
  warn(concat(variable, " does nothing in the demo's program; build/capibara, of './run build', heeds it"),
       WarningKind::runtime);
}

void warn_of_profile() { [[maybe_unused]] static const bool said = (warn_of("CAPIBARA_PROFILE"), true); }
void warn_of_monitor() { [[maybe_unused]] static const bool said = (warn_of("CAPIBARA_MONITOR"), true); }

}  // namespace

std::span<const BackendFamily> backend_families() { return native_backends; }

MakeForeignCall* const make_foreign_call = nullptr;
Begin* const at_first_operation = warn_of_profile;
Begin* const at_first_compilation = warn_of_monitor;

namespace cpu {

namespace {

constexpr KernelFamily native_kernels[] = {cumulative_makers, dot_makers,       extreme_makers,   index_makers,
                                           movement_makers,   random_makers,    reduction_makers, scatter_makers,
                                           top_k_makers,      transpose_makers, fused_makers};

}  // namespace

std::span<const KernelFamily> kernel_families() { return native_kernels; }

}  // namespace cpu

// Stubs in place of the partitioner, which the demo would otherwise have to compile for its one device.
namespace sharding {

std::optional<std::vector<NamedSharding>> output_shardings(const Program&, const MaybeShardings&,
                                                           const MaybeShardings&) {
  refuse_partition();
}
PartitionedProgram partition(const Program&, const MaybeShardings&, const MaybeShardings&) { refuse_partition(); }
Program PartitionedProgram::whole() const { refuse_partition(); }

}  // namespace sharding

}  // namespace capibara
