// Launches forward attention on NVIDIA GPUs; if the keys are split, the partial results are combined.
#include "backends/cuda/attention/attention_forward.h"

#include <type_traits>

#include "backends/cuda/attention/attention_start.h"

namespace capibara::cuda::attention {

cudaError_t start_forward(const Problem& problem, Element element, cudaStream_t stream) {
  const bool short_of_rows = problem.packed || problem.splits > 1 || problem.queries <= block_rows;
  if (!short_of_rows && takes_groups(problem, element, (problem.keys + 63) / 64)) {
    const cudaError_t status = problem.mask ? start_mask_bits(problem, stream) : cudaSuccess;
    return status != cudaSuccess ? status : start_group_forward(problem, element, stream);
  }
  const int64_t heads = static_cast<int64_t>(problem.batch) * (problem.packed ? problem.groups : problem.heads);
  const int64_t rows = problem.packed ? problem.per_group() * problem.queries : problem.queries;
  const dim3 grid(static_cast<unsigned>((rows + block_rows - 1) / block_rows * heads), problem.splits);
  return by_size(problem, element, [&](auto type, auto size) {
    using T = decltype(type);
    constexpr int D = decltype(size)::value;
    const cudaError_t status = start(forward_kernel<T, D>, grid, block_threads, forward_bytes<T, D>, problem, stream);
    if (status != cudaSuccess || problem.splits == 1) return status;
    const int64_t all = static_cast<int64_t>(problem.batch) * problem.heads * problem.queries;
    return start(combine_kernel<T>, dim3(static_cast<unsigned>(all)), D, 0, problem, stream);
  });
}

}  // namespace capibara::cuda::attention
