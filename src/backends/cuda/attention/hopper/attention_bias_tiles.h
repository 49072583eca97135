// Gradients of a bias that equal those of the logits, stored tile by tile by the kernel whose rows are queries.
#pragma once

#include "backends/cuda/attention/attention_parts.h"
#include "backends/cuda/attention/hopper/attention_extras.h"

namespace capibara::cuda::attention {

inline __device__ void store_matrices(uint32_t to, const uint32_t (&words)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(words[0]),
               "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
}

inline __device__ void store_transposed(uint32_t to, const uint32_t (&words)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(words[0]),
               "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
}

// Stores gradients of transposed logits over the bias's tile in shared memory.
template <class T>
__device__ void store_turned(uint32_t first, const uint32_t (&gradients)[4][4]) {
#pragma unroll
  for (int n = 0; n < 4; ++n) store_transposed(BiasTile<T>::template at<true>(first, n), gradients[n]);
}

// A tile of gradients that a worker has written to shared memory is stored to global memory by one of its threads,
// which waits until it has been read before the shared memory is released.
inline __device__ bool sends_tiles() { return threadIdx.x % group_threads == 0; }
inline __device__ bool may_send_tile(int worker) {
  publish_writes();
  asm volatile("bar.sync %0, %1;" ::"r"(2 + worker), "n"(group_threads) : "memory");
  return sends_tiles();
}
template <class T>
struct BiasGradients {
  using Layout = TileOf<T, 64, 64>;
  T* first;  // of this batch entry and head

  __device__ BiasGradients(const Problem& p, int batch, int head)
      : first(static_cast<T*>(p.dbias) + batch * p.bias_step[0] + head * p.bias_step[1]) {}

  __device__ void store_piece(const Problem& p, int query, int key, const uint4& piece) const {
    if (query >= p.queries || key >= p.keys) return;
    __stcs(reinterpret_cast<uint4*>(first + query * p.bias_step[2] + key), piece);  // not read again soon
  }
  // Stores a warp's rows of the tile through shared memory that only this warp uses.
  __device__ void store(const Problem& p, const uint32_t (&gradients)[4][4], uint32_t shared, int query,
                        int key) const {
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16;
    __syncwarp();
#pragma unroll
    for (int k = 0; k < 4; ++k) store_matrices(shared + Layout::at(row + lane % 16, 2 * k + lane / 16), gradients[k]);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int own = row + 4 * i + lane / 8;
      uint4 piece;
      asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(piece.x), "=r"(piece.y), "=r"(piece.z), "=r"(piece.w)
                   : "r"(shared + Layout::at(own, lane % 8)));
      store_piece(p, query + own, key + lane % 8 * 8, piece);
    }
  }
  // Stores zeros for tiles that no worker visits, and for the halves that one worker skips: by 128 threads.
  __device__ void store_zeros(const Problem& p, const Visits& visits, int count, int query) const {
    const int row = threadIdx.x / 8, column = threadIdx.x % 8 * 8;
    T* to = first + (query + row) * p.bias_step[2] + column;
    const int64_t step = 16 * p.bias_step[2];
    int i = 0;
    for (int tile = 0; tile * 64 < p.keys; ++tile, to += 64) {
      const bool visited = i < count && visits.tile(i) == tile;
#pragma unroll
      for (int w = 0; w < workers; ++w) {
        if ((visited && visits.level(i, w) != none) || tile * 64 + column >= p.keys) continue;
#pragma unroll
        for (int r = 4 * w; r < 4 * w + 4; ++r) {
          if (query + row + 16 * r < p.queries) __stcs(reinterpret_cast<uint4*>(to + r * step), uint4{});
        }
      }
      i += visited;
    }
  }
};

}  // namespace capibara::cuda::attention
