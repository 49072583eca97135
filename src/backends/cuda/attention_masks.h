// Masks of the tiles of warpgroups: they come through shared memory and are read 16 bytes at a time, as bits.
#pragma once

#include "backends/cuda/attention_groups.h"
#include "backends/cuda/attention_seen.h"

namespace capibara::cuda::attention {

// Bits of a thread's rows. Straight: of row half h, columns 0 to 31 and 32 to 63 are words 2 h and 2 h + 1. Turned:
// word j has the 16 keys of the warp for two neighbouring queries.
template <bool turned>
struct MaskBits {
  static constexpr int pitch = turned ? 64 * workers : 64, rows = mask_bytes / pitch;
  uint32_t words[turned ? 8 : 4];

  static __device__ bool takes(const Problem& p) { return p.mask && p.mask_step[3] == 1 && p.keys % 16 == 0; }

  // Pieces of rows that a warp reads at once are in different banks.
  static __device__ int swizzle(int row) { return turned ? row >> 1 & 7 : row >> 1 & 3; }

  // The copier's part: `rows` queries by `pitch` keys.
  static __device__ void copy(const Problem& p, uint32_t to, int batch, int head, int query, int key) {
    constexpr int pieces = pitch / 16;
    const uint8_t* mask = p.mask + batch * p.mask_step[0] + head * p.mask_step[1] + key;
    for (int i = threadIdx.x; i < rows * pieces; i += 128) {
      const int row = i / pieces, piece = i % pieces;
      const bool exists = query + row < p.queries && key + piece * 16 < p.keys;
      copy_piece(to + row * pitch + (piece ^ swizzle(row)) * 16,
                 exists ? mask + (query + row) * p.mask_step[2] + piece * 16 : p.mask, exists);
    }
  }
  // From the mask of a stage: the part of a worker.
  __device__ void load(uint32_t from, int worker) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    auto chunk = [&](int row, int column) {
      uint4 bytes;
      asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(bytes.x), "=r"(bytes.y), "=r"(bytes.z), "=r"(bytes.w)
                   : "r"(from + row * pitch + (column / 16 ^ swizzle(row)) * 16));
      return bits_of(bytes);
    };
    if constexpr (turned) {
      const int column = 64 * worker + 16 * warp;
      const uint32_t own = chunk(2 * lane, column) | chunk(2 * lane + 1, column) << 16;
#pragma unroll
      for (int j = 0; j < 8; ++j) words[j] = __shfl_sync(0xffffffffu, own, 4 * j + lane % 4);
    } else {
      const int row = 64 * worker + 16 * warp + lane / 2, column = lane % 2 * 32;
      const uint32_t own = chunk(row, column) | chunk(row, column + 16) << 16;
#pragma unroll
      for (int i = 0; i < 4; ++i) words[i] = __shfl_sync(0xffffffffu, own, lane / 4 * 2 + i / 2 * 16 + i % 2);
    }
  }
  __device__ void hide(float (&logits)[8][4]) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const uint32_t word = turned ? words[j] : words[e / 2 * 2 + j / 4];
        const int bit = turned ? e % 2 * 16 + e / 2 * 8 + lane / 4 : j % 4 * 8 + e % 2 + lane % 4 * 2;
        if (!(word >> bit & 1)) logits[j][e] = -__builtin_huge_valf();
      }
    }
  }
};

}  // namespace capibara::cuda::attention
