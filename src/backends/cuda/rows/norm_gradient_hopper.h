// Layer norm and RMS norm backward on Hopper: rows by bulk copies, several of which are on their way.
//
// A block owns one row at a time, a thread the same 16-byte pieces of every row. One barrier tells the block its sums
// and that the row has left shared memory, so that another may be copied there. Gradients of scale and bias are summed
// in registers and written once for each block; norm_sums.h adds the blocks.
#pragma once

#include "backends/cuda/block_sums.h"
#include "backends/cuda/bulk_copies.h"
#include "backends/cuda/rows/norm_split.h"
#include "backends/cuda/rows/norm_stages.h"

namespace capibara::cuda {
namespace {

// Rows on their way to a block, of which the blocks of a multiprocessor share 200 KiB.
constexpr int max_bulk_stages = 3;
constexpr int bulk_stages(int stage_bytes, int blocks) {
  const int room = 200 * 1024 / blocks / stage_bytes;
  return room < 1 ? 1 : room < max_bulk_stages ? room : max_bulk_stages;
}

// dx for every row, and for each block the sums of dy * normalized x and of dy over its rows.
template <class T, int pieces, bool centered>
__global__ void __launch_bounds__(max_norm_threads) pull_back_bulk(NormGradients<T> in, int stages) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ uint64_t full[max_bulk_stages];
  __shared__ Exchange<float2> exchange;
  constexpr int size = Piece<T>::size;
  constexpr bool held = pieces * size < 32;  // a row in registers; else it is read from shared memory twice
  const int per_row = in.columns / size;
  const int64_t step = gridDim.x;
  const uint32_t row_bytes = in.columns * sizeof(T);
  // Starts copies of x and dy, one behind the other.
  auto bring = [&](int64_t row, int slot) {
    if (row >= in.rows) return;
    unsigned char* const to = memory + slot * 2 * row_bytes;
    expect_bytes(full + slot, 2 * row_bytes);
    start_bulk(to, in.x + row * in.columns, row_bytes, full + slot);
    start_bulk(to + row_bytes, in.dy + row * in.columns, row_bytes, full + slot);
  };
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < stages; ++slot) set_barrier(full + slot, 1);
    publish_barriers();
    for (int slot = 0; slot < stages; ++slot) bring(blockIdx.x + slot * step, slot);
  }
  __syncthreads();
  Piece<T> factor[pieces];
  float scale_sums[pieces][size], bias_sums[centered ? pieces : 1][size];
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    const int at = threadIdx.x + p * blockDim.x;
    if (at < per_row) factor[p] = reinterpret_cast<const Piece<T>*>(in.scale)[at];
#pragma unroll
    for (int i = 0; i < size; ++i) scale_sums[p][i] = bias_sums[centered ? p : 0][i] = 0;
  }
  const float inverse = 1.0f / static_cast<float>(in.columns);
  float deviation = blockIdx.x < in.rows ? in.deviations[blockIdx.x] : 0.0f;
  float mean = centered && blockIdx.x < in.rows ? in.means[blockIdx.x] : 0.0f;
  int slot = 0, iteration = 0;
  uint32_t phase = 0;
  for (int64_t row = blockIdx.x; row < in.rows; row += step, ++iteration) {
    const bool more = row + step < in.rows;
    const float next_deviation = more ? in.deviations[row + step] : 0.0f;
    const float next_mean = centered && more ? in.means[row + step] : 0.0f;
    await(full + slot, phase);
    const auto* const staged = reinterpret_cast<const Piece<T>*>(memory + slot * 2 * row_bytes);
    const float shift = -mean * deviation;  // x normalized is x * deviation + shift
    Piece<T> x[held ? pieces : 1], dy[held ? pieces : 1];
    float sum = 0, product = 0;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int at = threadIdx.x + p * blockDim.x;
      if (at >= per_row) continue;
      x[held ? p : 0] = staged[at];
      dy[held ? p : 0] = staged[per_row + at];
#pragma unroll
      for (int i = 0; i < size; ++i) {
        const float slope = as_float(dy[held ? p : 0].values[i]), weight = slope * as_float(factor[p].values[i]);
        const float normal = as_float(x[held ? p : 0].values[i]) * deviation + shift;
        scale_sums[p][i] += slope * normal;
        if (centered) {
          bias_sums[p][i] += slope;
          sum += weight;
        }
        product += weight * normal;
      }
    }
    const float2 totals = block_sums(sum, product, exchange, iteration);
    if (held && threadIdx.x == 0) bring(row + stages * step, slot);
    const float share = -deviation * inverse, by_normal = totals.y * share;
    const float everywhere = centered ? totals.x * share : 0.0f;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int at = threadIdx.x + p * blockDim.x;
      if (at >= per_row) continue;
      if (!held) x[0] = staged[at], dy[0] = staged[per_row + at];
      float result[size];
#pragma unroll
      for (int i = 0; i < size; ++i) {
        const float weight = as_float(dy[held ? p : 0].values[i]) * as_float(factor[p].values[i]);
        const float normal = as_float(x[held ? p : 0].values[i]) * deviation + shift;
        result[i] = weight * deviation + (normal * by_normal + everywhere);
      }
      put_piece(in.dx + row * in.columns + at * size, result);
    }
    if (!held) {
      __syncthreads();
      if (threadIdx.x == 0) bring(row + stages * step, slot);
    }
    deviation = next_deviation;
    mean = next_mean;
    if (++slot == stages) slot = 0, phase ^= 1;
  }
  const int64_t columns = in.columns;
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    const int at = threadIdx.x + p * blockDim.x;
    if (at >= per_row) continue;
    float* const own = in.partial + blockIdx.x * columns + static_cast<int64_t>(at) * size;
#pragma unroll
    for (int i = 0; i < size; i += 4) {
      *reinterpret_cast<float4*>(own + i) = {scale_sums[p][i], scale_sums[p][i + 1], scale_sums[p][i + 2],
                                             scale_sums[p][i + 3]};
      if (centered)
        *reinterpret_cast<float4*>(own + gridDim.x * columns + i) = {bias_sums[p][i], bias_sums[p][i + 1],
                                                                     bias_sums[p][i + 2], bias_sums[p][i + 3]};
    }
  }
#endif
}

}  // namespace
}  // namespace capibara::cuda
