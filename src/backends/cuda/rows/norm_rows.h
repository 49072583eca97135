// Layer norm and RMS norm forward: memory-bound, each row is read once and stays in the registers of a block.
#pragma once

#include "backends/cuda/block_sums.h"
#include "backends/cuda/row_pieces.h"
#include "backends/cuda/rows/norm_split.h"

namespace capibara::cuda {
namespace {

template <class T>
struct NormRows {
  const T *x, *scale, *bias;
  T* y;
  float *means, *deviations;  // one mean per row if centered; 1 / deviation
  int64_t rows;
  int columns;
  float epsilon;
};

// y = (x - mean) / sqrt(variance + epsilon) * scale + bias; if not `centered`, mean and bias are 0.
template <class T, int pieces, bool centered>
__global__ void __launch_bounds__(max_norm_threads) normalize(NormRows<T> in) {
  __shared__ Exchange<float2> exchange;
  constexpr int size = Piece<T>::size;
  const int per_row = in.columns / size;
  int iteration = 0;
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
      mean = block_sums(sum, 0, exchange, iteration++).x / static_cast<float>(in.columns);
      squares = 0;
#pragma unroll
      for (int p = 0; p < pieces; ++p) {
        if (static_cast<int>(threadIdx.x + p * blockDim.x) < per_row) {
#pragma unroll
          for (int i = 0; i < size; ++i) squares += (values[p][i] - mean) * (values[p][i] - mean);
        }
      }
    }
    const float variance = block_sums(squares, 0, exchange, iteration++).x / static_cast<float>(in.columns);
    const float deviation = rsqrtf(variance + in.epsilon);
    if (threadIdx.x == 0) {
      if (centered) in.means[row] = mean;
      in.deviations[row] = deviation;
    }
    T* const to = in.y + row * in.columns;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int at = threadIdx.x + p * blockDim.x;
      if (at < per_row) {
        const Piece<T> factor = reinterpret_cast<const Piece<T>*>(in.scale)[at];
        Piece<T> offset;
        float result[size];
        if (centered) offset = reinterpret_cast<const Piece<T>*>(in.bias)[at];
#pragma unroll
        for (int i = 0; i < size; ++i) {
          const float scaled = (values[p][i] - mean) * deviation * as_float(factor.values[i]);
          result[i] = centered ? scaled + as_float(offset.values[i]) : scaled;
        }
        put_piece(to + at * size, result);
      }
    }
  }
}

// Forward, several loads in flight per thread matter more than many threads: blocks of 128 as long as they
// suffice.
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

}  // namespace
}  // namespace capibara::cuda
