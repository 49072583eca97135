// Attention forwards by warpgroups: the product with the values of one tile runs while the softmax of the next is
// computed.
#pragma once

#include "backends/cuda/attention_copies.h"
#include "backends/cuda/attention_extras.h"

namespace capibara::cuda::attention {

// What a worker knows: its rows, and what it has summed up.
template <class T, int D, bool biased>
struct ForwardWorker {
  const Problem& p;
  Place at;
  int first_row;  // of the warp
  Softmax softmax = {};
  float sums[D / 8][4] = {};
  uint32_t shares[4][4];

  __device__ ForwardWorker(const Problem& problem, const RowBlock<group_rows>& rows, int worker)
      : p(problem), at(rows.place(problem, 64 * worker)) {
    first_row = rows.first + 64 * worker + threadIdx.x / 32 % 4 * 16;
  }

  // Logits of a tile become shares; sums are scaled once `ready` says that their product has ended.
  template <class Ready>
  __device__ void share_out(float (&logits)[8][4], uint32_t extra, int worker, bool whole, uint32_t seen, uint32_t kept,
                            Ready&& ready) {
    float decay[2];
    make_group_logits<T, false, biased>(p, logits, at, extra, worker, whole, seen);
    softmax.take<64>(logits, decay, factor_of<biased>(p));
    compute_now(logits);
    ready();
    if (__any_sync(0xffffffffu, decay[0] != 1.0f || decay[1] != 1.0f)) {
#pragma unroll
      for (int j = 0; j < D / 8; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) sums[j][e] *= decay[e / 2];
      }
    }
    narrow<T>(shares, logits);
    if (p.threshold > 0) drop_pairs<false>(shares, kept);
  }

  __device__ void store(const RowBlock<group_rows>& rows) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row + threadIdx.x % 32 / 4 + 8 * half;
      const float total = row_sum(softmax.sum[half]);
      if (row >= rows.rows) continue;
      const int64_t to = rows.begin + row;
      const float factor = total == 0 ? 0.0f : (p.threshold > 0 ? p.keep_scale : 1.0f) / total;
      if (threadIdx.x % 4 == 0)
        p.out_lse[to] = total == 0 ? -infinity : softmax.maximum[half] * factor_of<biased>(p) * ln2 + logf(total);
      store_row<T, D>(static_cast<T*>(p.out) + to * p.value_size, sums, half, p.value_size, factor);
    }
  }
};

template <class T, int D, bool biased, int Count>
__device__ void work_forward(const Problem& p, const RowBlock<group_rows>& rows, const Visits& visits,
                             const Stages<Count>& stages, const TileBits<false>* bits, int count, int worker,
                             uint32_t own, uint32_t tiles) {
  constexpr int bytes = GroupTile<T, D>::bytes;
  ForwardWorker<T, D, biased> work(p, rows, worker);
  const int column = work.at.column;
  uint32_t queries[D / 16][4], seen = 0, kept = 0;
  bool whole = false;
  load_rows<T, D>(queries, own);
  auto stage = [&](int i) { return tiles + i % Count * stage_bytes_of<T, D, biased>; };
  auto extra = [&](int i) { return stage(i) + 2 * bytes; };
  auto wants = [&](int i) {
    if (i == count || visits.level(i, worker) == none) return false;
    stages.await_full(i);
    return bits[i % Count].level(worker) != none;
  };
  auto begin = [&](int i) {
    work.at.column = column + visits.tile(i) * 64;
    whole = bits[i % Count].level(worker) == all;
    if (!whole) seen = bits[i % Count].seen_word(worker);
    if (p.threshold > 0)
      kept = KeptBits{work.at.dropout[0], p.threshold << 16}.straight(work.at.row[0], visits.tile(i) * 64);
  };
  // Runs of neighbouring visits: what is held back by the last product of one is released before others are skipped.
  for (int i = next_visit(stages, 0, count, wants); i < count; i = next_visit(stages, i + 1, count, wants)) {
    float logits[8][4];
    begin_products();
    start_rows<T, D>(logits, queries, stage(i));
    end_products();
    begin(i);
    await_products<0>();
    work.share_out(logits, extra(i), worker, whole, seen, kept, [] {});
    for (; wants(i + 1); ++i) {
      begin_products();
      start_rows<T, D>(logits, queries, stage(i + 1));
      end_products();
      start_across<T, D>(work.sums, work.shares, stage(i) + bytes);
      end_products();
      begin(i + 1);
      await_products<1>();
      work.share_out(logits, extra(i + 1), worker, whole, seen, kept, [&] {
        await_products<0>();
        stages.release(i);
      });
    }
    begin_products();
    start_across<T, D>(work.sums, work.shares, stage(i) + bytes);
    end_products();
    await_products<0>();
    stages.release(i);
  }
  work.store(rows);
}

template <class T, int D, bool biased>
__global__ void __launch_bounds__(all_threads, 1) group_forward_kernel(const __grid_constant__ Problem p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int bytes = GroupTile<T, D>::bytes, count_of_stages = forward_stages<biased>;
  extern __shared__ unsigned char memory[];
  __shared__ Visits visits;
  __shared__ Stages<count_of_stages> stages;
  __shared__ TileBits<false> bits[count_of_stages];
  const uint32_t queries = aligned_memory(memory), tiles = queries + workers * bytes;
  const RowBlock<group_rows> rows(p, blockIdx.x);
  for (int w = 0; w < workers; ++w) {
    const int first = rows.first + 64 * w;
    GroupTile<T, D>::template copy<all_threads>(
        queries + w * bytes, static_cast<const T*>(p.query) + (rows.begin + first) * p.size, rows.rows - first, p.size);
  }
  end_copies();
  stages.set_up();
  const int count = visits.fill((p.keys + 63) / 64, [&](int tile, int worker) {
    const int query = rows.first + 64 * worker;
    return seen_in(p, {query, query + 64, tile * 64, tile * 64 + 64}, rows.batch, rows.head);
  });
  await_copies<0>();
  publish_writes();
  __syncthreads();
  if (threadIdx.x < group_threads) {
    give_registers<copier_registers>();
    copy_keys<T, D, biased>(p, rows, visits, stages, bits, count, tiles);
  } else {
    take_registers<worker_registers>();
    const int worker = threadIdx.x / group_threads - 1;
    work_forward<T, D, biased>(p, rows, visits, stages, bits, count, worker, queries + worker * bytes, tiles);
  }
#endif
}

}  // namespace capibara::cuda::attention
