// Forward attention by warpgroups: the matmul with the values of one tile overlaps with the softmax of the next.
// Used with a bias, and with block patterns, whose visits are split between the workers.
#pragma once

#include "backends/cuda/attention/hopper/attention_copies.h"
#include "backends/cuda/attention/hopper/attention_forward_worker.h"

namespace capibara::cuda::attention {

template <class T, int D, Bias kind, int Count>
__device__ void work_forward(const Problem& p, const RowBlock<rows_of<kind == Bias::none>>& rows,
                             const WorkerStages<kind == Bias::none, Count>& stages, const BitsView<false>& bits,
                             uint32_t own, uint32_t tiles, float* shared) {
  constexpr int bytes = GroupTile<T, D>::bytes;
  constexpr bool biased = kind != Bias::none, bare = kind == Bias::bare;
  const int worker = stages.worker, count = stages.count();
  ForwardWorker<T, D, biased> work(p, rows, worker);
  const int column = work.at.column;
  uint32_t queries[D / 16][4], seen = 0, kept[1] = {};
  const uint32_t offset = bias_offset<T, D, false>(worker);
  bool whole = false;
  Level level = none;  // of the last visit queried
  load_rows<T, D>(queries, own);
  auto stage = [&](int i) { return tiles + stages.slot(i) * stage_bytes_of<T, D, biased>; };
  auto wants = [&](int i) {
    if (i == count) return false;
    stages.await_full(i);
    return (level = bits.level(stages.slot(i), worker)) != none;
  };
  // Products accumulate on a bare bias.
  auto start_logits = [&](float(&logits)[8][4], int i) {
    if constexpr (bare) {
      BiasTile<T>::template load<false>(logits, stage(i) + offset,
                                        [&](float x, int, int) { return x * p.bias_factor; });
      compute_now(logits);
    }
    begin_products();
    start_rows<T, D, bare>(logits, queries, stage(i));
    end_products();
  };
  auto begin = [&](int i) {
    if (kind == Bias::any && !has_bias_pieces(p)) work.at.column = column + stages.tile(i) * 64;
    whole = level == all;
    if (!whole) seen = bits.seen_word(stages.slot(i), worker);
    if (!bare && p.threshold > 0) kept[0] = work.kept_of(stages.tile(i));
  };
  auto share_out = [&](float(&logits)[8][4], int i, auto&& ready) {
    make_group_logits<T, false, kind>(p, logits, work.at, stage(i) + offset, whole, seen);
    work.template share_out<!bare>(logits, kept, ready);
  };
  // Runs of consecutive visits: the stage held by the last matmul of a run is released before other visits are skipped.
  for (int i = next_visit(stages, 0, count, wants); i < count; i = next_visit(stages, i + 1, count, wants)) {
    float logits[8][4];
    start_logits(logits, i);
    begin(i);
    await_products<0>();
    share_out(logits, i, [] {});
    for (; wants(i + 1); ++i) {
      start_logits(logits, i + 1);
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

template <class T, int D, Bias kind>
__global__ void __launch_bounds__(all_threads, 1)
    group_forward_kernel(const __grid_constant__ Problem p, const __grid_constant__ BoxSources sources) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr bool biased = kind != Bias::none;
  constexpr int bytes = GroupTile<T, D>::bytes, count_of_stages = forward_stages<biased>, own_rows = rows_of<!biased>;
  extern __shared__ unsigned char memory[];
  __shared__ Visits visits;
  __shared__ typename Stages<count_of_stages>::Barriers barriers;
  const Stages<count_of_stages> stages(barriers);
  __shared__ TileBits<false> bits[count_of_stages];
  const uint32_t queries = aligned_memory(memory), tiles = queries + own_rows / 64 * bytes;
  const RowBlock<own_rows> rows(p, blockIdx.x);
  copy_own_queries<T, D>(p, rows, queries);
  stages.set_up(copied_by_threads<biased>(p), own_rows / 64 * group_threads / 32);
  const int count = visits.fill_for(p, rows);
  await_copies<0>();
  publish_writes();
  __syncthreads();
  if (threadIdx.x < group_threads) {
    keep_registers<copier_registers>();
    copy_keys<T, D, biased>(p, sources, rows, visits, stages, bits, count, tiles);
  } else {
    take_registers<copier_registers>();
    const int worker = threadIdx.x / group_threads - 1;
    const WorkerStages<!biased, count_of_stages> own{stages, visits, count, worker};
    work_forward<T, D, kind>(p, rows, own, BitsView<false>(bits), queries + worker % (own_rows / 64) * bytes, tiles,
                             aligned_floats(memory));
  }
#endif
}

}  // namespace capibara::cuda::attention
