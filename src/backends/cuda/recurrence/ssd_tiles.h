// Tiles of the state space dual in shared memory and registers, and their tensor core fragments.
//
// Tiles are 64 rows of bfloat16, one per step or state, whose 16-byte pieces are permuted so that fragments have no
// bank conflicts. Eight warps share a chunk: of a 64 x 64 result each has 16 rows and 32 columns.
#pragma once

#include "backends/cuda/recurrence/ssd_problem.h"
#include "backends/cuda/row_pieces.h"
#include "backends/cuda/tile_stages.h"

namespace capibara::cuda {
namespace {

inline __device__ uint32_t shared_word(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}
inline __device__ uint32_t pair_of(float first, float second) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
  return reinterpret_cast<const uint32_t&>(pair);
}
inline __device__ float2 floats_of(uint32_t pair) {
  return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
}
inline __device__ void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Rows of `columns` bfloat16 in shared memory.
template <int columns>
struct RowTile {
  static constexpr int pieces = columns / 8, mask = pieces < 8 ? pieces - 1 : 7, row_bytes = columns * 2;
  uint32_t base;

  __device__ uint32_t at(int row, int piece) const { return base + row * row_bytes + (piece ^ (row & mask)) * 16; }
  __device__ uint32_t element(int row, int column) const { return at(row, column / 8) + column % 8 * 2; }

  // Starts copying the rows that exist, `stride` elements apart; others become zeros.
  __device__ void copy(const __nv_bfloat16* from, int64_t stride, int rows) const {
    for (int i = threadIdx.x; i < ssd_chunk * pieces; i += ssd_threads) {
      const int row = i / pieces, piece = i % pieces;
      const bool exists = row < rows;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at(row, piece)),
                   "l"(from + (exists ? row * stride + piece * 8 : 0)), "r"(exists ? 16 : 0));
    }
  }
  // Left operand: rows [row, row + 16), inner elements [16 k, ...), which are columns.
  __device__ void left(uint32_t (&a)[4], int row, int k) const {
    const int lane = threadIdx.x % 32;
    load_matrices(a, at(row + lane % 16, 2 * k + lane / 16));
  }
  // Left operand transposed: rows of the operand are columns [column, column + 16), inner elements rows [16 k, ...).
  __device__ void left_crossed(uint32_t (&a)[4], int column, int k) const {
    const int lane = threadIdx.x % 32;
    load_transposed(a, at(16 * k + lane % 8 + lane / 16 * 8, column / 8 + lane / 8 % 2));
  }
  // Right operand, two groups of eight columns: rows [row, row + 16) of the tile; inner elements are its columns.
  __device__ void right(uint32_t (&b)[4], int row, int k) const {
    const int lane = threadIdx.x % 32;
    load_matrices(b, at(row + lane % 8 + lane / 16 * 8, 2 * k + lane / 8 % 2));
  }
  // The same, transposed: columns [column, column + 16) of the tile; inner elements are its rows.
  __device__ void right_crossed(uint32_t (&b)[4], int column, int k) const {
    const int lane = threadIdx.x % 32;
    load_transposed(b, at(16 * k + lane % 16, column / 8 + lane / 16));
  }
  __device__ void store(int row, int column, float first, float second) const {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(element(row, column)), "r"(pair_of(first, second)) : "memory");
  }
  __device__ float2 load(int row, int column) const { return floats_of(load_word(element(row, column))); }
};

// The elements of a state, [states][ssd_dim], that a thread has in registers: of 16 rows and half as many columns as
// there are states.
template <int states>
struct StatePart {
  static constexpr int tiles = states / 16;  // of eight columns
  int row, column, lane_row, lane_column;

  __device__ StatePart()
      : row(threadIdx.x / 32 % tiles * 16),
        column(threadIdx.x / 32 / tiles * (states / 2)),
        lane_row(row + threadIdx.x % 32 / 4),
        lane_column(column + threadIdx.x % 4 * 2) {}
  // Calls `visit(row, column, element)` for the thread's elements, pairs of neighbouring columns.
  template <class Visit>
  __device__ void each_pair(float (&state)[tiles][4], const Visit& visit) const {
#pragma unroll
    for (int j = 0; j < tiles; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
        visit(lane_row + 8 * half, lane_column + 8 * j, state[j][2 * half], state[j][2 * half + 1]);
    }
  }
  // Loads from and stores to [ssd_dim][states].
  __device__ void load(float (&state)[tiles][4], const float* from) const {
    each_pair(state, [&](int n, int p, float& a, float& b) {
      a = from[p * states + n];
      b = from[(p + 1) * states + n];
    });
  }
  __device__ void store(float (&state)[tiles][4], float* to) const {
    each_pair(state, [&](int n, int p, float a, float b) {
      to[p * states + n] = a;
      to[(p + 1) * states + n] = b;
    });
  }
};

}  // namespace
}  // namespace capibara::cuda
