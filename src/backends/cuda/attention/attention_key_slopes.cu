// Launches the kernel for dK and dV on NVIDIA GPUs.
#include "backends/cuda/attention/attention_key_slopes.h"

namespace capibara::cuda::attention {

cudaError_t start_key_slopes(const Problem& problem, Element element, cudaStream_t stream) {
  if (element == Element::single) return start_single_key_slopes(problem, stream);
  return element == Element::brain ? start_key_slopes_of<__nv_bfloat16>(problem, stream)
                                   : start_key_slopes_of<__half>(problem, stream);
}

}  // namespace capibara::cuda::attention
