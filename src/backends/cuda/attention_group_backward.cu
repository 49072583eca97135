// Starts attention backwards by warpgroups, on Hopper: the slopes of queries, then those of keys and values.
#include <type_traits>

#include "backends/cuda/attention_group_keys.h"
#include "backends/cuda/attention_group_queries.h"
#include "backends/cuda/attention_start.h"

namespace capibara::cuda::attention {

cudaError_t start_group_backward(const Problem& problem, Element element, cudaStream_t stream) {
  auto blocks = [](int64_t rows, int64_t heads) {
    return dim3(static_cast<unsigned>((rows + group_rows - 1) / group_rows * heads));
  };
  const dim3 queries = blocks(problem.queries, static_cast<int64_t>(problem.batch) * problem.heads);
  const dim3 keys = blocks(problem.keys, static_cast<int64_t>(problem.batch) * problem.groups);
  return by_group_size_and_bias(problem, element, [&](auto type, auto size, auto bias) {
    using T = decltype(type);
    constexpr int D = decltype(size)::value;
    constexpr bool biased = decltype(bias)::value;
    constexpr int bytes = group_bytes<T, D, biased, 2, backward_stages>;
    const cudaError_t status = start(group_queries_kernel<T, D, biased>, queries, all_threads, bytes, problem, stream);
    if (status != cudaSuccess) return status;
    return start(group_keys_kernel<T, D, biased>, keys, all_threads, bytes, problem, stream);
  });
}

}  // namespace capibara::cuda::attention
