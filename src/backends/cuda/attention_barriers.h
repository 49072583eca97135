// Barriers in shared memory, between the warpgroup that copies and those that multiply.
#pragma once

#include <cstdint>

namespace capibara::cuda::attention {

inline __device__ void set_up_barrier(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
inline __device__ void arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// Whether the phase of this parity has ended.
inline __device__ bool has_ended(uint32_t barrier, uint32_t parity) {
  uint32_t ended;
  asm volatile(
      "{\n.reg .pred done;\n"
      "mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n"
      "selp.u32 %0, 1, 0, done;\n}\n"
      : "=r"(ended)
      : "r"(barrier), "r"(parity)
      : "memory");
  return ended != 0;
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

}  // namespace capibara::cuda::attention
