// Starts attention forwards by warpgroups, on Hopper.
#include "backends/cuda/attention_group_forward.h"

#include <type_traits>

#include "backends/cuda/attention_start.h"

namespace capibara::cuda::attention {

cudaError_t start_group_forward(const Problem& problem, Element element, cudaStream_t stream) {
  const int64_t tiles = (problem.queries + group_rows - 1) / group_rows;
  const dim3 grid(static_cast<unsigned>(tiles * problem.batch * problem.heads));
  return by_group_size(problem, element, [&](auto type, auto size) {
    using T = decltype(type);
    constexpr int D = decltype(size)::value;
    return start(group_forward_kernel<T, D>, grid, all_threads, group_bytes<T, D, 1, forward_stages>, problem, stream);
  });
}

}  // namespace capibara::cuda::attention
