// Bits of the tiles of warpgroups: which elements are seen and which dropout keeps. The copier makes them for both
// workers while they multiply; a thread of a worker reads its 32 elements of each as one word.
#pragma once

#include <cstddef>

#include "backends/cuda/attention/attention_dropout.h"
#include "backends/cuda/attention/hopper/attention_groups.h"
#include "backends/cuda/attention/hopper/attention_seen.h"

namespace capibara::cuda::attention {

// The bit of element e of eight columns j among those that are seen, in the word of a thread.
template <bool turned>
__host__ __device__ constexpr int seen_bit(int j, int e) {
  return turned ? j + e / 2 * 8 + e % 2 * 16 : j % 4 * 8 + j / 4 * 2 + e / 2 * 4 + e % 2;
}

// `keeps`: whether the copier makes those of dropout too.
template <bool turned, bool keeps = false>
struct TileBits {
  // Straight: a row of 64 keys for each query of both workers. Turned: for each warp of both workers and pair of
  // queries of a thread, the 16 keys of the warp for one and for the other.
  alignas(16) uint64_t seen[workers * 64];
  uint32_t kept[keeps ? workers * group_threads : 1];
  alignas(8) Level levels[group_threads / 32];

  // A thread of the copier makes the bits of one query and 64 keys of worker threadIdx.x / 64.

  // `mask`: its bits, all ones where there is none.
  __device__ void write_seen(const Problem& p, Level level, int batch, int head, int query, int key, uint64_t mask) {
    if (level == some || (level == all && p.mask)) {
      const uint64_t bits = mask & seen_bits(p, level, batch, head, query, key);
      write(bits);
      const bool every = __all_sync(0xffffffffu, bits == ~uint64_t{0}), any = __any_sync(0xffffffffu, bits != 0);
      level = every ? all : any ? some : none;
    }
    if (threadIdx.x % 32 == 0) levels[threadIdx.x / 32] = level;
  }
  // Of the 128 queries from `query` on and 64 keys.
  __device__ void write_kept(const Problem& p, uint2 dropout, int query, int key) {
    const KeptBits bits{p, dropout};
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
#pragma unroll 1
    for (int w = 0; w < workers; ++w) kept[w * group_threads + threadIdx.x] = bits.straight(query + 64 * w + row, key);
  }

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

// The same as a thread of a worker reads them: those of tile `number` of an array.
template <bool turned, bool keeps = false>
struct BitsView {
  using Bits = TileBits<turned, keeps>;
  uint32_t first;

  __device__ explicit BitsView(const void* bits) : first(kept_address(bits)) {}

  __device__ Level level(int number, int worker) const {
    uint32_t one, other;
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                 : "=r"(one), "=r"(other)
                 : "r"(at(number, offsetof(Bits, levels) + 8 * worker))
                 : "memory");
    return static_cast<Level>(one == other ? one : static_cast<uint32_t>(some));
  }
  __device__ uint32_t seen_word(int number, int worker) const {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    uint32_t word = 0;
    if constexpr (turned) {
      const uint32_t from = at(number, ((4 * worker + warp) * 4 + lane % 4) * 32);
      uint32_t words[8];
      load_quad(words, from);
      load_quad(words + 4, from + 16);
#pragma unroll
      for (int j = 0; j < 8; ++j) word |= (words[j] >> lane / 4 & 0x01010101u) << j;
    } else {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        uint32_t low, high;
        asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                     : "=r"(low), "=r"(high)
                     : "r"(at(number, (64 * worker + 16 * warp + lane / 4 + 8 * half) * 8))
                     : "memory");
        low = low >> lane % 4 * 2 & 0x03030303u;
        high = high >> lane % 4 * 2 & 0x03030303u;
        word |= (low | high << 2) << 4 * half;
      }
    }
    return word;
  }
  __device__ uint32_t kept_word(int number, int worker) const {
    return load_word(at(number, offsetof(Bits, kept) + 4 * (worker * group_threads + threadIdx.x % group_threads)));
  }

 private:
  __device__ uint32_t at(int number, int offset) const {
    return first + number * static_cast<int>(sizeof(Bits)) + offset;
  }
  static __device__ void load_quad(uint32_t* to, uint32_t from) {
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
  }
};

// Logits of the eight columns from `first` on that are not seen become -inf.
template <bool turned, int N>
__device__ void hide(float (&logits)[N][4], uint32_t seen, int first = 0) {
#pragma unroll
  for (int j = 0; j < 8; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if (!(seen >> seen_bit<turned>(j, e) & 1)) logits[first + j][e] = -__builtin_huge_valf();
    }
  }
}

// Pairs of narrow elements from `first` on, those that are dropped set to 0: the sign of each byte of two is repeated
// over half of a word. One shift serves two pairs.
template <bool turned, int N>
__device__ void drop_pairs(uint32_t (&pairs)[N][4], uint32_t kept, int first = 0) {
#pragma unroll
  for (int k = 0; k < 2; ++k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t signs = kept << (7 - bit_of<turned>(2 * k + i / 2, i % 2 * 2));
      uint32_t low, high;
      asm("prmt.b32 %0, %1, 0, 0x9988;" : "=r"(low) : "r"(signs));
      asm("prmt.b32 %0, %1, 0, 0xbbaa;" : "=r"(high) : "r"(signs));
      pairs[first + k][i] &= low;
      pairs[first + k + 2][i] &= high;
    }
  }
}

}  // namespace capibara::cuda::attention
