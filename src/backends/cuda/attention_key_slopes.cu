// Starts the slopes of keys and values on NVIDIA GPUs.
#include <type_traits>

#include "backends/cuda/attention_backward.h"
#include "backends/cuda/attention_start.h"

namespace capibara::cuda::attention {

cudaError_t start_key_slopes(const Problem& problem, Element element, cudaStream_t stream) {
  const int64_t tiles = (problem.keys + block_rows - 1) / block_rows;
  const dim3 grid(static_cast<unsigned>(tiles * problem.batch * problem.groups));
  return by_size(problem, element, [&](auto type, auto size) {
    using T = decltype(type);
    constexpr int D = decltype(size)::value, bytes = backward_bytes<T, D>;
    if constexpr (D <= 128) {
      return start(key_slopes_kernel<T, D, true, true>, grid, block_threads, bytes, problem, stream);
    } else {
      const cudaError_t status =
          start(key_slopes_kernel<T, D, true, false>, grid, block_threads, bytes, problem, stream);
      if (status != cudaSuccess) return status;
      return start(key_slopes_kernel<T, D, false, true>, grid, block_threads, bytes, problem, stream);
    }
  });
}

}  // namespace capibara::cuda::attention
