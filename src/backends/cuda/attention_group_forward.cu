// Starts attention forwards by warpgroups, on Hopper.
#include "backends/cuda/attention_group_forward.h"

#include <type_traits>

#include "backends/cuda/attention_start.h"

namespace capibara::cuda::attention {

cudaError_t start_group_forward(const Problem& problem, Element element, cudaStream_t stream) {
  // Tiles that a pattern leaves are few and apart, and beside a bias two tiles of keys have no room.
  if (!problem.bias && !problem.blocks) return start_wide_forward(problem, element, stream);
  return by_group_size_and_bias(problem, element, [&](auto type, auto size, auto bias) {
    using T = decltype(type);
    constexpr int D = decltype(size)::value;
    constexpr bool biased = decltype(bias)::value;
    constexpr int bytes = group_bytes<T, D, biased, 1, forward_stages<biased>>, rows = rows_of<!biased>;
    const int64_t blocks = (problem.queries + rows - 1) / rows * static_cast<int64_t>(problem.batch) * problem.heads;
    const dim3 grid(static_cast<unsigned>(blocks));
    return start_group<T>(group_forward_kernel<T, D, biased>, grid, all_threads, bytes, problem, stream);
  });
}

}  // namespace capibara::cuda::attention
