// Attention by warpgroups: one copies tiles into stages of shared memory, two multiply, each 64 rows of its own.
#pragma once

#include "backends/cuda/attention/attention_boxes.h"
#include "backends/cuda/attention/attention_rows.h"
#include "backends/cuda/attention/hopper/attention_warpgroups.h"

namespace capibara::cuda::attention {

inline constexpr int group_threads = 128, workers = 2, all_threads = group_threads * (1 + workers);
inline constexpr int group_rows = 64 * workers, max_tiles = 2048;

template <class T, int D>
using GroupTile = TileOf<T, D, 64>;
// The bias of a tile of each worker.
inline constexpr int bias_tile_bytes = 64 * 64 * 2, bias_bytes = workers * bias_tile_bytes;
// Of a stage: two tiles, and the bias of what the workers compute of them.
template <class T, int D, bool biased>
inline constexpr int stage_bytes_of = 2 * GroupTile<T, D>::bytes + (biased ? bias_bytes : 0);
// `Own` tiles of each worker, and stages; some more to align the first.
template <class T, int D, bool biased, int Own, int Count>
inline constexpr int group_bytes = Own* workers* GroupTile<T, D>::bytes + Count* stage_bytes_of<T, D, biased> + 1024;

inline __device__ uint32_t aligned_memory(const void* memory) {
  return (static_cast<uint32_t>(__cvta_generic_to_shared(memory)) + 1023) & ~1023u;
}
// An address in shared memory that is computed once: the compiler computes those it knows again for every use.
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

// The tiles that some worker visits, in order: their number times 16, and the levels of the workers, two bits each.
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
  // Tiles of keys, for rows that are queries.
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

// Which stages are full and which may be written: stage i % Count holds visit i. A worker holds two at most.
template <int Count>
struct Stages {
  using Barriers = uint64_t[2 * Count];
  uint32_t barriers;  // where they are

  __device__ explicit Stages(const Barriers& memory) : barriers(kept_address(memory)) {}
  __device__ uint32_t full(int i) const { return barriers + i % Count * 8; }
  __device__ uint32_t empty(int i) const { return full(i) + Count * 8; }
  // `warps` release each stage; `by_threads`: all threads of the copier copy, not the copy engine alone.
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

  // The copier's loop: copy(stage, visit, barrier) starts copies for each, which announce themselves when they have
  // ended, and make(stage, visit) stores what is computed. `by_threads` as above; `odd`: tiles are among what they
  // copy. Visits before `begin` were copied before.
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

// Starts to copy the queries of all workers, by all threads.
template <class T, int D, int Rows>
__device__ void copy_own_queries(const Problem& p, const RowBlock<Rows>& rows, uint32_t to) {
  for (int w = 0; w < Rows / 64; ++w) {
    const int first = rows.first + 64 * w;
    const T* from = static_cast<const T*>(p.query) + (rows.begin + first) * p.size;
    GroupTile<T, D>::template copy<all_threads>(to + w * GroupTile<T, D>::bytes, from, rows.rows - first, p.size);
  }
  end_copies();
}

// Of the registers that a thread of each warpgroup has, 504 together, the copier keeps some and the workers share the
// others.
template <int Registers>
__device__ void keep_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Kept>
__device__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"((504 - Kept) / workers));
}

}  // namespace capibara::cuda::attention
