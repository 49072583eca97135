// Starts attention backwards by warpgroups, on Hopper: the slopes of queries, then those of keys and values.
#include <type_traits>

#include "backends/cuda/attention_group_keys.h"
#include "backends/cuda/attention_group_queries.h"
#include "backends/cuda/attention_start.h"

namespace capibara::cuda::attention {

namespace {

template <class T, int D, bool biased, bool split>
cudaError_t start_both(const Problem& problem, cudaStream_t stream) {
  auto blocks = [](int64_t rows, int64_t heads) {
    return dim3(static_cast<unsigned>((rows + rows_of<split> - 1) / rows_of<split> * heads));
  };
  const dim3 queries = blocks(problem.queries, static_cast<int64_t>(problem.batch) * problem.heads);
  const dim3 keys = blocks(problem.keys, static_cast<int64_t>(problem.batch) * problem.groups);
  constexpr int bytes = backward_group_bytes<T, D, biased, split>;
  const cudaError_t status =
      start_group<T>(group_queries_kernel<T, D, biased, split>, queries, all_threads, bytes, problem, stream);
  if (status != cudaSuccess) return status;
  return start_group<T>(group_keys_kernel<T, D, biased, split>, keys, all_threads, bytes, problem, stream);
}

}  // namespace

cudaError_t start_group_backward(const Problem& problem, Element element, cudaStream_t stream) {
  return by_group_size(problem, element, [&](auto type, auto size) {
    using T = decltype(type);
    constexpr int D = decltype(size)::value;
    if (problem.bias) return start_both<T, D, true, false>(problem, stream);
    return problem.blocks ? start_both<T, D, false, true>(problem, stream)
                          : start_both<T, D, false, false>(problem, stream);
  });
}

}  // namespace capibara::cuda::attention
