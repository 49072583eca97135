// The sum of a row's exponentials in one pass: the greatest value so far, and the sum relative to it.
#pragma once

#include "backends/cuda/block_sums.h"
#include "backends/cuda/rows/row_visit.h"

namespace capibara::cuda {
namespace {

// The sum of exp(value - greatest). A row without a value above -infinity has a sum of NaN once a block has joined it.
struct Powers {
  float greatest = -INFINITY, sum = 0;

  // What exponents are relative to: a number, where values are -infinity.
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

  // Of all threads of the block.
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
