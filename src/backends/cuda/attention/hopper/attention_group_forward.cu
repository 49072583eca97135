// Launches forward attention by warpgroups, on Hopper.
#include "backends/cuda/attention/hopper/attention_group_forward.h"

#include <type_traits>

#include "backends/cuda/attention/attention_start.h"

namespace capibara::cuda::attention {

cudaError_t start_group_forward(const Problem& problem, Element element, cudaStream_t stream) {
  // The tiles left by a pattern are few and scattered, and with a bias two tiles of keys do not fit.
  if (!problem.bias && !problem.blocks) return start_wide_forward(problem, element, stream);
  return by_group_size(problem, element, [&](auto type, auto size) {
    using T = decltype(type);
    constexpr int D = decltype(size)::value;
    auto start = [&](auto kind) {
      constexpr bool biased = decltype(kind)::value != Bias::none;
      constexpr int bytes = group_bytes<T, D, biased, 1, forward_stages<biased>>, rows = rows_of<!biased>;
      const int64_t blocks = (problem.queries + rows - 1) / rows * static_cast<int64_t>(problem.batch) * problem.heads;
      const dim3 grid(static_cast<unsigned>(blocks));
      return start_group<T>(group_forward_kernel<T, D, decltype(kind)::value>, grid, all_threads, bytes, problem,
                            stream);
    };
    if (!problem.bias) return start(std::integral_constant<Bias, Bias::none>());
    return is_bare(problem) ? start(std::integral_constant<Bias, Bias::bare>())
                            : start(std::integral_constant<Bias, Bias::any>());
  });
}

}  // namespace capibara::cuda::attention
