// dQ by warpgroups from the gradients of the logits stored by the pass over keys: one matmul per
// tile. For a bias shared by both entries of a batch of two, also their sums.
#pragma once

#include "backends/cuda/attention/hopper/attention_bias_tiles.h"
#include "backends/cuda/attention/hopper/attention_copies.h"

namespace capibara::cuda::attention {

// A stage holds the keys of each entry, then the gradients of each entry's workers.
template <class T, int D, int Entries>
inline constexpr int sum_stage_bytes = Entries*(GroupTile<T, D>::bytes + bias_bytes);
template <int Entries>
inline constexpr int sum_stages = Entries == 2 ? 3 : 6;
template <class T, int D, int Entries>
inline constexpr int group_sums_bytes = sum_stages<Entries>* sum_stage_bytes<T, D, Entries> + 1024;

template <class T, int D, int Entries>
__device__ uint32_t gradients_in(uint32_t stage, int entry, int worker) {
  return stage + Entries * GroupTile<T, D>::bytes + (entry * workers + worker) * bias_tile_bytes;
}

// True if a tile of the bias gets the sum of two entries, which see the same tiles. It replaces the first entry's
// gradients, which have no other reader.
inline __host__ __device__ bool adds_two_entries(const Problem& p) {
  return shares_gradients(p) && p.batch == 2 && !p.query_segments && !(p.blocks && p.block_step[0]);
}

template <class T, int D, int Entries, int Count>
__device__ void copy_gradients(const Problem& p, const BoxSources& sources, const RowBlock<group_rows>& rows,
                               const Visits& visits, const Stages<Count>& stages, int count, uint32_t tiles) {
  auto copy = [&](int stage, int i, uint32_t barrier) {
    if (threadIdx.x != 0) return;
    const int key = visits.tile(i) * 64;
    const uint32_t to = tiles + stage * sum_stage_bytes<T, D, Entries>;
    expect_bytes(barrier, sum_stage_bytes<T, D, Entries>);
#pragma unroll
    for (int entry = 0; entry < Entries; ++entry) {
      const int batch = rows.batch + entry;
      const GradientBoxes gradients(p, sources, batch, rows.head);
      start_boxes<D, 64>(to + entry * GroupTile<T, D>::bytes, sources.key, key, batch * p.groups + rows.group, barrier);
      for (int w = 0; w < workers; ++w) {
        const uint32_t tile = gradients_in<T, D, Entries>(to, entry, w);
        start_box(tile, gradients.boxes, key, rows.first + 64 * w, gradients.number, barrier);
      }
    }
  };
  stages.copy_all(count, false, false, copy, [](int, int) {});
}

// Stores the warp's rows of a tile: sums of pairs of two entries.
template <class T>
__device__ void store_sums(uint32_t tile, const uint32_t (&one)[4][4], const uint32_t (&other)[4][4]) {
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane % 16;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    uint32_t sums[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 x = unpacked_pair<T>(one[k][i]), y = unpacked_pair<T>(other[k][i]);
      sums[i] = packed_pair(x.x + y.x, x.y + y.y, T());
    }
    store_matrices(tile + TileOf<T, 64, 64>::at(row, 2 * k + lane / 16), sums);
  }
}

template <class T, int D, int Entries, int Count>
__device__ void work_on_sums(const Problem& p, const BoxSources& sources, const RowBlock<group_rows>& rows,
                             const Visits& visits, const Stages<Count>& stages, int count, int worker, uint32_t tiles) {
  float sums[Entries][D / 8][4] = {};
  uint32_t gradients[Entries][4][4];
  for (int i = 0; i < count; ++i) {
    const uint32_t from = tiles + i % Count * sum_stage_bytes<T, D, Entries>;
    stages.await_full(i);
    if (visits.level(i, worker) != none) {
      const uint32_t tile = gradients_in<T, D, Entries>(from, 0, worker);
#pragma unroll
      for (int entry = 0; entry < Entries; ++entry)
        load_rows<T, 64>(gradients[entry], gradients_in<T, D, Entries>(from, entry, worker));
      if constexpr (Entries == 2) store_sums<T>(tile, gradients[0], gradients[1]);
      begin_products();
#pragma unroll
      for (int entry = 0; entry < Entries; ++entry)
        start_across<T, D>(sums[entry], gradients[entry], from + entry * GroupTile<T, D>::bytes);
      end_products();
      if constexpr (Entries == 2) {
        if (may_send_tile(worker))
          store_box(sources.bias_gradients, tile, visits.tile(i) * 64, rows.first + 64 * worker,
                    bias_number(p, 0, rows.head));
      }
      await_products<0>();
      if (Entries == 2 && sends_tiles()) await_stores();
    }
    stages.release(i);
  }
  const int first_row = rows.first + 64 * worker + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
#pragma unroll
  for (int entry = 0; entry < Entries; ++entry) {
    T* to = static_cast<T*>(p.dquery) + (rows.begin + static_cast<int64_t>(entry) * p.heads * p.queries) * p.size;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row + 8 * half;
      if (row < p.queries) store_row<T, D>(to + static_cast<int64_t>(row) * p.size, sums[entry], half, p.size, p.scale);
    }
  }
}

template <class T, int D, int Entries>
__global__ void __launch_bounds__(all_threads, 1)
    group_sums_kernel(const __grid_constant__ Problem p, const __grid_constant__ BoxSources sources) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int count_of_stages = sum_stages<Entries>;
  extern __shared__ unsigned char memory[];
  __shared__ Visits visits;
  __shared__ typename Stages<count_of_stages>::Barriers barriers;
  const Stages<count_of_stages> stages(barriers);
  const uint32_t tiles = aligned_memory(memory);
  const int per_group = p.per_group();
  const TileOfPart at = tile_of_part(blockIdx.x, (p.queries + group_rows - 1) / group_rows, Entries == 2 ? 1 : p.batch,
                                     p.heads, p.part_groups * per_group);
  const RowBlock<group_rows> rows(p, at.tile, at.batch, p.first_group * per_group + at.head);
  stages.set_up(false);
  const int count = visits.fill_for(p, rows);
  __syncthreads();
  if (threadIdx.x < group_threads) {
    keep_registers<copier_registers>();
    copy_gradients<T, D, Entries>(p, sources, rows, visits, stages, count, tiles);
    if (Entries == 2 || p.gradients == p.dbias)
      BiasGradients<T>(p, rows.batch, rows.head).store_zeros(p, visits, count, rows.first);
  } else {
    take_registers<copier_registers>();
    const int worker = threadIdx.x / group_threads - 1;
    work_on_sums<T, D, Entries>(p, sources, rows, visits, stages, count, worker, tiles);
  }
#endif
}

}  // namespace capibara::cuda::attention
