// Starts attention backwards by warpgroups, on Hopper: the slopes of queries, then those of keys and values, or first
// these and with them the slopes of logits, of which others make the rest.
#include <type_traits>

#include "backends/cuda/attention/hopper/attention_group_keys.h"
#include "backends/cuda/attention/hopper/attention_group_queries.h"
#include "backends/cuda/attention/attention_start.h"

namespace capibara::cuda::attention {

namespace {

template <bool split>
dim3 backward_blocks(int64_t rows, int64_t heads) {
  return dim3(static_cast<unsigned>((rows + rows_of<split> - 1) / rows_of<split> * heads));
}

template <class T, int D>
cudaError_t start_by_slopes(Problem problem, Element element, cudaStream_t stream) {
  constexpr int bytes = backward_group_bytes<T, D, true, false>;
  const dim3 blocks = backward_blocks<false>(problem.keys, static_cast<int64_t>(problem.batch) * problem.part_groups);
  cudaError_t status = cudaSuccess;
  for (int group = 0; status == cudaSuccess && group < problem.groups; group += problem.part_groups) {
    problem.first_group = group;
    const auto kernel =
        is_bare(problem) ? group_keys_kernel<T, D, Bias::bare, false> : group_keys_kernel<T, D, Bias::any, false>;
    status = start_group<T>(kernel, blocks, all_threads, bytes, problem, stream);
    if (status == cudaSuccess) status = start_group_sums(problem, element, stream);
  }
  return status;
}

template <class T, int D, bool biased, bool split>
cudaError_t start_both(const Problem& problem, cudaStream_t stream) {
  const int64_t batch = problem.batch;
  const dim3 queries = backward_blocks<split>(problem.queries, batch * problem.heads);
  const dim3 keys = backward_blocks<split>(problem.keys, batch * problem.groups);
  constexpr int bytes = backward_group_bytes<T, D, biased, split>;
  const cudaError_t status =
      start_group<T>(group_queries_kernel<T, D, biased, split>, queries, all_threads, bytes, problem, stream);
  if (status != cudaSuccess) return status;
  constexpr Bias kind = biased ? Bias::any : Bias::none;
  return start_group<T>(group_keys_kernel<T, D, kind, split>, keys, all_threads, bytes, problem, stream);
}

}  // namespace

cudaError_t start_group_backward(const Problem& problem, Element element, cudaStream_t stream) {
  return by_group_size(problem, element, [&](auto type, auto size) {
    using T = decltype(type);
    constexpr int D = decltype(size)::value;
    if (problem.slopes) return start_by_slopes<T, D>(problem, element, stream);
    if (problem.bias) return start_both<T, D, true, false>(problem, stream);
    return problem.blocks ? start_both<T, D, false, true>(problem, stream)
                          : start_both<T, D, false, false>(problem, stream);
  });
}

}  // namespace capibara::cuda::attention
