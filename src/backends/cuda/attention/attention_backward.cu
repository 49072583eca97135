// Backward attention on NVIDIA GPUs: selects the kernels for the gradients, and launches the one for dQ.
#include "backends/cuda/attention/attention_backward.h"

#include <algorithm>
#include <type_traits>

#include "backends/cuda/attention/attention_bias_grid.h"
#include "backends/cuda/attention/attention_start.h"

namespace capibara::cuda::attention {

namespace {

cudaError_t start_query_gradients(const Problem& problem, Element element, cudaStream_t stream) {
  const int64_t heads = static_cast<int64_t>(problem.batch) * problem.heads;
  const dim3 grid(static_cast<unsigned>((problem.queries + block_rows - 1) / block_rows * heads));
  return by_size(problem, element, [&](auto type, auto size) {
    using T = decltype(type);
    constexpr int D = decltype(size)::value;
    return start(query_gradients_kernel<T, D>, grid, block_threads, backward_bytes<T, D>, problem, stream);
  });
}

}  // namespace

cudaError_t start_backward(const Problem& problem, Element element, cudaStream_t stream) {
  const int64_t key_tiles = (problem.keys + 63) / 64, query_tiles = (problem.queries + 63) / 64;
  if (takes_groups(problem, element, std::max(key_tiles, query_tiles * problem.per_group()))) {
    cudaError_t status = problem.mask ? start_mask_bits(problem, stream) : cudaSuccess;
    Problem by_gradients = problem;  // for a bias whose gradients are those of the logits
    if (has_own_bias(problem) && has_bias_boxes(problem) && !has_odd_rows(problem))
      by_gradients.gradients = problem.dbias;
    if (status == cudaSuccess) status = start_group_backward(by_gradients, element, stream);
    const bool ended = status != cudaSuccess || !problem.bias || by_gradients.gradients;
    return ended ? status : start_group_bias(problem, element, stream);
  }
  cudaError_t status = start_query_gradients(problem, element, stream);
  if (status == cudaSuccess) status = start_key_gradients(problem, element, stream);
  return status != cudaSuccess || !problem.bias ? status : start_bias_gradients(problem, element, stream);
}

}  // namespace capibara::cuda::attention
