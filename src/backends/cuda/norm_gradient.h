// Layer norm and RMS norm backward, row by row: bound by memory, each row is read once into shared memory.
//
// A block owns one row at a time, a thread the same 16-byte pieces of every row. The rows that follow are on their way
// while one is worked on, each thread copying what it will read itself. Gradients of scale and bias are summed in
// registers and written once for each block; norm_sums.h adds the blocks.
#pragma once

#include "backends/cuda/block_sums.h"
#include "backends/cuda/norm_split.h"
#include "backends/cuda/row_pieces.h"

namespace capibara::cuda {
namespace {

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
  // What a row adds to the sums of columns, and its own two sums, which the block will know after its next barrier.
  auto add_row = [&](int slot, float mean, float deviation, int turn) {
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
    tell_sums(sum, product, exchange, turn);
  };
  auto write_row = [&](int64_t row, int slot, float mean, float deviation, float mean_sum, float mean_product) {
    const Piece<T>* const own_x = staged + (2 * slot) * per_row;
    const Piece<T>* const own_dy = own_x + per_row;
    T* const to = in.dx + row * in.columns;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int at = threadIdx.x + p * blockDim.x;
      if (at < per_row) {
        const Piece<T> x = own_x[at], dy = own_dy[at];
        float result[size];
#pragma unroll
        for (int i = 0; i < size; ++i) {
          const float normal = (as_float(x.values[i]) - mean) * deviation;
          const float weighted = as_float(dy.values[i]) * as_float(factor[p].values[i]);
          const float change = weighted - normal * mean_product;
          result[i] = deviation * (centered ? change - mean_sum : change);
        }
        put_piece(to + at * size, result);
      }
    }
  };
  // The sums of a row are on their way through the block while the row before it is written.
  float mean = centered ? in.means[blockIdx.x] : 0, deviation = in.deviations[blockIdx.x];
  wait_pieces<stages - 2>();
  add_row(0, mean, deviation, 0);
  const float share = 1.0f / static_cast<float>(in.columns);
  int slot = 0, turn = 0;
  for (int64_t row = blockIdx.x; row < in.rows; row += step, ++turn) {
    const int64_t next = row + step;
    float next_mean = 0, next_deviation = 0;
    if (next < in.rows) {
      if (centered) next_mean = in.means[next];
      next_deviation = in.deviations[next];
    }
    copy(row + (stages - 1) * step, slot == 0 ? stages - 1 : slot - 1);
    const float2 sums = told_sums(exchange, turn);
    const int next_slot = slot + 1 == stages ? 0 : slot + 1;
    wait_pieces<stages - 2>();
    if (next < in.rows) add_row(next_slot, next_mean, next_deviation, turn + 1);
    write_row(row, slot, mean, deviation, sums.x * share, sums.y * share);
    mean = next_mean;
    deviation = next_deviation;
    slot = next_slot;
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

}  // namespace
}  // namespace capibara::cuda
