// Tensor cores of Hopper: products of 64 rows by a warpgroup of four warps, operands in shared memory.
//
// Operands in shared memory are tiles of 64 or 128 rows as TileOf lays them out. Sums are laid out over the threads as
// those of attention_products.h.
#pragma once

#include "backends/cuda/attention/hopper/attention_barriers.h"
#include "backends/cuda/attention/hopper/attention_operands.h"
#include "backends/cuda/attention/attention_products.h"

namespace capibara::cuda::attention {

#define CAPIBARA_FOUR(d, j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define CAPIBARA_SUMS(d, j)                                                                       \
  CAPIBARA_FOUR(d, j), CAPIBARA_FOUR(d, j + 1), CAPIBARA_FOUR(d, j + 2), CAPIBARA_FOUR(d, j + 3), \
      CAPIBARA_FOUR(d, j + 4), CAPIBARA_FOUR(d, j + 5), CAPIBARA_FOUR(d, j + 6), CAPIBARA_FOUR(d, j + 7)
#define CAPIBARA_NAMES_64                                                                                           \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31}, "
#define CAPIBARA_NAMES_128                                                                                          \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, "  \
  "%46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
#define CAPIBARA_WGMMA(width, type) "wgmma.mma_async.sync.aligned.m64n" width "k16.f32." type "." type " "

// 64 columns, the left operand in shared memory; rows of both are along the inner dimension.
#define CAPIBARA_SHARED(type)                                                                            \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n" CAPIBARA_WGMMA("64", type) CAPIBARA_NAMES_64 \
               "%32, %33, p, 1, 1, 0, 0;\n}\n"                                                           \
               : CAPIBARA_SUMS(sums, 0)                                                                  \
               : "l"(left), "l"(right), "r"(add))
// The same of 128 columns.
#define CAPIBARA_SHARED_128(type)                                                                          \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n" CAPIBARA_WGMMA("128", type) CAPIBARA_NAMES_128 \
               "%64, %65, p, 1, 1, 0, 0;\n}\n"                                                             \
               : CAPIBARA_SUMS(sums, 0), CAPIBARA_SUMS(sums, 8)                                            \
               : "l"(left), "l"(right), "r"(add))
// Of 64 columns, the left operand in registers.
#define CAPIBARA_REGISTERS(type)                                                                         \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n" CAPIBARA_WGMMA("64", type) CAPIBARA_NAMES_64 \
               "{%32, %33, %34, %35}, %36, p, 1, 1, 0;\n}\n"                                             \
               : CAPIBARA_SUMS(sums, 0)                                                                  \
               : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right), "r"(add))
// The left operand in registers; rows of the right one are the inner dimension. Added to the sums.
#define CAPIBARA_REGISTERS_64(type)                                                                    \
  asm volatile(CAPIBARA_WGMMA("64", type) CAPIBARA_NAMES_64 "{%32, %33, %34, %35}, %36, 1, 1, 1, 1;\n" \
               : CAPIBARA_SUMS(sums, 0)                                                                \
               : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right))
#define CAPIBARA_REGISTERS_128(type)                                                                     \
  asm volatile(CAPIBARA_WGMMA("128", type) CAPIBARA_NAMES_128 "{%64, %65, %66, %67}, %68, 1, 1, 1, 1;\n" \
               : CAPIBARA_SUMS(sums, 0), CAPIBARA_SUMS(sums, 8)                                          \
               : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right))

template <class T>
inline constexpr bool is_brain = std::is_same_v<T, __nv_bfloat16>;

template <class T>
__device__ void multiply_group(float (&sums)[8][4], uint64_t left, uint64_t right, int add) {
  if constexpr (is_brain<T>)
    CAPIBARA_SHARED("bf16");
  else
    CAPIBARA_SHARED("f16");
}
template <class T>
__device__ void multiply_group(float (&sums)[16][4], uint64_t left, uint64_t right, int add) {
  if constexpr (is_brain<T>)
    CAPIBARA_SHARED_128("bf16");
  else
    CAPIBARA_SHARED_128("f16");
}
template <class T>
__device__ void multiply_group(float (&sums)[8][4], const uint32_t (&left)[4], uint64_t right, int add) {
  if constexpr (is_brain<T>)
    CAPIBARA_REGISTERS("bf16");
  else
    CAPIBARA_REGISTERS("f16");
}
template <class T>
__device__ void multiply_group(float (&sums)[8][4], const uint32_t (&left)[4], uint64_t right) {
  if constexpr (is_brain<T>)
    CAPIBARA_REGISTERS_64("bf16");
  else
    CAPIBARA_REGISTERS_64("f16");
}
template <class T>
__device__ void multiply_group(float (&sums)[16][4], const uint32_t (&left)[4], uint64_t right) {
  if constexpr (is_brain<T>)
    CAPIBARA_REGISTERS_128("bf16");
  else
    CAPIBARA_REGISTERS_128("f16");
}

// sums[64, 8 N] = the 64 rows of operand a by the 8 N of operand b, transposed, or are `added`. Started, not awaited.
template <class T, int D, bool added, int N>
__device__ void start_rows_of(float (&sums)[N][4], uint32_t a, uint32_t b) {
#pragma unroll
  for (int k = 0; k < D / 16; ++k) {
    const int at = k % 4 * 32;
    multiply_group<T>(sums, further(a, k / 4 * (64 * 128) + at), further(b, k / 4 * (8 * N * 128) + at),
                      added || k > 0);
  }
}
// The same of tiles.
template <class T, int D, int N>
__device__ void start_rows(float (&sums)[N][4], uint32_t left, uint32_t right) {
  start_rows_of<T, D, false>(sums, operand_at(left), operand_at<8 * N>(right));
}
// The rows of the thread's warp in a tile of 64, as the left operand in registers.
template <class T, int D>
__device__ void load_rows(uint32_t (&rows)[D / 16][4], uint32_t tile) {
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane % 16;
#pragma unroll
  for (int k = 0; k < D / 16; ++k) load_matrices(rows[k], tile + TileOf<T, D, 64>::at(row, 2 * k + lane / 16));
}
template <class T, int D, bool added = false>
__device__ void start_rows(float (&sums)[8][4], const uint32_t (&left)[D / 16][4], uint32_t right) {
  const uint32_t b = operand_at(right);
#pragma unroll
  for (int k = 0; k < D / 16; ++k) {
    multiply_group<T>(sums, left[k], further(b, k / 4 * (64 * 128) + k % 4 * 32), added || k > 0);
  }
}
// sums[64, D] += shares[64, 16 N] by the 16 N rows of an operand, or of a tile.
template <class T, int D, int N>
__device__ void start_across_of(float (&sums)[D / 8][4], const uint32_t (&shares)[N][4], uint32_t b) {
#pragma unroll
  for (int k = 0; k < N; ++k) multiply_group<T>(sums, shares[k], further(b, k * 2048));
}
template <class T, int D, int N>
__device__ void start_across(float (&sums)[D / 8][4], const uint32_t (&shares)[N][4], uint32_t right) {
  start_across_of<T, D>(sums, shares, operand_at<16 * N>(right));
}

// Sums of a product as the left operand of the next.
template <class T, int N>
__device__ void narrow(uint32_t (&to)[N][4], const float (&from)[2 * N][4]) {
#pragma unroll
  for (int k = 0; k < N; ++k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float(&pair)[4] = from[2 * k + i / 2];
      to[k][i] = packed_pair(pair[i % 2 * 2], pair[i % 2 * 2 + 1], T());
    }
  }
}

}  // namespace capibara::cuda::attention
