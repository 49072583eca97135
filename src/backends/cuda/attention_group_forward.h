// Attention forwards by warpgroups: the product with the values of one tile runs while the softmax of the next is
// computed. Of a bias, and of patterns of blocks, whose visits the workers share.
#pragma once

#include "backends/cuda/attention_copies.h"
#include "backends/cuda/attention_extras.h"

namespace capibara::cuda::attention {

// What a worker knows: its rows, and what it has accumulated. It takes Keys keys at a time.
template <class T, int D, bool biased, int Keys = 64>
struct ForwardWorker {
  static constexpr int parts = Keys / 64;
  const Problem& p;
  Place at;
  int first_row;  // of the warp
  Softmax softmax = {};
  float sums[D / 8][4] = {};
  uint32_t shares[Keys / 16][4];

  template <int Rows>
  __device__ ForwardWorker(const Problem& problem, const RowBlock<Rows>& rows, int worker)
      : p(problem), at(rows.place(problem, 64 * worker % Rows)) {
    first_row = rows.first + 64 * worker % Rows + threadIdx.x / 32 % 4 * 16;
  }

  __device__ uint32_t kept_of(int tile) const { return KeptBits(p, at.dropout[0]).straight(at.row[0], tile * 64); }

  // Logits become shares; sums are scaled once `ready` says that their product has ended.
  template <class Ready>
  __device__ void share_out(float (&logits)[Keys / 8][4], const uint32_t (&kept)[parts], Ready&& ready) {
    float decay[2];
    softmax.take<Keys>(logits, decay, factor_of<biased>(p));
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
    if (p.threshold == 0) return;
#pragma unroll
    for (int part = 0; part < parts; ++part) drop_pairs<false>(shares, kept[part], 4 * part);
  }

  // Both workers have the same rows: the second leaves what it has accumulated to the first.
  __device__ void leave_all(float* shared) const {
    const float numbers[1][4] = {{softmax.maximum[0], softmax.maximum[1], softmax.sum[0], softmax.sum[1]}};
    leave(shared, sums);
    leave(shared + D / 2 * group_threads, numbers);
  }
  __device__ void take_left(const float* shared) {
    const float factor = factor_of<biased>(p);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float own = softmax.maximum[half], other = left_value(shared, D / 2 + half), greatest = fmaxf(own, other);
      const float base = greatest == -infinity ? 0.0f : greatest * factor;
      const float decay = power_of_two(own * factor - base), other_decay = power_of_two(other * factor - base);
      softmax.maximum[half] = greatest;
      softmax.sum[half] = softmax.sum[half] * decay + left_value(shared, D / 2 + 2 + half) * other_decay;
#pragma unroll
      for (int i = 0; i < D / 8; ++i) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e)
          sums[i][e] = sums[i][e] * decay + left_value(shared, 4 * i + e) * other_decay;
      }
    }
  }

  template <int Rows>
  __device__ void store(const RowBlock<Rows>& rows) const {
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
__device__ void work_forward(const Problem& p, const RowBlock<rows_of<!biased>>& rows,
                             const WorkerStages<!biased, Count>& stages, const TileBits<false>* bits, uint32_t own,
                             uint32_t tiles, float* shared) {
  constexpr int bytes = GroupTile<T, D>::bytes;
  const int worker = stages.worker, count = stages.count();
  ForwardWorker<T, D, biased> work(p, rows, worker);
  const int column = work.at.column;
  uint32_t queries[D / 16][4], seen = 0, kept[1] = {};
  bool whole = false;
  load_rows<T, D>(queries, own);
  auto stage = [&](int i) { return tiles + stages.slot(i) * stage_bytes_of<T, D, biased>; };
  auto wants = [&](int i) {
    if (i == count || stages.level(i) == none) return false;
    stages.await_full(i);
    return bits[stages.slot(i)].level(worker) != none;
  };
  auto begin = [&](int i) {
    work.at.column = column + stages.tile(i) * 64;
    whole = bits[stages.slot(i)].level(worker) == all;
    if (!whole) seen = bits[stages.slot(i)].seen_word(worker);
    if (p.threshold > 0) kept[0] = work.kept_of(stages.tile(i));
  };
  auto share_out = [&](float(&logits)[8][4], int i, auto&& ready) {
    make_group_logits<T, false, biased>(p, logits, work.at, stage(i) + 2 * bytes, worker, whole, seen);
    work.share_out(logits, kept, ready);
  };
  // Runs of neighbouring visits: what is held back by the last product of one is released before others are skipped.
  for (int i = next_visit(stages, 0, count, wants); i < count; i = next_visit(stages, i + 1, count, wants)) {
    float logits[8][4];
    begin_products();
    start_rows<T, D>(logits, queries, stage(i));
    end_products();
    begin(i);
    await_products<0>();
    share_out(logits, i, [] {});
    for (; wants(i + 1); ++i) {
      begin_products();
      start_rows<T, D>(logits, queries, stage(i + 1));
      end_products();
      start_across<T, D>(work.sums, work.shares, stage(i) + bytes);
      end_products();
      begin(i + 1);
      await_products<1>();
      share_out(logits, i + 1, [&] {
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
  if constexpr (!biased) {
    meet_worker();
    if (worker == 1) work.leave_all(shared);
    meet_worker();
    if (worker == 1) return;
    work.take_left(shared);
  }
  work.store(rows);
}

template <class T, int D, bool biased>
__global__ void __launch_bounds__(all_threads, 1) group_forward_kernel(const __grid_constant__ Problem p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int bytes = GroupTile<T, D>::bytes, count_of_stages = forward_stages<biased>, own_rows = rows_of<!biased>;
  extern __shared__ unsigned char memory[];
  __shared__ Visits visits;
  __shared__ Stages<count_of_stages> stages;
  __shared__ TileBits<false> bits[count_of_stages];
  const uint32_t queries = aligned_memory(memory), tiles = queries + own_rows / 64 * bytes;
  const RowBlock<own_rows> rows(p, blockIdx.x);
  copy_own_queries<T, D>(p, rows, queries);
  stages.set_up(own_rows / 64 * group_threads / 32);
  const int count = visits.fill_for(p, rows);
  await_copies<0>();
  publish_writes();
  __syncthreads();
  if (threadIdx.x < group_threads) {
    give_registers<copier_registers>();
    copy_keys<T, D, biased>(p, rows, visits, stages, bits, count, tiles);
  } else {
    take_registers<worker_registers>();
    const int worker = threadIdx.x / group_threads - 1;
    const WorkerStages<!biased, count_of_stages> own{stages, visits, count, worker};
    work_forward<T, D, biased>(p, rows, own, bits, queries + worker % (own_rows / 64) * bytes, tiles,
                               aligned_floats(memory));
  }
#endif
}

}  // namespace capibara::cuda::attention
