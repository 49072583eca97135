// The module of CUDA kernels: the table of all its handlers, which the library looks up by one symbol.
#include <cuda_runtime.h>

#include <vector>

#include "backends/cuda/kernels.h"
#include "fused_kernels.h"

namespace capibara::cuda {

#define CAPIBARA_DECLARE(name) Handlers name##_handlers();
CAPIBARA_CUDA_KERNELS(CAPIBARA_DECLARE)
#undef CAPIBARA_DECLARE

namespace {

int32_t attribute(cudaDeviceAttr which) {
  int value = 0;
  return cudaDeviceGetAttribute(&value, which, 0) == cudaSuccess ? value : 0;
}
int32_t multiprocessors() { return attribute(cudaDevAttrMultiProcessorCount); }
int32_t shared_memory() { return attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin); }

std::vector<KernelRecord> all_records() {
  std::vector<KernelRecord> all;
#define CAPIBARA_HANDLERS(name) name##_handlers(),
  for (const Handlers& own : {CAPIBARA_CUDA_KERNELS(CAPIBARA_HANDLERS)})
    all.insert(all.end(), own.records, own.records + own.count);
#undef CAPIBARA_HANDLERS
  return all;
}

}  // namespace
}  // namespace capibara::cuda

extern "C" __attribute__((visibility("default"))) const capibara::cuda::KernelTable* capibara_cuda_kernels() {
  using namespace capibara::cuda;
  static const std::vector<KernelRecord> records = all_records();
  static const KernelTable table = {table_version, static_cast<int32_t>(records.size()), records.data(),
                                    multiprocessors, shared_memory};
  return &table;
}
