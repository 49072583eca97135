// The split of norm rows over a GPU, shared by the kernels and their claims.
#pragma once

#include <cstdint>

namespace capibara::cuda {

// A block holds a row of whole 16-byte pieces, at most `max_row_pieces`.
inline constexpr int max_row_pieces = 2048, max_norm_threads = 512;

constexpr bool holds_row(int64_t columns, int64_t element_bytes) {
  const int64_t size = 16 / element_bytes;
  return columns > 0 && columns % size == 0 && columns / size <= max_row_pieces;
}

// Backward: pieces per thread, threads per block, rows in flight or staged per block, blocks per multiprocessor.
struct BackwardSplit {
  int pieces, threads, stages, blocks;
};
constexpr BackwardSplit backward_split_of(int64_t row_pieces) {
  const int pieces = row_pieces <= 256 ? 1 : row_pieces <= 1024 ? 2 : 4;
  const int threads = static_cast<int>((row_pieces + pieces * 32 - 1) / (pieces * 32) * 32);
  const int stages = pieces == 4 ? 3 : 4;
  const int blocks = threads > 256 ? 1 : pieces == 2 ? 512 / threads : threads > 64 ? 1024 / threads : 16;
  return {pieces, threads, stages, blocks};
}

// Blocks of the backward kernel: enough to fill the GPU, few enough that their sums take little memory.
constexpr int64_t backward_grid(int64_t rows, int64_t row_pieces, int64_t multiprocessors) {
  const int64_t blocks = multiprocessors * backward_split_of(row_pieces).blocks;
  return rows < 1 ? 1 : rows < blocks ? rows : blocks;
}

}  // namespace capibara::cuda
