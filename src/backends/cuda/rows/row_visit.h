// Visits the elements of a row of any length and alignment.
#pragma once

#include "backends/cuda/row_pieces.h"

namespace capibara::cuda {
namespace {

// Calls `visit(column, values)` for all elements of a row of any length and alignment: whole pieces where the row has
// them, single elements before and behind. Four pieces of a thread are on their way at once.
template <class T, class Visit>
__device__ void visit_row(const T* row, int columns, const Visit& visit) {
  constexpr int size = Piece<T>::size, ahead = 4;
  const int past = static_cast<int>(reinterpret_cast<uintptr_t>(row) / sizeof(T) % size);
  const int head = min((size - past) % size, columns), pieces = (columns - head) / size, tail = head + pieces * size;
  auto single = [&](int column) {
    float value[1] = {as_float(row[column])};
    visit(column, value);
  };
  for (int i = threadIdx.x; i < head; i += blockDim.x) single(i);
  const auto* from = reinterpret_cast<const Piece<T>*>(row + head);
  for (int first = threadIdx.x; first < pieces; first += ahead * blockDim.x) {
    Piece<T> loaded[ahead];
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const int at = first + i * blockDim.x;
      if (at < pieces) loaded[i] = from[at];
    }
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const int at = first + i * blockDim.x;
      if (at >= pieces) break;
      float values[size];
      widen<T, size>(loaded[i].values, values);
      visit(head + at * size, values);
    }
  }
  for (int i = tail + threadIdx.x; i < columns; i += blockDim.x) single(i);
}

// Values as visit_row hands them out, written to the same columns of a row that is aligned as that one.
template <class T, int count>
__device__ void write_values(T* row, int column, const float (&values)[count]) {
  if constexpr (count == 1)
    row[column] = from_float<T>(values[0]);
  else
    put_piece(row + column, values);
}

}  // namespace
}  // namespace capibara::cuda
