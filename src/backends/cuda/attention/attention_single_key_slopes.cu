// Launches the kernel for dK and dV in float32 on NVIDIA GPUs.
#include "backends/cuda/attention/attention_key_slopes.h"

namespace capibara::cuda::attention {

cudaError_t start_single_key_slopes(const Problem& problem, cudaStream_t stream) {
  return start_key_slopes_of<float>(problem, stream);
}

}  // namespace capibara::cuda::attention
