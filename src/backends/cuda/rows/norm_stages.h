// What norms backward read and write, and how a row gets into a stage of shared memory.
#pragma once

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

// A row in a stage of shared memory: x normalized is x * deviation + shift.
struct Row {
  int64_t number;
  int slot;
  float deviation, shift;
};

// Starts copies of x and dy, one behind the other; each thread copies what it will read itself.
template <class T, int pieces>
__device__ void copy_row(const NormGradients<T>& in, int64_t row, Piece<T>* to) {
  const int per_row = in.columns / Piece<T>::size;
  if (row < in.rows) {
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int at = threadIdx.x + p * blockDim.x;
      if (at >= per_row) continue;
      copy_piece(to + at, reinterpret_cast<const Piece<T>*>(in.x + row * in.columns) + at);
      copy_piece(to + per_row + at, reinterpret_cast<const Piece<T>*>(in.dy + row * in.columns) + at);
    }
  }
  commit_pieces();
}

}  // namespace
}  // namespace capibara::cuda
