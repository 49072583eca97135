// Starts the slopes of the bias on NVIDIA GPUs.
#include <type_traits>

#include "backends/cuda/attention/attention_bias.h"
#include "backends/cuda/attention/attention_start.h"

namespace capibara::cuda::attention {

cudaError_t start_bias_slopes(const Problem& problem, Element element, cudaStream_t stream) {
  return by_size(problem, element, [&](auto type, auto size) {
    using T = decltype(type);
    constexpr int D = decltype(size)::value;
    const dim3 grid(static_cast<unsigned>(BiasGrid(problem, block_rows, backward_rows<T, D>).blocks()));
    return start(bias_slopes_kernel<T, D>, grid, block_threads, bias_block_bytes<T, D>, problem, stream);
  });
}

}  // namespace capibara::cuda::attention
