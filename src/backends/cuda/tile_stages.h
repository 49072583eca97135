// Stages of shared memory for tiles of matrices: asynchronous copies in, tensor core fragments out.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace capibara::cuda {

inline constexpr int side = 128;                 // of a tile of the result
inline constexpr int stages = 4, threads = 128;  // 2 x 2 warps, each 64 x 64 of the tile
inline constexpr int stage_bytes = side * 64;    // of one operand

// A stage of an operand: `side` rows (of the result) by 64 bytes of the inner dimension. Straight: a row's 64 bytes are
// four pieces of 16; crossed: the rows of one inner element are contiguous, as in memory.
template <class T, bool crossed>
struct Stage {
  static constexpr int per_piece = 16 / sizeof(T);
  static constexpr int depth = 64 / sizeof(T);  // inner elements

  // The byte offset of a piece: of row `line` if straight, of inner element `line` if crossed.
  static __device__ int at(int line, int piece) {
    if constexpr (!crossed)
      return line * 64 + (piece ^ (line >> 1 & 3)) * 16;
    else if constexpr (sizeof(T) == 2)
      return line * side * 2 + (piece ^ (line & 7)) * 16;
    else
      return line * side * 4 + (piece ^ ((line & 3) << 1)) * 16;
  }

  // Starts copying a stage. `from` is element (first row, first inner element); rows and inner elements that do
  // not exist become zeros.
  static __device__ void copy(uint32_t to, const T* from, int64_t stride, int rows, int inner) {
    constexpr int pieces = crossed ? side / per_piece : 4;
#pragma unroll
    for (int q = threadIdx.x; q < stage_bytes / 16; q += threads) {
      const int line = q / pieces, piece = q % pieces;
      const bool exists = crossed ? line < inner && piece * per_piece < rows : line < rows && piece * per_piece < inner;
      const T* source = exists ? from + line * stride + piece * per_piece : from;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to + at(line, piece)), "l"(source),
                   "r"(exists ? 16 : 0));
    }
  }
};

inline __device__ void load_matrices(uint32_t (&to)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address));
}
inline __device__ void load_transposed(uint32_t (&to)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address));
}
inline __device__ uint32_t load_word(uint32_t address) {
  uint32_t value;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(value) : "r"(address));
  return value;
}

// Loads 16 rows by 32 bytes of the inner dimension (step `k` of two): four 8 x 16-byte matrices. For a left operand the
// first two differ in rows, for a right operand in the inner dimension.
template <class T, bool crossed, bool is_left>
__device__ void load_fragment(uint32_t (&to)[4], uint32_t stage, int row, int k) {
  using S = Stage<T, crossed>;
  const int lane = threadIdx.x % 32, matrix = lane / 8;
  const int row_half = is_left ? matrix & 1 : matrix >> 1, inner_half = is_left ? matrix >> 1 : matrix & 1;
  if constexpr (!crossed) {
    load_matrices(to, stage + S::at(row + lane % 8 + 8 * row_half, 2 * k + inner_half));
  } else if constexpr (sizeof(T) == 2) {
    load_transposed(to, stage + S::at(16 * k + lane % 8 + 8 * inner_half, row / 8 + row_half));
  } else {
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      const int own = row + lane / 4 + 8 * (is_left ? m & 1 : m >> 1);
      const int inner = 8 * k + lane % 4 + 4 * (is_left ? m >> 1 : m & 1);
      to[m] = load_word(stage + S::at(inner, own / 4) + own % 4 * 4);
    }
  }
}

}  // namespace capibara::cuda
