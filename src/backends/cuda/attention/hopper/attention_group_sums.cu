// Launches the kernels that compute dQ and dBias from stored gradients of the logits, on Hopper.
#include "backends/cuda/attention/hopper/attention_group_sums.h"

#include <type_traits>

#include "backends/cuda/attention/attention_start.h"
#include "backends/cuda/attention/hopper/attention_bias_tiles.h"

// The gradients of a bias shared by all entries of a batch: sums of the stored gradients of their logits.

namespace capibara::cuda::attention {

// A thread block has a tile of 64 queries by 64 keys.
template <class T>
__global__ void __launch_bounds__(group_threads) bias_sums_kernel(const __grid_constant__ Problem p) {
  const int key = static_cast<int>(blockIdx.x) * 64, query = static_cast<int>(blockIdx.y) * 64;
  const int head = p.first_group * p.per_group() + static_cast<int>(blockIdx.z);
  const int row = query + static_cast<int>(threadIdx.x) / 8, column = key + static_cast<int>(threadIdx.x) % 8 * 8;
  float sums[4][8] = {};
  for (int batch = 0; batch < p.batch; ++batch) {
    if (seen_in(p, {query, query + 64, key, key + 64}, batch, head) == none) continue;
    // The first entry's are in place of the sums: this thread reads them before it overwrites them.
    const T* gradients = static_cast<const T*>(batch == 0 ? p.dbias : p.gradients);
    const int64_t first = static_cast<int64_t>(batch == 0 ? head : gradient_number(p, batch, head)) * p.queries;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (row + 16 * i >= p.queries || column >= p.keys) continue;
      const T* from = gradients + (first + row + 16 * i) * p.keys + column;
      const uint4 piece = __ldcs(reinterpret_cast<const uint4*>(from));
      const uint32_t words[4] = {piece.x, piece.y, piece.z, piece.w};
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const float2 pair = unpacked_pair<T>(words[k]);
        sums[i][2 * k] += pair.x, sums[i][2 * k + 1] += pair.y;
      }
    }
  }
  const BiasGradients<T> to(p, 0, head);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    uint32_t words[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) words[k] = packed_pair(sums[i][2 * k], sums[i][2 * k + 1], T());
    to.store_piece(p, row + 16 * i, column, uint4{words[0], words[1], words[2], words[3]});
  }
}

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
    if (status != cudaSuccess || problem.gradients == problem.dbias) return status;
    const dim3 grid((problem.keys + 63) / 64, (problem.queries + 63) / 64, heads);
    return start(bias_sums_kernel<T>, grid, group_threads, 0, problem, stream);
  });
}

}  // namespace capibara::cuda::attention
