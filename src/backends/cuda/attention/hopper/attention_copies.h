// The copier warpgroup of kernels whose rows are queries.
#pragma once

#include "backends/cuda/attention/attention_problem.h"
#include "backends/cuda/attention/hopper/attention_extras.h"

// A mask as bits: packed once from its bytes by a separate kernel, and read a word at a time by warpgroup kernels.

namespace capibara::cuda::attention {

// Packs 16 bytes that are 0 or 1 into bits.
inline __device__ uint32_t bits_of(const uint4& bytes) {
  const uint32_t words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
  uint32_t bits = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) bits |= words[i] * 0x10204080u >> 28 << 4 * i;
  return bits;
}

// Words per row of keys.
inline __host__ __device__ int mask_words(const Problem& p) { return (p.keys + 63) / 64; }

inline __device__ const uint64_t* mask_bits_at(const Problem& p, int batch, int head, int query, int key) {
  const int64_t row = batch * p.mask_row[0] + head * p.mask_row[1] + query * p.mask_row[2];
  return p.mask_bits + row * mask_words(p) + key / 64;
}

// The word for a query and the 64 keys starting at `key`, all ones if there is no mask.
inline __device__ uint64_t mask_word(const Problem& p, int batch, int head, int query, int key) {
  if (!p.mask || query >= p.queries || key >= p.keys) return ~uint64_t{0};
  return __ldg(mask_bits_at(p, batch, head, query, key));
}

// Each thread packs the bits of 16 keys.
static __global__ void mask_bits_kernel(const __grid_constant__ Problem p) {
  const int pieces = 4 * mask_words(p);
  const int64_t piece = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (piece >= p.mask_rows * pieces) return;
  const int key = static_cast<int>(piece % pieces) * 16;
  const uint8_t* row = p.mask + piece / pieces * (p.mask_step[3] ? p.keys : 1);
  uint32_t bits = 0;
  if (p.mask_step[3] == 1 && p.keys % 16 == 0) {
    if (key < p.keys) bits = bits_of(*reinterpret_cast<const uint4*>(row + key));
  } else {
    for (int i = 0; i < 16 && key + i < p.keys; ++i) bits |= (row[(key + i) * p.mask_step[3]] != 0) << i;
  }
  reinterpret_cast<uint16_t*>(p.mask_bits)[piece] = static_cast<uint16_t>(bits);
}

inline constexpr int copier_registers = 40, key_copier_registers = 24;
template <bool biased>
inline constexpr int forward_stages = biased ? 3 : 5;
template <bool biased, bool split>
inline constexpr int backward_stages = biased  ? 3
                                       : split ? 5
                                               : 4;
// Bytes of shared memory: tiles of two operands for the block's own rows, and stages.
template <class T, int D, bool biased, bool split>
inline constexpr int backward_group_bytes = group_bytes<T, D, biased, split ? 1 : 2, backward_stages<biased, split>>;

// True if all threads of the copier, not only the copy engine, copy parts of a stage.
template <bool biased>
__device__ bool copied_by_threads(const Problem& p) {
  return has_odd_rows(p) || (biased && has_bias_pieces(p) && !has_bias_boxes(p));
}

// Starts copying tiles of 64 rows, alternating between two operands, by all threads: from row `row` on, of which
// `exist` rows exist.
template <class T, int D>
__device__ void copy_own_pairs(const Problem& p, const void* first, const void* second, int64_t row, int exist,
                               int tiles, uint32_t to) {
  using Tile = GroupTile<T, D>;
  for (int i = 0; i < 64 * tiles; i += 64, to += 2 * Tile::bytes) {
    Tile::template copy<all_threads>(to, static_cast<const T*>(first) + (row + i) * p.size, exist - i, p.size);
    Tile::template copy<all_threads>(to + Tile::bytes, static_cast<const T*>(second) + (row + i) * p.value_size,
                                     exist - i, p.value_size);
  }
  end_copies();
}

// Copies keys and values for the visits, and the other data that workers read with them.
template <class T, int D, bool biased, int Rows, int Count>
__device__ void copy_keys(const Problem& p, const BoxSources& sources, const RowBlock<Rows>& rows, const Visits& visits,
                          const Stages<Count>& stages, TileBits<false>* bits, int count, uint32_t tiles) {
  constexpr int bytes = GroupTile<T, D>::bytes;
  const int head = rows.batch * p.groups + rows.group;
  const int64_t row = static_cast<int64_t>(head) * p.keys;
  const bool odd = has_odd_rows(p);
  const int own = static_cast<int>(threadIdx.x) % Rows, query = rows.first + own;
  auto mask_of = [&](int i) { return i < count ? mask_word(p, rows.batch, rows.head, query, visits.tile(i) * 64) : 0; };
  auto copy_odd = [&](uint32_t to, int first) {
    const T *keys = static_cast<const T*>(p.key) + (row + first) * p.size,
            *values = static_cast<const T*>(p.value) + (row + first) * p.value_size;
    GroupTile<T, D>::copy(to, keys, p.keys - first, p.size);
    GroupTile<T, D>::copy(to + bytes, values, p.keys - first, p.value_size);
  };
  auto copy = [&](int stage, int i, uint32_t barrier) {
    const int first = visits.tile(i) * 64;
    const uint32_t to = tiles + stage * stage_bytes_of<T, D, biased>;
    if (odd) {
      copy_odd(to, first);
    } else if (threadIdx.x == 0) {
      expect_bytes(barrier, 2 * bytes);
      start_boxes<D, 64>(to, sources.key, first, head, barrier);
      start_boxes<D, 64>(to + bytes, sources.value, first, head, barrier);
    }
    if (biased) copy_bias<T, false>(p, sources, to + 2 * bytes, rows.batch, rows.head, rows.first, first, barrier);
  };
  uint64_t next_mask = mask_of(0);  // loaded while the previous visit is copied
  auto make = [&](int stage, int i) {
    const uint64_t mask = next_mask;
    next_mask = mask_of(i + 1);
    bits[stage].write_seen(p, visits.level(i, own / 64), rows.batch, rows.head, query, visits.tile(i) * 64, mask);
  };
  stages.copy_all(count, copied_by_threads<biased>(p), odd, copy, make);
}

}  // namespace capibara::cuda::attention
