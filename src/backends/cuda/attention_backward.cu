// Starts attention backwards on NVIDIA GPUs: the slopes of queries, of keys and values, and of the bias.
#include <algorithm>
#include <type_traits>

#include "backends/cuda/attention_bias.h"
#include "backends/cuda/attention_start.h"

namespace capibara::cuda::attention {

namespace {

template <class T, int D>
cudaError_t start_key_slopes(const Problem& problem, cudaStream_t stream) {
  const int64_t tiles = (problem.keys + block_rows - 1) / block_rows;
  const dim3 grid(static_cast<unsigned>(tiles * problem.batch * problem.groups));
  constexpr int bytes = backward_bytes<T, D>;
  if constexpr (D <= 128) {
    return start(key_slopes_kernel<T, D, true, true>, grid, block_threads, bytes, problem, stream);
  } else {
    const cudaError_t status = start(key_slopes_kernel<T, D, true, false>, grid, block_threads, bytes, problem, stream);
    if (status != cudaSuccess) return status;
    return start(key_slopes_kernel<T, D, false, true>, grid, block_threads, bytes, problem, stream);
  }
}

}  // namespace

cudaError_t start_backward(const Problem& problem, Element element, cudaStream_t stream) {
  const int64_t heads = static_cast<int64_t>(problem.batch) * problem.heads;
  const dim3 grid(static_cast<unsigned>((problem.queries + block_rows - 1) / block_rows * heads));
  const int64_t key_tiles = (problem.keys + 63) / 64, query_tiles = (problem.queries + 63) / 64;
  const bool by_groups = takes_groups(problem, element, std::max(key_tiles, query_tiles * problem.per_group()));
  return by_size(problem, element, [&](auto type, auto size) {
    using T = decltype(type);
    constexpr int D = decltype(size)::value;
    cudaError_t status =
        by_groups ? start_group_backward(problem, element, stream)
                  : start(query_slopes_kernel<T, D>, grid, block_threads, backward_bytes<T, D>, problem, stream);
    if (status == cudaSuccess && !by_groups) status = start_key_slopes<T, D>(problem, stream);
    if (status != cudaSuccess || !problem.bias) return status;
    return start(bias_slopes_kernel<T, D>, dim3(static_cast<unsigned>(BiasGrid<T, D>(problem).blocks())), block_threads,
                 BiasGrid<T, D>::bytes, problem, stream);
  });
}

}  // namespace capibara::cuda::attention
