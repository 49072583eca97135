// The kernels of layer norm and RMS norm: each row is read once, forward into registers, backward into shared memory.
//
// Both are bound by memory. A block owns one row at a time; a thread owns the same 16-byte pieces of every row.
// Backward, the rows that follow are on their way while one is worked on, each thread copying what it will read itself;
// gradients of scale and bias are summed in registers and written once for each block. A second kernel adds the blocks
// in a fixed order: results are equal from run to run.
#pragma once

#include "backends/cuda/norm_split.h"
#include "backends/cuda/row_pieces.h"

namespace capibara::cuda {
namespace {

template <class T>
struct NormRows {
  const T *x, *scale, *bias;
  T* y;
  float *means, *deviations;  // a mean for each row where rows are centered; 1 / deviation
  int64_t rows;
  int columns;
  float epsilon;
};

// y = (x - mean) / sqrt(variance + epsilon) * scale + bias; where not `centered`, mean and bias are 0.
template <class T, int pieces, bool centered>
__global__ void __launch_bounds__(max_norm_threads) normalize(NormRows<T> in) {
  __shared__ Exchange<float2> exchange;
  constexpr int size = Piece<T>::size;
  const int per_row = in.columns / size;
  int turn = 0;
  for (int64_t row = blockIdx.x; row < in.rows; row += gridDim.x) {
    const auto* from = reinterpret_cast<const Piece<T>*>(in.x + row * in.columns);
    float values[pieces][size];
    float sum = 0, squares = 0;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int at = threadIdx.x + p * blockDim.x;
      if (at < per_row) {
        const Piece<T> piece = from[at];
        widen<T, size>(piece.values, values[p]);
#pragma unroll
        for (int i = 0; i < size; ++i) {
          sum += values[p][i];
          squares += values[p][i] * values[p][i];
        }
      }
    }
    float mean = 0;
    if (centered) {
      mean = block_sums(sum, 0, exchange, turn++).x / static_cast<float>(in.columns);
      squares = 0;
#pragma unroll
      for (int p = 0; p < pieces; ++p) {
        if (static_cast<int>(threadIdx.x + p * blockDim.x) < per_row) {
#pragma unroll
          for (int i = 0; i < size; ++i) squares += (values[p][i] - mean) * (values[p][i] - mean);
        }
      }
    }
    const float variance = block_sums(squares, 0, exchange, turn++).x / static_cast<float>(in.columns);
    const float deviation = rsqrtf(variance + in.epsilon);
    if (threadIdx.x == 0) {
      if (centered) in.means[row] = mean;
      in.deviations[row] = deviation;
    }
    auto* to = reinterpret_cast<Piece<T>*>(in.y + row * in.columns);
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int at = threadIdx.x + p * blockDim.x;
      if (at < per_row) {
        const Piece<T> factor = reinterpret_cast<const Piece<T>*>(in.scale)[at];
        Piece<T> offset, result;
        if (centered) offset = reinterpret_cast<const Piece<T>*>(in.bias)[at];
#pragma unroll
        for (int i = 0; i < size; ++i) {
          const float scaled = (values[p][i] - mean) * deviation * as_float(factor.values[i]);
          result.values[i] = from_float<T>(centered ? scaled + as_float(offset.values[i]) : scaled);
        }
        to[at] = result;
      }
    }
  }
}

template <class T>
struct NormGradients {
  const T *dy, *x, *scale;
  const float *means, *deviations;
  T* dx;
  float* partial;  // [centered ? 2 : 1][blocks][columns]
  int64_t rows;
  int columns;
};

// dx for every row, and for each block the sums of dy * normalized x and of dy over its rows.
template <class T, int pieces, int stages, bool centered>
__global__ void __launch_bounds__(max_norm_threads) pull_back(NormGradients<T> in) {
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ Exchange<float2> exchange;
  constexpr int size = Piece<T>::size;
  const int per_row = in.columns / size;
  auto* const staged = reinterpret_cast<Piece<T>*>(memory);  // [stages][x, dy][per_row]
  Piece<T> factor[pieces];
  float scale_sums[pieces][size], bias_sums[centered ? pieces : 1][size];
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    const int at = threadIdx.x + p * blockDim.x;
    if (at < per_row) factor[p] = reinterpret_cast<const Piece<T>*>(in.scale)[at];
#pragma unroll
    for (int i = 0; i < size; ++i) scale_sums[p][i] = bias_sums[centered ? p : 0][i] = 0;
  }
  auto copy = [&](int64_t row, int slot) {
    if (row < in.rows) {
#pragma unroll
      for (int p = 0; p < pieces; ++p) {
        const int at = threadIdx.x + p * blockDim.x;
        if (at < per_row) {
          copy_piece(staged + (2 * slot) * per_row + at,
                     reinterpret_cast<const Piece<T>*>(in.x + row * in.columns) + at);
          copy_piece(staged + (2 * slot + 1) * per_row + at,
                     reinterpret_cast<const Piece<T>*>(in.dy + row * in.columns) + at);
        }
      }
    }
    commit_pieces();
  };
  const int64_t step = gridDim.x;
#pragma unroll
  for (int s = 0; s + 1 < stages; ++s) copy(blockIdx.x + s * step, s);
  float next_mean = centered ? in.means[blockIdx.x] : 0, next_deviation = in.deviations[blockIdx.x];
  int slot = 0, turn = 0;
  for (int64_t row = blockIdx.x; row < in.rows; row += step) {
    copy(row + (stages - 1) * step, slot == 0 ? stages - 1 : slot - 1);
    const float mean = next_mean, deviation = next_deviation;
    if (row + step < in.rows) {
      if (centered) next_mean = in.means[row + step];
      next_deviation = in.deviations[row + step];
    }
    wait_pieces<stages - 1>();
    const Piece<T>* const own_x = staged + (2 * slot) * per_row;
    const Piece<T>* const own_dy = own_x + per_row;
    float sum = 0, product = 0;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int at = threadIdx.x + p * blockDim.x;
      if (at < per_row) {
        const Piece<T> x = own_x[at], dy = own_dy[at];
#pragma unroll
        for (int i = 0; i < size; ++i) {
          const float slope = as_float(dy.values[i]), normal = (as_float(x.values[i]) - mean) * deviation;
          const float weighted = slope * as_float(factor[p].values[i]);
          scale_sums[p][i] += slope * normal;
          if (centered) {
            bias_sums[p][i] += slope;
            sum += weighted;
          }
          product += weighted * normal;
        }
      }
    }
    const float2 sums = block_sums(sum, product, exchange, turn++);
    const float mean_sum = sums.x / static_cast<float>(in.columns);
    const float mean_product = sums.y / static_cast<float>(in.columns);
    auto* const to = reinterpret_cast<Piece<T>*>(in.dx + row * in.columns);
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int at = threadIdx.x + p * blockDim.x;
      if (at < per_row) {
        const Piece<T> x = own_x[at], dy = own_dy[at];
        Piece<T> result;
#pragma unroll
        for (int i = 0; i < size; ++i) {
          const float normal = (as_float(x.values[i]) - mean) * deviation;
          const float weighted = as_float(dy.values[i]) * as_float(factor[p].values[i]);
          const float change = weighted - normal * mean_product;
          result.values[i] = from_float<T>(deviation * (centered ? change - mean_sum : change));
        }
        to[at] = result;
      }
    }
    slot = slot + 1 == stages ? 0 : slot + 1;
  }
  const int64_t columns = in.columns;
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    const int at = threadIdx.x + p * blockDim.x;
    if (at < per_row) {
      float* const own = in.partial + blockIdx.x * columns + static_cast<int64_t>(at) * size;
#pragma unroll
      for (int i = 0; i < size; ++i) {
        own[i] = scale_sums[p][i];
        if (centered) own[gridDim.x * columns + i] = bias_sums[p][i];
      }
    }
  }
}

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

// ---- starts -------------------------------------------------------------------------------------------------------

// Forward, several loads in flight for each thread count for more than many threads: blocks of 128 as long as they
// reach.
template <class T, bool centered>
void start_normalize(const NormRows<T>& in, cudaStream_t stream) {
  const int row_pieces = in.columns / Piece<T>::size;
  auto launch = [&](auto kernel, int pieces) {
    kernel<<<grid_of(in.rows), whole_warps((row_pieces + pieces - 1) / pieces, max_norm_threads), 0, stream>>>(in);
  };
  if (row_pieces <= 128)
    launch(normalize<T, 1, centered>, 1);
  else if (row_pieces <= 256)
    launch(normalize<T, 2, centered>, 2);
  else
    launch(normalize<T, 4, centered>, 4);
}

template <class T, bool centered>
cudaError_t start_pull_back(const NormGradients<T>& in, T* dscale, T* dbias, int blocks, cudaStream_t stream) {
  const int row_pieces = in.columns / Piece<T>::size;
  const BackwardSplit split = backward_split_of(row_pieces);
  const int bytes = split.stages * 2 * row_pieces * 16;
  auto launch = [&](auto kernel) {
    const cudaError_t room = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (room == cudaSuccess) kernel<<<blocks, split.threads, bytes, stream>>>(in);
    return room;
  };
  const cudaError_t status = split.pieces == 1   ? launch(pull_back<T, 1, 4, centered>)
                             : split.pieces == 2 ? launch(pull_back<T, 2, 3, centered>)
                                                 : launch(pull_back<T, 4, 2, centered>);
  if (status != cudaSuccess) return status;
  const dim3 grid((in.columns + 31) / 32, centered ? 2 : 1);
  add_blocks<T><<<grid, dim3(32, 32), 0, stream>>>(in.partial, dscale, dbias, blocks, in.columns);
  return cudaSuccess;
}

}  // namespace
}  // namespace capibara::cuda
