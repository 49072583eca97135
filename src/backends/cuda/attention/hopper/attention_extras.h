// The bias of warpgroup tiles, loaded through shared memory if its rows are 16-byte pieces, and the conversion of
// products to logits.
#pragma once

#include <cstddef>

#include "backends/cuda/attention/attention_bias_grid.h"
#include "backends/cuda/attention/attention_dropout.h"
#include "backends/cuda/attention/attention_problem.h"
#include "backends/cuda/attention/hopper/attention_groups.h"

// The keys visible to a query among 64 neighbours, as bits: by position, segment and pattern.

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

// `level` is the visibility of an enclosing rectangle: none, all, or some.
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

// Bits of warpgroup tiles: which elements are visible and which dropout keeps. The copier computes them for both
// workers while they multiply; a worker's thread reads each kind for its 32 elements as one word.

// The visibility bit of element e of eight columns j in a thread's word.
template <bool turned>
__host__ __device__ constexpr int seen_bit(int j, int e) {
  return turned ? j + e / 2 * 8 + e % 2 * 16 : j % 4 * 8 + j / 4 * 2 + e / 2 * 4 + e % 2;
}

// `keeps`: the copier also computes the dropout bits.
template <bool turned, bool keeps = false>
struct TileBits {
  // Straight: a row of 64 keys per query of both workers. Turned: for each warp of both workers and each pair of
  // queries of a thread, the warp's 16 keys for the first and the second query.
  alignas(16) uint64_t seen[workers * 64];
  uint32_t kept[keeps ? workers * group_threads : 1];
  alignas(8) Level levels[group_threads / 32];

  // A copier thread computes the bits of one query and 64 keys for worker threadIdx.x / 64.

  // `mask`: its bits, all ones if there is none.
  __device__ void write_seen(const Problem& p, Level level, int batch, int head, int query, int key, uint64_t mask) {
    if (level == some || (level == all && p.mask)) {
      const uint64_t bits = mask & seen_bits(p, level, batch, head, query, key);
      write(bits);
      const bool every = __all_sync(0xffffffffu, bits == ~uint64_t{0}), any = __any_sync(0xffffffffu, bits != 0);
      level = every ? all : any ? some : none;
    }
    if (threadIdx.x % 32 == 0) levels[threadIdx.x / 32] = level;
  }
  // For the 128 queries starting at `query` and 64 keys.
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

// The bits as read by a worker's thread, for tile `number` of an array.
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

// Sets hidden logits of the eight columns starting at `first` to -inf.
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

// Sets dropped elements of narrow pairs starting at `first` to 0: the sign bit of each of two bytes is replicated
// over half a word. One shift serves two pairs.
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
  if constexpr (is_bfloat16<T>) return {__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)};
  T pair[2];
  *reinterpret_cast<uint32_t*>(pair) = word;
  return {static_cast<float>(pair[0]), static_cast<float>(pair[1])};
}

// A tile of 64 queries by 64 keys in shared memory; rows are queries.
template <class T>
struct BiasTile {
  using Layout = TileOf<T, 64, 64>;

  // Called by the copier. Elements that do not exist become 0.
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

  // The part of a tile that a thread reads: 16 columns of its warp's rows; if turned, its warp's columns of 16 rows.
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
  // Loads change(bias, j, e) for the thread's elements, of which the first is read at `first`.
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

// The offset in bytes, from the start of a stage, at which a worker's thread reads its bias: computed once.
template <class T, int D, bool turned>
__device__ uint32_t bias_offset(int worker) {
  uint32_t offset = 2 * GroupTile<T, D>::bytes + worker * bias_tile_bytes + BiasTile<T>::template first_at<turned>();
  asm volatile("" : "+r"(offset));
  return offset;
}

// Called by the copier for both workers, whose tiles are adjacent.
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
// Any other bias, read from global memory.
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

// Products without a bias are scaled in the exponent.
template <bool biased>
__device__ float factor_of(const Problem& p) {
  if constexpr (biased) return p.exponent_factor;
  return p.scale > 0 ? p.scale * log2e : 1.0f;
}

// Converts products to logits, which times `factor_of` are base-2 exponents; the thread reads its bias at `first`, if
// it is in pieces. A bare bias has already been added.
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
