// Launches the kernel for dK and dV in float32 on NVIDIA GPUs.
#include "backends/cuda/attention/attention_key_gradients.h"

namespace capibara::cuda::attention {

cudaError_t start_single_key_gradients(const Problem& problem, cudaStream_t stream) {
  return start_key_gradients_of<float>(problem, stream);
}

}  // namespace capibara::cuda::attention
