// The gradients of a broadcast bias by warpgroups: a block has 128 queries by 128 keys, of which each worker
// sums 64 rows in registers over the axes along which the bias is broadcast.
#pragma once

#include "backends/cuda/attention/attention_gradients.h"
#include "backends/cuda/attention/hopper/attention_bias_tiles.h"
#include "backends/cuda/attention/hopper/attention_copies.h"

// The copier warpgroup for the gradients of a broadcast bias: copies the tiles of all iterations into slots.

namespace capibara::cuda::attention {

// Tiles of an iteration, in order: queries and cotangents of both workers, then keys and values of each half.
inline constexpr int bias_parts = 8, bias_slots = 12, bias_columns = 128;
template <class T, int D>
inline constexpr int group_bias_bytes = bias_slots* GroupTile<T, D>::bytes + bias_bytes + 1024;

// Bits of four halves of keys: by the time they are rewritten, all workers are two iterations ahead.
using BiasTileBits = TileBits<false, true>;
using BiasBits = BiasTileBits[4];

// The number of iterations for a tile.
inline __device__ int bias_count(const Problem& p, const BiasGrid& grid, int block) {
  const BiasPlace at = grid.place(block, 0);
  const Rectangle tile{at.query, min(at.query + group_rows, p.queries), at.key, min(at.key + bias_columns, p.keys)};
  const bool same = p.bias_step[2] && p.bias_step[3] && p.by_position();
  return same && seen_by_position(p, tile) == none ? 0 : grid.iterations();
}

// Stores zeros for a tile with no visible element, by the threads that copy.
template <class T>
__device__ void store_bias_zeros(const Problem& p, const BiasPlace& at) {
  const BiasGradients<T> to(p, at.batch, at.head);
  for (int i = threadIdx.x; i < group_rows * bias_columns / 8; i += group_threads)
    to.store_piece(p, at.query + i / (bias_columns / 8), at.key + i % (bias_columns / 8) * 8, uint4{});
}

// Of the tile with number `block`, after `begin` iterations of others.
template <class T, int D>
__device__ void copy_for_bias(const Problem& p, const BoxSources& sources, const BiasGrid& grid,
                              const Stages<bias_slots>& stages, BiasBits& bits, int block, int begin, int count,
                              uint32_t slots) {
  using Tile = GroupTile<T, D>;
  BiasWalk walk(p, grid, block);
  const BiasPlace& at = walk.at;
  int group = 0;  // of keys
  const bool odd = has_odd_rows(p);
  auto copy = [&](int slot, int i, uint32_t barrier) {
    if (i > begin * bias_parts && i % bias_parts == 0) walk.advance();
    if (i % bias_parts == 0) group = at.head / p.per_group();
    const int part = i % bias_parts, query = at.query + part % 2 * 64, key = at.key + (part - 4) / 2 * 64;
    const int64_t row = (static_cast<int64_t>(at.batch) * p.heads + at.head) * p.queries + query;
    const int64_t key_row = (static_cast<int64_t>(at.batch) * p.groups + group) * p.keys + key;
    const uint32_t to = slots + slot * Tile::bytes;
    const bool of_queries = part < 4, of_values = of_queries ? part >= 2 : part % 2;
    if (!odd) {
      if (threadIdx.x != 0) return;
      const int number = of_queries ? at.batch * p.heads + at.head : at.batch * p.groups + group;
      const CUtensorMap& source =
          of_queries ? (of_values ? sources.cotangent : sources.query) : (of_values ? sources.value : sources.key);
      expect_bytes(barrier, Tile::bytes);
      return start_boxes<D, 64>(to, source, of_queries ? query : key, number, barrier);
    }
    const int width = of_values ? p.value_size : p.size, exist = of_queries ? p.queries - query : p.keys - key;
    const void* from = of_queries ? (of_values ? p.cotangent : p.query) : (of_values ? p.value : p.key);
    Tile::copy(to, static_cast<const T*>(from) + (of_queries ? row : key_row) * width, exist, width);
  };
  auto make = [&](int, int i) {
    const int part = i % bias_parts - 4;
    if (part < 0 || part % 2 != 0) return;
    BiasTileBits& to = bits[(i / bias_parts * 2 + part / 2) % 4];
    const int query = at.query + threadIdx.x / 64 * 64, key = at.key + part / 2 * 64;
    const Level level = seen_in(p, {query, query + 64, key, key + 64}, at.batch, at.head);
    const int own = at.query + static_cast<int>(threadIdx.x);
    to.write_seen(p, level, at.batch, at.head, own, key, mask_word(p, at.batch, at.head, own, key));
    if (p.threshold > 0) to.write_kept(p, dropout_key(p, at.batch, at.head), at.query, key);
  };
  stages.copy_all((begin + count) * bias_parts, odd, odd, copy, make, begin * bias_parts);
}

// A bias in 16-byte pieces, read in pairs by the kernel of its gradients.

// The bias of a thread's elements in a 64 x 64 tile, in pairs.
template <class T>
struct BiasPairs {
  uint32_t words[8][2];

  __device__ void load(const Problem& p, const BiasPlace& at, int row, int column) {
    const T* from = static_cast<const T*>(p.bias) + at.batch * p.bias_step[0] + at.head * p.bias_step[1];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const T* own = from + min(row + 8 * half, p.queries - 1) * p.bias_step[2];
#pragma unroll
      for (int j = 0; j < 8; ++j)
        words[j][half] = __ldg(reinterpret_cast<const uint32_t*>(own + min(column + 8 * j, p.keys - 2)));
    }
  }
  // Converts products to base-2 logits.
  __device__ void add(float (&logits)[8][4], float scale) const {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float2 pair = unpacked_pair<T>(words[j][half]);
        logits[j][2 * half] = logits[j][2 * half] * scale + pair.x * log2e;
        logits[j][2 * half + 1] = logits[j][2 * half + 1] * scale + pair.y * log2e;
      }
    }
  }
};

// Of the tile with number `block`, after `begin` iterations of others.
template <class T, int D>
__device__ void work_on_bias(const Problem& p, const BiasGrid& grid, const Stages<bias_slots>& stages,
                             const BitsView<false, true>& bits, int block, int begin, int count, int worker,
                             uint32_t slots, float* sums) {
  const int lane = threadIdx.x % 32, own = 64 * worker + threadIdx.x / 32 % 4 * 16 + lane / 4;
  BiasWalk walk(p, grid, block);
  const BiasPlace first = walk.at;
  auto address = [&](int i) { return slots + i % bias_slots * GroupTile<T, D>::bytes; };
  const bool in_pieces = has_bias_pieces(p);
  float total[2][8][4] = {}, shares[8][4], gradients[8][4];
  BiasPairs<T> bias[2] = {};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (in_pieces) bias[half].load(p, first, first.query + own, first.key + 64 * half + 2 * (lane % 4));
  }
  for (int n = begin; n < begin + count; ++n) {
    const BiasPlace at = walk.at;
    walk.advance();
    const int64_t row = (static_cast<int64_t>(at.batch) * p.heads + at.head) * p.queries + at.query + own;
    float base[2], delta[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const bool exists = at.query + own + 8 * half < p.queries;
      base[half] = exists ? base_of(p.lse[row + 8 * half]) : infinity;
      delta[half] = exists ? p.delta[row + 8 * half] : 0.0f;
    }
    const int slot = n * bias_parts;
    stages.await_full(slot + worker);
    stages.await_full(slot + 2 + worker);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int keys = slot + 4 + 2 * half;
      const int number = (2 * n + half) % 4;
      stages.await_full(keys);
      stages.await_full(keys + 1);
      const Level level = bits.level(number, worker);
      if (level != none) {
        begin_products();
        start_rows<T, D>(shares, address(slot + worker), address(keys));
        end_products();
        start_rows<T, D>(gradients, address(slot + 2 + worker), address(keys + 1));
        end_products();
        const uint32_t seen = level == all ? 0 : bits.seen_word(number, worker);
        const uint32_t kept = p.threshold > 0 ? bits.kept_word(number, worker) : ~0u;
        await_products<1>();
        const int first_row = at.query + own, column = at.key + 64 * half + 2 * (lane % 4);
        if (in_pieces)
          bias[half].add(shares, p.scale * log2e);
        else
          add_any_bias<T, false>(p, shares, {at.batch, {at.head, at.head}, {first_row, first_row + 8}, column, {}});
        if (level != all) hide<false>(shares, seen);
        make_shares<64>(shares, [&](int, int e) { return base[e / 2]; });
        compute_now(shares);
        await_products<0>();
        take_gradients<64>(
            p, shares, gradients, [&](int j, int e) { return kept >> bit_of<false>(j, e) & 1; },
            [&](int, int e) { return delta[e / 2]; });
#pragma unroll
        for (int j = 0; j < 8; ++j) {
#pragma unroll
          for (int e = 0; e < 4; ++e) total[half][j][e] += gradients[j][e];
        }
      }
      stages.release(keys);
      stages.release(keys + 1);
    }
    for (int part = 0; part < 4; ++part) stages.release(slot + part);
  }
  if (has_bias_boxes(p)) {
    const BiasGradients<T> to(p, first.batch, first.head);
    const uint32_t behind = slots + bias_slots * GroupTile<T, D>::bytes;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint32_t narrowed[4][4];
      narrow<T>(narrowed, total[half]);
      to.store(p, narrowed, behind + worker * bias_tile_bytes, first.query + 64 * worker, first.key + 64 * half);
    }
    return;
  }
  constexpr int threads = workers * group_threads;
  asm volatile("bar.sync 1, %0;" ::"n"(threads) : "memory");  // both have read all slots, which the sums overwrite
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int column = 64 * half + 8 * j + 2 * (lane % 4) + e % 2;
        sums[(own + 8 * (e / 2)) * (bias_columns + 1) + column] = total[half][j][e];
      }
    }
  }
  asm volatile("bar.sync 1, %0;" ::"n"(threads) : "memory");
  const int64_t to = first.batch * p.bias_step[0] + first.head * p.bias_step[1];
  store_bias<T, group_rows, bias_columns>(p, sums, to, first.query, first.key, threadIdx.x - group_threads, threads);
}

template <class T, int D>
__global__ void __launch_bounds__(all_threads, 1)
    group_bias_kernel(const __grid_constant__ Problem p, const __grid_constant__ BoxSources sources) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ unsigned char memory[];
  __shared__ typename Stages<bias_slots>::Barriers barriers;
  const Stages<bias_slots> stages(barriers);
  __shared__ BiasBits bits;
  const BiasGrid grid(p, group_rows, bias_columns);
  const int run = (grid.blocks() + static_cast<int>(gridDim.x) - 1) / static_cast<int>(gridDim.x);
  const int first = static_cast<int>(blockIdx.x) * run, last = min(first + run, grid.blocks());
  const uint32_t slots = aligned_memory(memory);
  stages.set_up(has_odd_rows(p));
  __syncthreads();
  if (threadIdx.x < group_threads) {
    keep_registers<copier_registers>();
    for (int block = first, begin = 0, count = 0; block < last; ++block, begin += count) {
      count = bias_count(p, grid, block);
      if (count == 0 && has_bias_boxes(p))
        store_bias_zeros<T>(p, grid.place(block, 0));
      else
        copy_for_bias<T, D>(p, sources, grid, stages, bits, block, begin, count, slots);
    }
  } else {
    take_registers<copier_registers>();
    const int worker = threadIdx.x / group_threads - 1;
    const BitsView<false, true> view(bits);
    for (int block = first, begin = 0, count = 0; block < last; ++block, begin += count) {
      count = bias_count(p, grid, block);
      if (count == 0 && has_bias_boxes(p)) continue;
      work_on_bias<T, D>(p, grid, stages, view, block, begin, count, worker, slots, aligned_floats(memory));
    }
  }
#endif
}

}  // namespace capibara::cuda::attention
