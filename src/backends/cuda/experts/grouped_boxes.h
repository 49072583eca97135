// Grouped matmuls on Hopper: one thread starts the copies of boxes, two warpgroups multiply 64 x 256 each of a tile.
//
// Blocks are persistent. A stage has both operands for 64 elements of the inner dimension, as boxes of 64 rows by 128
// bytes in the order of memory: tensor cores read operands whose rows are the inner dimension too. With the first
// stage of a tile the copier writes down which tile it is.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "backends/cuda/attention/hopper/attention_groups.h"
#include "backends/cuda/bulk_copies.h"

namespace capibara::cuda::boxes {

inline constexpr int tile_rows = 128, tile_columns = 256, depth = 64, stage_count = 4;
inline constexpr int box_bytes = 64 * 128, left_boxes = tile_rows / 64, right_boxes = tile_columns / 64;
inline constexpr int boxes_bytes = (left_boxes + right_boxes) * box_bytes;
// A warp stores its 16 rows in halves of 128 columns.
inline constexpr int half_columns = 128, warp_bytes = 16 * half_columns * 2, worker_warps = 8;
inline constexpr int shared_bytes = stage_count * boxes_bytes + worker_warps * warp_bytes + 1024;

// A tile of the result, and the inner dimension that it sums.
struct Work {
  int group;  // negative: there are no more tiles
  int row, rows, column;
  int begin, inner;
};

inline __device__ int steps_of(int inner) { return inner > 0 ? (inner + depth - 1) / depth : 1; }

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

#define CAPIBARA_NAMES_256                                                                                          \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, "  \
  "%46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, "  \
  "%68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, "  \
  "%90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, "  \
  "%110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "

// sums[64, 256] = (or, if `add`, +=) left by right, 16 elements of the inner dimension. Crossed: it is the rows in
// shared memory.
template <bool left_crossed, bool right_crossed>
__device__ void multiply(float (&sums)[32][4], uint64_t left, uint64_t right, int add) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n" CAPIBARA_WGMMA("256", "bf16") CAPIBARA_NAMES_256
               "%128, %129, p, 1, 1, %131, %132;\n}\n"
               : CAPIBARA_SUMS(sums, 0), CAPIBARA_SUMS(sums, 8), CAPIBARA_SUMS(sums, 16), CAPIBARA_SUMS(sums, 24)
               : "l"(left), "l"(right), "r"(add), "n"(left_crossed ? 1 : 0), "n"(right_crossed ? 1 : 0));
}

// Clears the rows of all boxes of a stage from `first` on, by all workers.
inline __device__ void clear_rows(uint32_t stage, int first) {
  const int pieces = (64 - first) * 8;
  for (int i = static_cast<int>(threadIdx.x) - attention::group_threads; i < (left_boxes + right_boxes) * pieces;
       i += worker_warps * 32) {
    const uint32_t at = stage + i / pieces * box_bytes + first * 128 + i % pieces * 16;
    asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(at), "r"(0) : "memory");
  }
  attention::publish_writes();
  asm volatile("bar.sync 1, %0;" ::"n"(worker_warps * 32) : "memory");
}

// Stores the 16 rows of a warp, of which `rows` exist: through shared memory, so that a row is stored in whole pieces.
inline __device__ void store_rows(const float (&sums)[32][4], uint32_t memory, __nv_bfloat16* out, int rows, int column,
                                  int columns) {
  const int lane = threadIdx.x % 32, own = lane % 16, other = lane / 16;
  auto place = [&](int row, int piece) { return memory + row * (half_columns * 2) + (piece ^ (row & 7)) * 16; };
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int j = 0; j < 16; j += 2) {
      const float(&a)[4] = sums[16 * half + j], (&b)[4] = sums[16 * half + j + 1];
      using attention::packed_pair;
      const __nv_bfloat16 type{};
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(place(own, j + other)),
                   "r"(packed_pair(a[0], a[1], type)), "r"(packed_pair(a[2], a[3], type)),
                   "r"(packed_pair(b[0], b[1], type)), "r"(packed_pair(b[2], b[3], type))
                   : "memory");
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = 2 * i + other, at = column + half * half_columns + own * 8;
      uint4 piece;
      asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(piece.x), "=r"(piece.y), "=r"(piece.z), "=r"(piece.w)
                   : "r"(place(row, own))
                   : "memory");
      if (row < rows && at < columns) *reinterpret_cast<uint4*>(out + static_cast<int64_t>(row) * columns + at) = piece;
    }
    __syncwarp();
  }
}

// The copier's loop: `work` finds a tile by its number, by all lanes of a warp.
template <bool is_outer, bool transposed, class Find>
__device__ void copy_tiles(const CUtensorMap& left, const CUtensorMap& right,
                           const attention::Stages<stage_count>& stages, Work* works, uint32_t tiles, Find&& find) {
  int visit = 0;
  for (int number = static_cast<int>(blockIdx.x);; number += static_cast<int>(gridDim.x)) {
    const Work work = find(number);
    const int steps = steps_of(work.inner);
    for (int step = 0; step < steps; ++step, ++visit) {
      attention::await_phase(stages.empty(visit), (visit / stage_count & 1) ^ 1);
      if (threadIdx.x == 0) {
        if (step == 0) works[visit % stage_count] = work;
        const uint32_t barrier = stages.full(visit), to = tiles + visit % stage_count * boxes_bytes;
        const int inner = work.begin + step * depth;
        if (work.inner > 0) {
          attention::expect_bytes(barrier, boxes_bytes);
#pragma unroll
          for (int i = 0; i < left_boxes; ++i) {
            const int row = work.row + 64 * i;
            attention::start_box(to + i * box_bytes, left, is_outer ? row : inner, is_outer ? inner : row, 0, barrier);
          }
#pragma unroll
          for (int i = 0; i < right_boxes; ++i) {
            const int column = work.column + 64 * i;
            attention::start_box(to + (left_boxes + i) * box_bytes, right, transposed ? inner : column,
                                 transposed ? column : inner, is_outer ? 0 : work.group, barrier);
          }
        }
        attention::arrive(barrier);
      }
      __syncwarp();
    }
    if (work.group < 0) return;
  }
}

// Reads a tile by the thread of the warp that releases its stage. All threads have the same, which keeps matmuls in
// flight.
inline __device__ Work read_work(const Work& from) {
  Work work{};
  if (threadIdx.x % 32 == 0) work = from;
  auto shared = [](int value) { return __shfl_sync(0xffffffffu, value, 0); };
  return {shared(work.group),  shared(work.row),   shared(work.rows),
          shared(work.column), shared(work.begin), shared(work.inner)};
}

// The workers' loop. `out`: the result for group and row of a tile.
template <bool is_outer, bool transposed, class Out>
__device__ void multiply_tiles(const attention::Stages<stage_count>& stages, const Work* works, uint32_t tiles,
                               int columns, Out&& out) {
  using attention::further;
  const int worker = static_cast<int>(threadIdx.x) / 128 - 1, warp = static_cast<int>(threadIdx.x) / 32 - 4;
  for (int visit = 0;;) {
    stages.await_full(visit);
    const Work work = read_work(works[visit % stage_count]);
    if (work.group < 0) return;
    const int inner = work.inner, steps = steps_of(inner);
    float sums[32][4];
    for (int step = 0; step < steps; ++step, ++visit) {
      if (step > 0) stages.await_full(visit);
      const uint32_t stage = tiles + visit % stage_count * boxes_bytes;
      // Rows of other groups, or all if there is nothing to sum; what no array has is zero already.
      if (const int rest = inner - step * depth; rest < (is_outer ? depth : 1)) clear_rows(stage, rest);
      const uint32_t a = attention::operand_at(stage + worker * box_bytes);
      const uint32_t b = attention::operand_at(stage + left_boxes * box_bytes);
      attention::begin_products();
#pragma unroll
      for (int k = 0; k < depth / 16; ++k)
        multiply<is_outer, !transposed>(sums, further(a, k * (is_outer ? 2048 : 32)),
                                        further(b, k * (transposed ? 32 : 2048)), step > 0 || k > 0);
      attention::end_products();
      attention::await_products<1>();
      if (step > 0) stages.release(visit - 1);
    }
    attention::await_products<0>();
    stages.release(visit - 1);
    const int row = warp * 16;
    if (row < work.rows)
      store_rows(sums, tiles + stage_count * boxes_bytes + warp * warp_bytes, out(work.group, work.row + row),
                 work.rows - row, work.column, columns);
  }
}

#endif

}  // namespace capibara::cuda::boxes
