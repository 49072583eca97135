// The sum of a row's exponentials in one pass: the running maximum, and the sum relative to it.
#pragma once

#include "backends/cuda/block_sums.h"
#include "backends/cuda/row_pieces.h"

// Visits the elements of a row of any length and alignment.

namespace capibara::cuda {
namespace {

// Calls `visit(column, values)` for all elements of a row of any length and alignment: whole pieces where aligned,
// single elements before and after them. Four pieces per thread are in flight at once.
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

// Writes values in the form that visit_row passes them to the same columns of a row with the same alignment.
template <class T, int count>
__device__ void write_values(T* row, int column, const float (&values)[count]) {
  if constexpr (count == 1)
    row[column] = from_float<T>(values[0]);
  else
    put_piece(row + column, values);
}

// The sum of exp(value - greatest). For a row without a value above -infinity the block's total is NaN.
struct Powers {
  float greatest = -INFINITY, sum = 0;

  // The offset of exponents: finite even if all values are -infinity.
  __device__ float base() const { return greatest == -INFINITY ? 0.0f : greatest; }

  template <class T, int count>
  __device__ void add(const float (&values)[count]) {
    float top = values[0];
#pragma unroll
    for (int i = 1; i < count; ++i) top = fmaxf(top, values[i]);
    if (top > greatest) {
      sum *= power<T>(greatest - top);
      greatest = top;
    }
    const float from = base();
#pragma unroll
    for (int i = 0; i < count; ++i) sum += power<T>(values[i] - from);
  }

  template <class T>
  __device__ Powers joined(const Powers& other) const {
    const float top = fmaxf(greatest, other.greatest), from = top == -INFINITY ? 0.0f : top;
    return {top, sum * power<T>(greatest - from) + other.sum * power<T>(other.greatest - from)};
  }

  // Combines all threads of the block.
  template <class T>
  __device__ Powers of_block(Exchange<float2>& exchange, int iteration) const {
    Powers all = *this;
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
      all = all.joined<T>(
          {__shfl_xor_sync(0xffffffffu, all.greatest, step), __shfl_xor_sync(0xffffffffu, all.sum, step)});
    const int warps = (blockDim.x + 31) / 32;
    if (warps > 1) {
      float2* const own = exchange.values[iteration % 2];
      if (threadIdx.x % 32 == 0) own[threadIdx.x / 32] = {all.greatest, all.sum};
      __syncthreads();
      all = {own[0].x, own[0].y};
      for (int i = 1; i < warps; ++i) all = all.joined<T>({own[i].x, own[i].y});
    }
    if (all.greatest == -INFINITY) all.sum = NAN;
    return all;
  }
};

}  // namespace
}  // namespace capibara::cuda
