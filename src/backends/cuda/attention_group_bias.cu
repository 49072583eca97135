// Starts the slopes of a broadcast bias by warpgroups, on Hopper.
#include "backends/cuda/attention_group_bias.h"

#include <type_traits>

#include "backends/cuda/attention_start.h"

namespace capibara::cuda::attention {

cudaError_t start_group_bias(const Problem& problem, Element element, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(BiasGrid(problem, group_rows, bias_columns).blocks()));
  return by_group_size(problem, element, [&](auto type, auto size) {
    using T = decltype(type);
    constexpr int D = decltype(size)::value;
    return start_group<T>(group_bias_kernel<T, D>, grid, all_threads, group_bias_bytes<T, D>, problem, stream);
  });
}

}  // namespace capibara::cuda::attention
