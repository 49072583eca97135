// Hopper's bulk copies into shared memory, and the barriers there that count their bytes.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace capibara::cuda {
namespace {

// The multiprocessors of a Hopper GPU; 0 on others.
inline int hopper_size() {
  static const int size = [] {
    int device = 0, major = 0, count = 0;
    if (cudaGetDevice(&device) != cudaSuccess) return 0;
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
    return major == 9 ? count : 0;
  }();
  return size;
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ inline void set_barrier(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals));
}
__device__ inline void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ inline void arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
__device__ inline void await(uint64_t* barrier, uint32_t phase) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra over;\nbra "
      "again;\nover:\n}" ::"r"(shared_address(barrier)),
      "r"(phase)
      : "memory");
}
// Arrives at a barrier and makes it also wait for this many bytes.
__device__ inline void expect_bytes(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}
// Copies whole 16-byte pieces.
__device__ inline void start_bulk(void* to, const void* from, uint32_t bytes, uint64_t* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(barrier))
               : "memory");
}
__device__ inline void copy_bulk(void* to, const void* from, uint32_t bytes, uint64_t* barrier) {
  expect_bytes(barrier, bytes);
  start_bulk(to, from, bytes, barrier);
}

#endif

}  // namespace
}  // namespace capibara::cuda
