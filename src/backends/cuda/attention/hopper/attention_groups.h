// Attention by warpgroups: a copier loads tiles into stages of shared memory, two workers multiply 64 rows each.
#pragma once

#include <cuda_runtime.h>
#include <cstdint>

#include "backends/cuda/attention/attention_boxes.h"
#include "backends/cuda/attention/attention_products.h"
#include "backends/cuda/attention/attention_rows.h"

// Barriers in shared memory between the copier and the workers, and waits for matmuls.

namespace capibara::cuda::attention {

inline __device__ void set_up_barrier(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
inline __device__ void arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// Arrives when the copies started by this thread are complete.
inline __device__ void arrive_after_copies(uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
// Waits until the phase of this parity is complete.
inline __device__ void await_phase(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra over;\nbra again;\nover:\n}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
// Makes this thread's writes to shared memory visible to the tensor cores.
inline __device__ void publish_writes() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---- products of warpgroups: until they have started, and ended ---------------------------------------------------

inline __device__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
inline __device__ void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int Left>
__device__ void await_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Left) : "memory");
}

// Forces `value` to be computed before the following code, such as a wait for a matmul: a branch that is never taken,
// since no arithmetic yields this NaN.
inline __device__ void compute_first(float value) {
  if (__float_as_uint(value) == 0xffc12345u) asm volatile("nanosleep.u32 1;" ::: "memory");
}

// Forces values to be computed before the following code, such as a wait for a matmul, although it does not need them.
template <int N>
__device__ void compute_now(float (&values)[N][4]) {
#pragma unroll
  for (int j = 0; j < N; ++j)
    asm volatile("" : "+f"(values[j][0]), "+f"(values[j][1]), "+f"(values[j][2]), "+f"(values[j][3])::"memory");
}

// Operands of warpgroup matmuls in shared memory.

// An operand in shared memory: 128-byte parts of all rows, groups of eight rows 1024 bytes apart. The address is
// the same in all threads of a warp; stating that lets the compiler use uniform registers.
template <int Rows = 64>
__device__ uint32_t operand_at(uint32_t address) {
  constexpr uint32_t part = (Rows * 128) >> 4;
  return __shfl_sync(0xffffffffu, (address & 0x3ffff) >> 4 | part << 16, 0);
}
inline __device__ uint64_t further(uint32_t operand, int bytes) {
  constexpr uint64_t group = 1024 >> 4, permuted_by_128_bytes = 1;
  return (group | permuted_by_128_bytes << 30) << 32 | (operand + bytes / 16);
}

// Hopper's tensor cores: matmuls of 64 rows by a warpgroup of four warps, operands in shared memory.
//
// Operands in shared memory are tiles of 64 or 128 rows in TileOf's layout. Sums are distributed over the threads as
// in attention_products.h.

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
// The same for 128 columns.
#define CAPIBARA_SHARED_128(type)                                                                          \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n" CAPIBARA_WGMMA("128", type) CAPIBARA_NAMES_128 \
               "%64, %65, p, 1, 1, 0, 0;\n}\n"                                                             \
               : CAPIBARA_SUMS(sums, 0), CAPIBARA_SUMS(sums, 8)                                            \
               : "l"(left), "l"(right), "r"(add))
// For 64 columns, the left operand in registers.
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
inline constexpr bool is_bfloat16 = std::is_same_v<T, __nv_bfloat16>;

template <class T>
__device__ void multiply_group(float (&sums)[8][4], uint64_t left, uint64_t right, int add) {
  if constexpr (is_bfloat16<T>)
    CAPIBARA_SHARED("bf16");
  else
    CAPIBARA_SHARED("f16");
}
template <class T>
__device__ void multiply_group(float (&sums)[16][4], uint64_t left, uint64_t right, int add) {
  if constexpr (is_bfloat16<T>)
    CAPIBARA_SHARED_128("bf16");
  else
    CAPIBARA_SHARED_128("f16");
}
template <class T>
__device__ void multiply_group(float (&sums)[8][4], const uint32_t (&left)[4], uint64_t right, int add) {
  if constexpr (is_bfloat16<T>)
    CAPIBARA_REGISTERS("bf16");
  else
    CAPIBARA_REGISTERS("f16");
}
template <class T>
__device__ void multiply_group(float (&sums)[8][4], const uint32_t (&left)[4], uint64_t right) {
  if constexpr (is_bfloat16<T>)
    CAPIBARA_REGISTERS_64("bf16");
  else
    CAPIBARA_REGISTERS_64("f16");
}
template <class T>
__device__ void multiply_group(float (&sums)[16][4], const uint32_t (&left)[4], uint64_t right) {
  if constexpr (is_bfloat16<T>)
    CAPIBARA_REGISTERS_128("bf16");
  else
    CAPIBARA_REGISTERS_128("f16");
}

// sums[64, 8 N] = (or, if `added`, +=) the 64 rows of operand a by the 8 N of operand b, transposed. Not awaited.
template <class T, int D, bool added, int N>
__device__ void start_rows_of(float (&sums)[N][4], uint32_t a, uint32_t b) {
#pragma unroll
  for (int k = 0; k < D / 16; ++k) {
    const int at = k % 4 * 32;
    multiply_group<T>(sums, further(a, k / 4 * (64 * 128) + at), further(b, k / 4 * (8 * N * 128) + at),
                      added || k > 0);
  }
}
// The same for tiles.
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
// sums[64, D] += shares[64, 16 N] by the 16 N rows of an operand or a tile.
template <class T, int D, int N>
__device__ void start_across_of(float (&sums)[D / 8][4], const uint32_t (&shares)[N][4], uint32_t b) {
#pragma unroll
  for (int k = 0; k < N; ++k) multiply_group<T>(sums, shares[k], further(b, k * 2048));
}
template <class T, int D, int N>
__device__ void start_across(float (&sums)[D / 8][4], const uint32_t (&shares)[N][4], uint32_t right) {
  start_across_of<T, D>(sums, shares, operand_at<16 * N>(right));
}

// Narrows the sums of a matmul to the left operand of the next.
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

inline constexpr int group_threads = 128, workers = 2, all_threads = group_threads * (1 + workers);
inline constexpr int group_rows = 64 * workers, max_tiles = 2048;

template <class T, int D>
using GroupTile = TileOf<T, D, 64>;
// The bias tile of each worker.
inline constexpr int bias_tile_bytes = 64 * 64 * 2, bias_bytes = workers * bias_tile_bytes;
// Bytes per stage: two tiles, and the bias for the workers' results.
template <class T, int D, bool biased>
inline constexpr int stage_bytes_of = 2 * GroupTile<T, D>::bytes + (biased ? bias_bytes : 0);
// `Own` tiles per worker, the stages, and padding to align the first.
template <class T, int D, bool biased, int Own, int Count>
inline constexpr int group_bytes = Own* workers* GroupTile<T, D>::bytes + Count* stage_bytes_of<T, D, biased> + 1024;

inline __device__ uint32_t aligned_memory(const void* memory) {
  return (static_cast<uint32_t>(__cvta_generic_to_shared(memory)) + 1023) & ~1023u;
}
// An address in shared memory that is computed once: the compiler would otherwise recompute it for every use.
inline __device__ uint32_t kept_address(const void* memory) {
  uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
  asm volatile("" : "+r"(address));
  return address;
}
// The same in the generic address space.
inline __device__ float* aligned_floats(unsigned char* memory) {
  return reinterpret_cast<float*>(memory +
                                  (aligned_memory(memory) - static_cast<uint32_t>(__cvta_generic_to_shared(memory))));
}

// The tiles visited by any worker, in order: their index times 16, plus the workers' levels, two bits each.
struct Visits {
  uint32_t entries[max_tiles];
  int counts[all_threads / 32];

  template <class F>
  __device__ int fill(int tiles, F&& level) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int total = 0;
    for (int first = 0; first < tiles; first += all_threads) {
      const int tile = first + static_cast<int>(threadIdx.x);
      uint32_t levels = 0;
      if (tile < tiles) levels = level(tile, 0) | level(tile, 1) << 2;
      const unsigned votes = __ballot_sync(0xffffffffu, levels != 0);
      if (lane == 0) counts[warp] = __popc(votes);
      __syncthreads();
      int before = total;
      for (int w = 0; w < all_threads / 32; ++w) {
        before += w < warp ? counts[w] : 0;
        total += counts[w];
      }
      if (levels != 0) entries[before + __popc(votes & ((1u << lane) - 1))] = tile * 16u + levels;
      __syncthreads();
    }
    return total;
  }
  // Lists the tiles of keys, for rows that are queries.
  template <int Rows>
  __device__ int fill_for(const Problem& p, const RowBlock<Rows>& rows) {
    return fill((p.keys + 63) / 64, [&](int tile, int worker) {
      if (64 * worker >= Rows) return none;
      const int query = rows.first + 64 * worker;
      return seen_in(p, {query, query + 64, tile * 64, tile * 64 + 64}, rows.batch, rows.head);
    });
  }
  __device__ int tile(int i) const { return static_cast<int>(entries[i] >> 4); }
  __device__ Level level(int i, int worker) const { return static_cast<Level>(entries[i] >> 2 * worker & 3); }
};

// Barriers for full and empty stages: stage i % Count holds visit i. A worker holds at most two.
template <int Count>
struct Stages {
  using Barriers = uint64_t[2 * Count];
  uint32_t barriers;  // their address

  __device__ explicit Stages(const Barriers& memory) : barriers(kept_address(memory)) {}
  __device__ uint32_t full(int i) const { return barriers + i % Count * 8; }
  __device__ uint32_t empty(int i) const { return full(i) + Count * 8; }
  // `warps` warps release each stage; `by_threads`: all threads of the copier copy, not only the copy engine.
  __device__ void set_up(bool by_threads, int warps = workers * group_threads / 32) const {
    if (threadIdx.x == 0) {
      for (int s = 0; s < Count; ++s) {
        set_up_barrier(full(s), (by_threads ? group_threads : 0) + group_threads / 32);
        set_up_barrier(empty(s), warps);
      }
      publish_writes();
    }
  }
  __device__ void await_full(int i) const { await_phase(full(i), i / Count & 1); }
  __device__ void release(int i) const {
    if (threadIdx.x % 32 == 0) arrive(empty(i));
  }

  // The copier's loop: copy(stage, visit, barrier) starts the copies of each visit, which signal their completion, and
  // make(stage, visit) stores computed data. `by_threads` as above; `odd`: threads copy tiles
  // too. Visits before `begin` have already been copied.
  template <class Copy, class Make>
  __device__ void copy_all(int count, bool by_threads, bool odd, Copy&& copy, Make&& make, int begin = 0) const {
    for (int i = begin; i < count; ++i) {
      const uint32_t barrier = full(i);
      await_phase(empty(i), (i / Count & 1) ^ 1);
      copy(i % Count, i, barrier);
      if (odd) {
        end_copies();
        await_copies<0>();
        publish_writes();
        arrive(barrier);
      } else if (by_threads) {
        arrive_after_copies(barrier);
      }
      make(i % Count, i);
      __syncwarp();
      if (threadIdx.x % 32 == 0) arrive(barrier);
    }
  }
};

// Starts copying the queries of all workers, by all threads.
template <class T, int D, int Rows>
__device__ void copy_own_queries(const Problem& p, const RowBlock<Rows>& rows, uint32_t to) {
  for (int w = 0; w < Rows / 64; ++w) {
    const int first = rows.first + 64 * w;
    const T* from = static_cast<const T*>(p.query) + (rows.begin + first) * p.size;
    GroupTile<T, D>::template copy<all_threads>(to + w * GroupTile<T, D>::bytes, from, rows.rows - first, p.size);
  }
  end_copies();
}

// Of 504 registers, counting one thread of each warpgroup, the copier keeps some and the workers share the
// rest.
template <int Registers>
__device__ void keep_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Kept>
__device__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"((504 - Kept) / workers));
}

}  // namespace capibara::cuda::attention
