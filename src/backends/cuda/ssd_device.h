// What the kernels of the state space dual share on the device: operands, tiles in shared memory, products of tensor
// cores, decays inside of a chunk.
//
// Tiles are 64 rows of bfloat16, a row for each step or state, whose 16-byte pieces are permuted so that fragments meet
// in no bank. Eight warps share a chunk: of a result of 64 x 64 each has 16 rows and 32 columns.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "backends/cuda/row_pieces.h"
#include "backends/cuda/ssd_split.h"
#include "backends/cuda/tile_stages.h"

namespace capibara::cuda {
namespace {

constexpr int ssd_threads = 256;
constexpr float log2_e = 1.4426950408889634f;

struct SsdSizes {
  int length, heads, groups, chunks;
  bool has_softplus;
};

struct SsdInputs {
  const __nv_bfloat16 *x, *dt, *B, *C, *z;
  const float *A, *D, *bias, *initial;
  const uint8_t* reset;
};

inline __device__ float exp2_fast(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
inline __device__ float sigmoid(float x) { return __fdividef(1.0f, 1.0f + exp2_fast(-x * log2_e)); }
inline __device__ float softplus(float x) { return fmaxf(x, 0.0f) + log1pf(exp2_fast(-fabsf(x) * log2_e)); }

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

  // Starts copies of rows that exist, `stride` elements apart; others are zeros.
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

// The decays of a chunk, as exponents of 2: sums of steps * A up to each step; resets up to each step.
struct Decays {
  float step[ssd_chunk], sums[ssd_chunk];
  int counts[ssd_chunk];

  __device__ float last() const { return sums[ssd_chunk - 1]; }
  __device__ int all() const { return counts[ssd_chunk - 1]; }
  __device__ float between(int to, int from) const {
    return from <= to && counts[from] == counts[to] ? exp2_fast(sums[to] - sums[from]) : 0.0f;
  }
  __device__ float from_start(int q) const { return counts[q] == 0 ? exp2_fast(sums[q]) : 0.0f; }
  __device__ float to_end(int q) const { return counts[q] == all() ? exp2_fast(last() - sums[q]) : 0.0f; }
  __device__ float whole() const { return all() == 0 ? exp2_fast(last()) : 0.0f; }

  // By one warp, which has two steps in each lane; steps behind the last are of size 0.
  __device__ void fill(const SsdInputs& in, const SsdSizes& s, int batch, int head, int t0) {
    const int lane = threadIdx.x % 32;
    const float rate = in.A[head] * log2_e, bias = in.bias[head];
    float own[2], total = 0;
    int cleared[2], count = 0;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int t = t0 + 2 * lane + i;
      const bool exists = t < s.length;
      const int64_t row = static_cast<int64_t>(batch) * s.length + (exists ? t : 0);
      const float raw = __bfloat162float(in.dt[row * s.heads + head]) + bias;
      const float size = exists ? (s.has_softplus ? softplus(raw) : raw) : 0.0f;
      step[2 * lane + i] = size;
      own[i] = total += size * rate;
      cleared[i] = count += in.reset && exists && in.reset[row] ? 1 : 0;
    }
    float before = total;
    int count_before = count;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const float sum = __shfl_up_sync(0xffffffffu, before, distance);
      const int number = __shfl_up_sync(0xffffffffu, count_before, distance);
      if (lane >= distance) before += sum, count_before += number;
    }
    before = __shfl_up_sync(0xffffffffu, before, 1);
    count_before = __shfl_up_sync(0xffffffffu, count_before, 1);
    if (lane == 0) before = 0, count_before = 0;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      sums[2 * lane + i] = before + own[i];
      counts[2 * lane + i] = count_before + cleared[i];
    }
  }
};

}  // namespace
}  // namespace capibara::cuda
