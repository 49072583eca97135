// Launches the warpgroup kernel for the gradients of a broadcast bias, on Hopper.
#include "backends/cuda/attention/hopper/attention_group_bias.h"

#include <algorithm>
#include <type_traits>

#include "backends/cuda/attention/attention_start.h"

namespace capibara::cuda::attention {

cudaError_t start_group_bias(const Problem& problem, Element element, cudaStream_t stream) {
  const int blocks = BiasGrid(problem, group_rows, bias_columns).blocks();
  constexpr int enough = 512, longest = 16;  // thread blocks, and tiles per block
  const int run = has_bias_boxes(problem) ? std::clamp(blocks / enough, 1, longest) : 1;
  const dim3 grid(static_cast<unsigned>((blocks + run - 1) / run));
  return by_group_size(problem, element, [&](auto type, auto size) {
    using T = decltype(type);
    constexpr int D = decltype(size)::value;
    return start_group<T>(group_bias_kernel<T, D>, grid, all_threads, group_bias_bytes<T, D>, problem, stream);
  });
}

}  // namespace capibara::cuda::attention
