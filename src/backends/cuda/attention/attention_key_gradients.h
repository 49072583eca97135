// Launches the kernel for dK and dV of one type. float32 takes as long to compile as all other types together.
#pragma once

#include "backends/cuda/attention/attention_backward.h"
#include "backends/cuda/attention/attention_start.h"

namespace capibara::cuda::attention {

template <class T, int D>
cudaError_t start_key_gradients_of(const Problem& problem, cudaStream_t stream) {
  const int64_t tiles = (problem.keys + block_rows - 1) / block_rows;
  const dim3 grid(static_cast<unsigned>(tiles * problem.batch * problem.groups));
  constexpr int bytes = backward_bytes<T, D>;
  if constexpr (D <= 128) {
    return start(key_gradients_kernel<T, D, true, true>, grid, block_threads, bytes, problem, stream);
  } else {
    const cudaError_t status =
        start(key_gradients_kernel<T, D, true, false>, grid, block_threads, bytes, problem, stream);
    if (status != cudaSuccess) return status;
    return start(key_gradients_kernel<T, D, false, true>, grid, block_threads, bytes, problem, stream);
  }
}
template <class T>
cudaError_t start_key_gradients_of(const Problem& problem, cudaStream_t stream) {
  const int size = problem.size > problem.value_size ? problem.size : problem.value_size;
  if (size <= 64) return start_key_gradients_of<T, 64>(problem, stream);
  return size <= 128 ? start_key_gradients_of<T, 128>(problem, stream)
                     : start_key_gradients_of<T, 256>(problem, stream);
}

}  // namespace capibara::cuda::attention
