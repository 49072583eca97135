// Launches the kernel for dK and dV on NVIDIA GPUs.
#include "backends/cuda/attention/attention_key_gradients.h"

namespace capibara::cuda::attention {

cudaError_t start_key_gradients(const Problem& problem, Element element, cudaStream_t stream) {
  if (element == Element::single) return start_single_key_gradients(problem, stream);
  return element == Element::bfloat16 ? start_key_gradients_of<__nv_bfloat16>(problem, stream)
                                      : start_key_gradients_of<__half>(problem, stream);
}

}  // namespace capibara::cuda::attention
