// The parts linked into the library: the native and plugin backends, all CPU kernels, profiles and the
// monitor.
#include "assembly/native_families.h"
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/fft/fft.h"
#include "backends/cpu/kernels/linalg/small_matrices.h"
#include "backends/cpu/kernels/linalg/small_spectra.h"
#include "backends/cpu/kernels/small_families.h"
#include "backends/ffi/call.h"
#include "backends/pjrt/backend.h"
#include "backends/profile_watch.h"
#include "operate/monitor/watch_by_environment.h"
#include "operate/reports/profile_by_environment.h"
#include "transforms/jit_watch.h"

namespace capibara {

namespace {

constexpr BackendFamily whole_backends[] = {
    cpu_family, reference_family, {"pjrt", pjrt::is_platform, pjrt::backend, pjrt::backend, pjrt::holder}};

}  // namespace

std::span<const BackendFamily> backend_families() { return whole_backends; }

MakeForeignCall* const make_foreign_call = ffi::make_call;
Begin* const at_first_operation = profile_by_environment;
Begin* const at_first_compilation = watch_by_environment;

namespace cpu {

namespace {

constexpr KernelFamily whole_kernels[] = {cumulative_makers,   dot_makers,
                                          extreme_makers,      index_makers,
                                          movement_makers,     random_makers,
                                          reduction_makers,    scatter_makers,
                                          top_k_makers,        transpose_makers,
                                          fused_makers,        convolution_makers,
                                          fft_makers,          function_makers,
                                          order_makers,        select_and_scatter_makers,
                                          small_matrix_makers, small_spectrum_makers,
                                          window_makers};

}  // namespace

std::span<const KernelFamily> kernel_families() { return whole_kernels; }

}  // namespace cpu

}  // namespace capibara
