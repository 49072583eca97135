// Matmuls of attention's tiles on tensor cores: a warp owns 16 rows of the result.
//
// float32 is split into two parts of 11 bits: three products per term, with a relative error of 2^-21.
#pragma once

#include "backends/cuda/attention/attention_tiles.h"
#include "backends/cuda/tiles.h"

namespace capibara::cuda::attention {

// A left or right operand in the form that tensor cores take: float32 in two parts.
template <class T>
struct Operand {
  uint32_t words[4];
  __device__ void prepare() {}
};
template <>
struct Operand<float> {
  uint32_t words[4], low[4];
  __device__ void prepare() {
    const uint32_t given[4] = {words[0], words[1], words[2], words[3]};
    split(given, words, low);
  }
};

inline __device__ void multiply_halves(float (&sum)[4], const uint32_t (&a)[4], const uint32_t* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Selects one of two right operands: words 0 and 1, or 2 and 3.
inline __device__ void multiply_add(float (&sum)[4], const Operand<__nv_bfloat16>& a, const Operand<__nv_bfloat16>& b,
                                    int half) {
  multiply_bfloat16(sum, a.words, b.words + 2 * half);
}
inline __device__ void multiply_add(float (&sum)[4], const Operand<__half>& a, const Operand<__half>& b, int half) {
  multiply_halves(sum, a.words, b.words + 2 * half);
}
inline __device__ void multiply_add(float (&sum)[4], const Operand<float>& a, const Operand<float>& b, int half) {
  multiply_parts(sum, a.low, b.words + 2 * half);
  multiply_parts(sum, a.words, b.low + 2 * half);
  multiply_parts(sum, a.words, b.words + 2 * half);
}

inline __device__ uint32_t packed_pair(float x, float y, __nv_bfloat16) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
  return *reinterpret_cast<const uint32_t*>(&pair);
}
inline __device__ uint32_t packed_pair(float x, float y, __half) {
  const __half2 pair = __floats2half2_rn(x, y);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// sums[16, N] += rows [first, first + 16) of `left`, a tile of block_rows, by the N rows of `right`, transposed.
template <class T, int D, int N>
__device__ void multiply_rows(float (&sums)[N / 8][4], uint32_t left, int first, uint32_t right) {
  using Left = TileOf<T, D, block_rows>;
  using Right = TileOf<T, D, N>;
  const int lane = threadIdx.x % 32, row = lane % 8, low = lane / 8 & 1, high = lane / 16;
#pragma unroll
  for (int k = 0; k < Left::pieces / 2; ++k) {
    Operand<T> a;
    load_matrices(a.words, left + Left::at(first + row + 8 * low, 2 * k + high));
    a.prepare();
#pragma unroll
    for (int n = 0; n < N / 16; ++n) {
      Operand<T> b;
      load_matrices(b.words, right + Right::at(16 * n + row + 8 * high, 2 * k + low));
      b.prepare();
      multiply_add(sums[2 * n], a, b, 0);
      multiply_add(sums[2 * n + 1], a, b, 1);
    }
  }
}

// sums[16, D] += shares[16, N], the accumulators of another matmul, by the N rows of `right`.
template <class T, int D, int N>
__device__ void multiply_across(float (&sums)[D / 8][4], const float (&shares)[N / 8][4], uint32_t right) {
  using Right = TileOf<T, D, N>;
  const int lane = threadIdx.x % 32;
  if constexpr (sizeof(T) == 2) {
#pragma unroll
    for (int k = 0; k < N / 16; ++k) {
      const Operand<T> a = {{packed_pair(shares[2 * k][0], shares[2 * k][1], T()),
                             packed_pair(shares[2 * k][2], shares[2 * k][3], T()),
                             packed_pair(shares[2 * k + 1][0], shares[2 * k + 1][1], T()),
                             packed_pair(shares[2 * k + 1][2], shares[2 * k + 1][3], T())}};
#pragma unroll
      for (int n = 0; n < D / 16; ++n) {
        Operand<T> b;
        load_transposed(b.words, right + Right::at(16 * k + lane % 16, 2 * n + lane / 16));
        multiply_add(sums[2 * n], a, b, 0);
        multiply_add(sums[2 * n + 1], a, b, 1);
      }
    }
  } else {
    // Of eight inner elements, element t is column 2 t of the shares and element t + 4 the next: a thread has both.
#pragma unroll
    for (int k = 0; k < N / 8; ++k) {
      Operand<T> a;
      const int order[4] = {0, 2, 1, 3};
#pragma unroll
      for (int i = 0; i < 4; ++i) a.words[i] = __float_as_uint(shares[k][order[i]]);
      a.prepare();
      const int row = 8 * k + 2 * (lane % 4);
#pragma unroll
      for (int n = 0; n < D / 16; ++n) {
        Operand<T> b;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int column = 16 * n + 8 * (i / 2) + lane / 4;
          b.words[i] = load_word(right + Right::at(row + i % 2, column / 4) + column % 4 * 4);
        }
        b.prepare();
        multiply_add(sums[2 * n], a, b, 0);
        multiply_add(sums[2 * n + 1], a, b, 1);
      }
    }
  }
}

}  // namespace capibara::cuda::attention
