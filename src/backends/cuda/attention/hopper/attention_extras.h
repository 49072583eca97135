// The bias of the tiles of warpgroups, which comes through shared memory where its rows are pieces of 16 bytes, and
// what makes logits of products.
#pragma once

#include <cstddef>

#include "backends/cuda/attention/attention_bias_grid.h"
#include "backends/cuda/attention/attention_dropout.h"
#include "backends/cuda/attention/attention_problem.h"
#include "backends/cuda/attention/hopper/attention_groups.h"

// Which of 64 neighbouring keys a query sees, as bits: what positions, segments and patterns say.

namespace capibara::cuda::attention {

inline __device__ uint64_t first_bits(int count) {
  return count <= 0 ? 0 : count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

inline __device__ uint64_t bits_by_position(const Problem& p, int query, int key) {
  const int at = query + p.offset - key;
  uint64_t bits = ~uint64_t{0};
  if (p.causal) bits &= first_bits(at + 1);
  if (p.right >= 0) bits &= first_bits(at + p.right + 1);
  if (p.left >= 0) bits &= ~first_bits(at - p.left) | first_bits(p.sinks - key);
  return bits | first_bits(p.prefix - key);
}

inline __device__ uint64_t bits_by_segment(const Problem& p, int batch, int query, int key, int count) {
  const int own = p.query_segments[batch * p.segment_step[0] + query];
  const int* others = p.key_segments + batch * p.segment_step[1] + key;
  uint64_t bits = 0;
#pragma unroll 8
  for (int i = 0; i < count; ++i) bits |= static_cast<uint64_t>(others[i] == own) << i;
  return bits;
}

inline __device__ uint64_t bits_by_pattern(const Problem& p, int batch, int head, int query, int key, int count) {
  const uint8_t* blocks =
      p.blocks + batch * p.block_step[0] + head * p.block_step[1] + query / p.block_size * p.block_step[2];
  uint64_t bits = 0;
  for (int column = key / p.block_size; column * p.block_size < key + count; ++column) {
    const int first = column * p.block_size - key;
    if (blocks[column * p.block_step[3]]) bits |= first_bits(first + p.block_size) & ~first_bits(first);
  }
  return bits;
}

// `level` is that of a rectangle in which they are: none of them, all, or some.
inline __device__ uint64_t seen_bits(const Problem& p, Level level, int batch, int head, int query, int key) {
  if (query >= p.queries || key >= p.keys || level == none) return 0;
  const int count = min(64, p.keys - key);
  uint64_t bits = first_bits(count);
  if (level == some) {
    bits &= bits_by_position(p, query, key);
    if (p.query_segments) bits &= bits_by_segment(p, batch, query, key, count);
    if (p.blocks) bits &= bits_by_pattern(p, batch, head, query, key, count);
  }
  return bits;
}

// Bits of the tiles of warpgroups: which elements are seen and which dropout keeps. The copier makes them for both
// workers while they multiply; a thread of a worker reads its 32 elements of each as one word.

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

template <class T>
__device__ float2 unpacked_pair(uint32_t word) {
  if constexpr (is_brain<T>) return {__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)};
  T pair[2];
  *reinterpret_cast<uint32_t*>(pair) = word;
  return {static_cast<float>(pair[0]), static_cast<float>(pair[1])};
}

// A tile of 64 queries by 64 keys in shared memory, rows are queries.
template <class T>
struct BiasTile {
  using Layout = TileOf<T, 64, 64>;

  // The copier's part. What does not exist is 0.
  static __device__ void copy(const Problem& p, uint32_t to, int batch, int head, int query, int key) {
    const T* bias = static_cast<const T*>(p.bias) + batch * p.bias_step[0] + head * p.bias_step[1] + key;
    const int piece = threadIdx.x % 8;
#pragma unroll
    for (int row = threadIdx.x / 8; row < 64; row += 16) {
      const bool exists = query + row < p.queries && key + piece * 8 < p.keys;
      copy_piece(to + Layout::at(row, piece), exists ? bias + (query + row) * p.bias_step[2] + piece * 8 : bias,
                 exists);
    }
  }

  // What a thread reads of a tile: 16 columns of its warp's rows; where they are turned, its warp's columns of 16 rows.
  template <bool turned>
  static __device__ uint32_t first_at() {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    return turned ? Layout::at(lane % 8 + lane / 16 * 8, 2 * warp + lane / 8 % 2)
                  : Layout::at(16 * warp + lane % 16, lane / 16);
  }
  template <bool turned>
  static __device__ uint32_t at(uint32_t first, int n) {
    return turned ? first + n * 2048 : first ^ n * 32;
  }
  // Of the thread's elements, where the first it reads is at `first`: change(bias, j, e).
  template <bool turned, class Change>
  static __device__ void load(float (&to)[8][4], uint32_t first, Change&& change) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      uint32_t words[4];
      if constexpr (turned)
        load_transposed(words, at<turned>(first, n));
      else
        load_matrices(words, at<turned>(first, n));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 pair = unpacked_pair<T>(words[i]);
        const int j = 2 * n + i / 2, e = i % 2 * 2;
        to[j][e] = change(pair.x, j, e);
        to[j][e + 1] = change(pair.y, j, e + 1);
      }
    }
  }
};

// Where a thread of a worker reads its bias in a stage, from the first byte of the stage on: computed once.
template <class T, int D, bool turned>
__device__ uint32_t bias_offset(int worker) {
  uint32_t offset = 2 * GroupTile<T, D>::bytes + worker * bias_tile_bytes + BiasTile<T>::template first_at<turned>();
  asm volatile("" : "+r"(offset));
  return offset;
}

// The copier's part for both workers, whose tiles are one beside the other.
template <class T, bool turned>
__device__ void copy_bias(const Problem& p, const BoxSources& sources, uint32_t to, int batch, int head, int query,
                          int key, uint32_t barrier) {
  if (!has_bias_pieces(p)) return;
  const bool boxes = has_bias_boxes(p);
  if (boxes && threadIdx.x != 0) return;
  if (boxes) expect_bytes(barrier, bias_bytes);
#pragma unroll
  for (int w = 0; w < workers; ++w, to += bias_tile_bytes, turned ? key += 64 : query += 64) {
    if (boxes)
      start_box(to, sources.bias, key, query, bias_number(p, batch, head), barrier);
    else
      BiasTile<T>::copy(p, to, batch, head, query, key);
  }
}
// Any other bias, read where it is.
template <class T, bool turned>
__device__ void add_any_bias(const Problem& p, float (&logits)[8][4], const Place& at) {
  const float scale = p.scale * log2e;
  const int64_t first = at.batch * p.bias_step[0] + at.head[0] * p.bias_step[1];
  each_element<turned, 64>(logits, at, [&](float x, int, int query, int key) {
    const int64_t from = first + min(query, p.queries - 1) * p.bias_step[2] + min(key, p.keys - 1) * p.bias_step[3];
    const float bias =
        p.wide_bias ? static_cast<const float*>(p.bias)[from] : static_cast<float>(static_cast<const T*>(p.bias)[from]);
    return x * scale + bias * log2e;
  });
}

// Products that nothing is added to are scaled in the exponent.
template <bool biased>
__device__ float factor_of(const Problem& p) {
  if constexpr (biased) return p.exponent_factor;
  return p.scale > 0 ? p.scale * log2e : 1.0f;
}

// Products become logits, which times `factor_of` are to the base 2; `first` is where the thread reads its bias, if
// that comes in pieces. A bare bias was added before.
template <class T, bool turned, Bias kind>
__device__ void make_group_logits(const Problem& p, float (&logits)[8][4], const Place& at, uint32_t first, bool whole,
                                  uint32_t seen) {
  if constexpr (kind == Bias::any) {
    if (has_bias_pieces(p))
      BiasTile<T>::template load<turned>(logits, first, [&](float bias, int j, int e) {
        return logits[j][e] * p.product_factor + bias * p.bias_factor;
      });
    else
      add_any_bias<T, turned>(p, logits, at);
  } else if (kind == Bias::none && !(p.scale > 0)) {
    scale_all(logits, p.scale * log2e);
  }
  if (!whole) hide<turned>(logits, seen);
}

}  // namespace capibara::cuda::attention
