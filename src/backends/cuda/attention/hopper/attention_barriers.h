// Barriers in shared memory, between the warpgroup that copies and those that multiply, and waits for products.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace capibara::cuda::attention {

inline __device__ void set_up_barrier(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
inline __device__ void arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// When the copies that this thread has started have ended.
inline __device__ void arrive_after_copies(uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
// Until the phase of this parity has ended.
inline __device__ void await_phase(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra over;\nbra again;\nover:\n}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
// What this thread wrote to shared memory becomes visible to tensor cores that read it there.
inline __device__ void publish_writes() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---- products of warpgroups: until they have started, and ended ---------------------------------------------------

inline __device__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
inline __device__ void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int Left>
__device__ void await_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Left) : "memory");
}

// What follows, which may be to wait for a product, comes after `value` is computed: a branch that is never taken,
// since no arithmetic makes this NaN.
inline __device__ void compute_first(float value) {
  if (__float_as_uint(value) == 0xffc12345u) asm volatile("nanosleep.u32 1;" ::: "memory");
}

// Values that are computed before what follows, which may be to wait for a product, although nothing there needs them.
template <int N>
__device__ void compute_now(float (&values)[N][4]) {
#pragma unroll
  for (int j = 0; j < N; ++j)
    asm volatile("" : "+f"(values[j][0]), "+f"(values[j][1]), "+f"(values[j][2]), "+f"(values[j][3])::"memory");
}

}  // namespace capibara::cuda::attention
