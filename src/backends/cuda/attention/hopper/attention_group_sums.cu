// Starts what is made of stored slopes of logits, on Hopper: the slopes of queries and of a bias.
#include "backends/cuda/attention/hopper/attention_group_sums.h"

#include <type_traits>

#include "backends/cuda/attention/hopper/attention_bias_sums.h"
#include "backends/cuda/attention/attention_start.h"

namespace capibara::cuda::attention {

cudaError_t start_group_sums(const Problem& problem, Element element, cudaStream_t stream) {
  const int heads = problem.part_groups * problem.per_group();
  const int64_t tiles = (problem.queries + group_rows - 1) / group_rows;
  return by_group_size(problem, element, [&](auto type, auto size) {
    using T = decltype(type);
    constexpr int D = decltype(size)::value;
    auto blocks = [&](int entries) { return dim3(static_cast<unsigned>(tiles * heads * entries)); };
    if (adds_two_entries(problem)) {
      constexpr int bytes = group_sums_bytes<T, D, 2>;
      return start_group<T>(group_sums_kernel<T, D, 2>, blocks(1), all_threads, bytes, problem, stream);
    }
    constexpr int bytes = group_sums_bytes<T, D, 1>;
    const cudaError_t status =
        start_group<T>(group_sums_kernel<T, D, 1>, blocks(problem.batch), all_threads, bytes, problem, stream);
    if (status != cudaSuccess || problem.slopes == problem.dbias) return status;
    const dim3 grid((problem.keys + 63) / 64, (problem.queries + 63) / 64, heads);
    return start(bias_sums_kernel<T>, grid, group_threads, 0, problem, stream);
  });
}

}  // namespace capibara::cuda::attention
