// Bits of the tiles of warpgroups: which elements are seen and which dropout keeps. The copier makes them for both
// workers while they multiply; a thread of a worker reads its 32 elements of each as one word.
#pragma once

#include "backends/cuda/attention_dropout.h"
#include "backends/cuda/attention_masks.h"

namespace capibara::cuda::attention {

template <bool turned>
struct TileBits {
  // Straight: a row of 64 keys for each query of both workers. Turned: for each warp of both workers and pair of
  // queries of a thread, the 16 keys of the warp for one and for the other.
  alignas(16) uint64_t seen[workers * 64];
  uint32_t kept[workers * group_threads];
  Level levels[group_threads / 32];

  // ---- the copier's part: a thread makes the bits of one query and 64 keys of worker threadIdx.x / 64 --------------

  // `masks`: the mask is among them, else the workers read it.
  __device__ void write_seen(const Problem& p, Level level, int batch, int head, int query, int key, bool masks) {
    if (level == some || (level == all && masks)) {
      const uint64_t bits = seen_bits(p, level, batch, head, query, key, masks);
      write(bits);
      const bool every = __all_sync(0xffffffffu, bits == ~uint64_t{0}), any = __any_sync(0xffffffffu, bits != 0);
      level = every ? all : any ? some : none;
    }
    if (threadIdx.x % 32 == 0) levels[threadIdx.x / 32] = level;
  }
  // The tile of queries and keys of each worker: those of the second are `queries` and `keys` further.
  __device__ void write_kept(const Problem& p, uint2 dropout, int query, int queries, int key, int keys) {
    const KeptBits bits{dropout, p.threshold << 16};
    const int warp = threadIdx.x / 32, row = 16 * warp + threadIdx.x % 32 / 4;
#pragma unroll 1
    for (int w = 0; w < workers; ++w) {
      kept[w * group_threads + threadIdx.x] = turned ? bits.turned(query + w * queries, key + w * keys + 16 * warp)
                                                     : bits.straight(query + w * queries + row, key + w * keys);
    }
  }

  // ---- a worker's part ----------------------------------------------------------------------------------------------

  __device__ Level level(int worker) const {
    const Level first = levels[2 * worker], second = levels[2 * worker + 1];
    return first == second ? first : some;
  }
  __device__ uint32_t seen_word(int worker) const {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    uint32_t word = 0;
    if constexpr (turned) {
      const uint4* from = reinterpret_cast<const uint4*>(seen) + ((4 * worker + warp) * 4 + lane % 4) * 2;
      const uint4 low = from[0], high = from[1];
      const uint32_t words[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
      for (int j = 0; j < 8; ++j) word |= (words[j] >> lane / 4 & 0x01010101u) << j;
    } else {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint64_t row = seen[64 * worker + 16 * warp + lane / 4 + 8 * half];
        const uint32_t low = static_cast<uint32_t>(row) >> lane % 4 * 2 & 0x03030303u;
        const uint32_t high = static_cast<uint32_t>(row >> 32) >> lane % 4 * 2 & 0x03030303u;
        word |= (low | high << 2) << 4 * half;
      }
    }
    return word;
  }
  __device__ uint32_t kept_word(int worker) const { return kept[worker * group_threads + threadIdx.x % group_threads]; }

 private:
  __device__ void write(uint64_t bits) {
    if constexpr (turned) {
      const int query = threadIdx.x % 64, worker = threadIdx.x / 64;
      auto* to = reinterpret_cast<uint16_t*>(seen) + (worker * 16 + query % 8 / 2) * 16 + query / 8 * 2 + query % 2;
#pragma unroll
      for (int warp = 0; warp < 4; ++warp) to[warp * 64] = static_cast<uint16_t>(bits >> 16 * warp);
    } else {
      seen[threadIdx.x] = bits;
    }
  }
};

template <bool turned>
__device__ void hide(float (&logits)[8][4], uint32_t seen) {
#pragma unroll
  for (int j = 0; j < 8; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if (!(seen >> bit_of<turned>(j, e) & 1)) logits[j][e] = -__builtin_huge_valf();
    }
  }
}

// Repeats the signs of two bytes, numbered 0 to 7, over the lower and the upper half of a word.
inline __device__ uint32_t spread_signs(uint32_t first, uint32_t second, int low, int high) {
  uint32_t halves;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(halves) : "r"(first), "r"(second), "r"((8 + high) * 0x1100 + (8 + low) * 0x11));
  return halves;
}

// Pairs of narrow elements, those that are dropped set to 0.
template <bool turned>
__device__ void drop_pairs(uint32_t (&pairs)[4][4], uint32_t kept) {
#pragma unroll
  for (int k = 0; k < 4; ++k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int j = 2 * k + i / 2, low = bit_of<turned>(j, i % 2 * 2), high = bit_of<turned>(j, i % 2 * 2 + 1);
      pairs[k][i] &= spread_signs(kept << (7 - low % 8), kept << (7 - high % 8), low / 8, 4 + high / 8);
    }
  }
}

}  // namespace capibara::cuda::attention
