// Launches forward attention by warpgroups, 128 keys at a time, on Hopper, and the kernel that packs mask bits.
#include "backends/cuda/attention/hopper/attention_wide_forward.h"

#include <type_traits>

#include "backends/cuda/attention/attention_start.h"

namespace capibara::cuda::attention {

cudaError_t start_wide_forward(const Problem& problem, Element element, cudaStream_t stream) {
  const int64_t tiles = (problem.queries + group_rows - 1) / group_rows;
  const dim3 grid(static_cast<unsigned>(tiles * problem.batch * problem.heads));
  return by_group_size(problem, element, [&](auto type, auto size) {
    using T = decltype(type);
    constexpr int D = decltype(size)::value;
    return start_group<T>(wide_forward_kernel<T, D>, grid, all_threads, wide_bytes<T, D>, problem, stream);
  });
}

cudaError_t start_mask_bits(const Problem& problem, cudaStream_t stream) {
  constexpr int threads = 256;
  const int64_t pieces = problem.mask_rows * 4 * mask_words(problem);
  mask_bits_kernel<<<static_cast<unsigned>((pieces + threads - 1) / threads), threads, 0, stream>>>(problem);
  return cudaGetLastError();
}

}  // namespace capibara::cuda::attention
