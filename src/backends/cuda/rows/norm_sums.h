// The gradients of norms from row sums: starts the kernel of rows, then adds its blocks in a fixed order, so that
// results are equal from run to run.
#pragma once

#include "backends/cuda/rows/norm_gradient.h"
#include "backends/cuda/rows/norm_gradient_hopper.h"

namespace capibara::cuda {
namespace {

// Adds the blocks' sums: 32 columns for a block, one column in each lane, the rows of `partial` shared by its warps.
// Its second dimension of blocks tells scale from bias.
template <class T>
__global__ void __launch_bounds__(1024) add_blocks(const float* partial, T* dscale, T* dbias, int blocks, int columns) {
  __shared__ float sums[32][33];
  const int lane = threadIdx.x, group = threadIdx.y, column = blockIdx.x * 32 + lane;
  partial += static_cast<int64_t>(blockIdx.y) * blocks * columns;
  float sum = 0;
  if (column < columns) {
#pragma unroll 4
    for (int block = group; block < blocks; block += 32) sum += partial[static_cast<int64_t>(block) * columns + column];
  }
  sums[group][lane] = sum;
  __syncthreads();
  if (group != 0 || column >= columns) return;
  float total = 0;
  for (int i = 0; i < 32; ++i) total += sums[i][lane];
  (blockIdx.y == 0 ? dscale : dbias)[column] = from_float<T>(total);
}

// The kernel of rows.
template <class T, bool centered>
cudaError_t start_rows(const NormGradients<T>& in, int blocks, cudaStream_t stream) {
  const int row_pieces = in.columns / Piece<T>::size;
  const BackwardSplit split = backward_split_of(row_pieces);
  auto launch = [&](auto kernel, int bytes, auto... rest) {
    const cudaError_t room = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (room == cudaSuccess) kernel<<<blocks, split.threads, bytes, stream>>>(in, rest...);
    return room;
  };
  if (hopper_size() > 0) {
    const int stage = 2 * row_pieces * 16, stages = bulk_stages(stage, split.blocks);
    auto start = [&](auto kernel) { return launch(kernel, stages * stage, stages); };
    return split.pieces == 1   ? start(pull_back_bulk<T, 1, centered>)
           : split.pieces == 2 ? start(pull_back_bulk<T, 2, centered>)
                               : start(pull_back_bulk<T, 4, centered>);
  }
  const int bytes = split.stages * 2 * row_pieces * 16;
  return split.pieces == 1   ? launch(pull_back<T, 1, 4, centered>, bytes)
         : split.pieces == 2 ? launch(pull_back<T, 2, 4, centered>, bytes)
                             : launch(pull_back<T, 4, 3, centered>, bytes);
}

template <class T, bool centered>
cudaError_t start_pull_back(const NormGradients<T>& in, T* dscale, T* dbias, int blocks, cudaStream_t stream) {
  const cudaError_t status = start_rows<T, centered>(in, blocks, stream);
  if (status != cudaSuccess) return status;
  const dim3 grid((in.columns + 31) / 32, centered ? 2 : 1);
  add_blocks<T><<<grid, dim3(32, 32), 0, stream>>>(in.partial, dscale, dbias, blocks, in.columns);
  return cudaSuccess;
}

}  // namespace
}  // namespace capibara::cuda
